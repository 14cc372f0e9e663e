"""Which workflows are read, as a table of what was seen and what is asked for."""

from itertools import pairwise

from harness.collectors.kubernetes.workflow.watch import WorkflowChoice, WorkflowKey

NOBODY: frozenset[str] = frozenset()


def key(number: int) -> WorkflowKey:
    return WorkflowKey("kubeflow", f"w-{number:04d}", f"run-{number:04d}")


def failed(choice: WorkflowChoice, count: int) -> None:
    for number in range(count):
        choice.see(key(number), 0.0, over=True, failed=True)


def taken(choice: WorkflowChoice, now_s: float = 1.0) -> list[int]:
    found = []
    while (chosen := choice.take(now_s, None, NOBODY)) is not None:
        found.append(int(chosen.name[2:]))
    return found


def test_the_first_failed_workflows_are_read_and_then_ever_fewer() -> None:
    choice = WorkflowChoice(0.0)
    failed(choice, 150)
    assert taken(choice) == [*range(20), 31, 63, 127]  # the 32nd, the 64th, the 128th


def test_succeeded_workflows_are_not_read() -> None:
    choice = WorkflowChoice(0.0)
    choice.see(key(1), 0.0, over=False, failed=False)
    choice.see(key(1), 5.0, over=True, failed=False)
    assert choice.take(100.0, None, NOBODY) is None


def test_failed_workflows_of_others_wait_until_they_prove_to_be_the_test_s() -> None:
    choice = WorkflowChoice(0.0)
    failed(choice, 2)
    assert choice.take(1.0, {"another"}, NOBODY) is None
    assert choice.take(1.0, {"run-0001"}, NOBODY) == key(1)
    assert choice.take(1.0, {"run-0000", "run-0001"}, NOBODY) == key(0)


def test_one_running_workflow_is_read_at_a_time_first_those_without_a_pod() -> None:
    choice = WorkflowChoice(0.0)
    for number in range(3):
        choice.see(key(number), float(number), over=False, failed=False)
    working = {"run-0000", "run-0001"}
    assert choice.take(9.9, None, working) is None
    assert choice.take(12.1, None, working) == key(2)
    assert choice.take(12.2, None, working) is None
    assert [choice.take(at, None, set(working)) for at in (23.0, 34.0)] == [key(2), key(2)]
    assert [choice.take(at, None, {*working, "run-0002"}) for at in (45.0, 56.0)] == [key(0), key(1)]


def test_a_running_workflow_is_read_as_soon_as_it_has_run_for_ten_seconds() -> None:
    choice = WorkflowChoice(0.0)
    choice.see(key(1), 4.0, over=False, failed=False)
    assert [at for at in range(30) if choice.take(float(at), None, NOBODY)] == [14, 19, 24, 29]


def test_running_workflows_are_read_less_and_less_often() -> None:
    choice = WorkflowChoice(0.0)
    choice.see(key(1), 0.0, over=False, failed=False)
    read = [at for at in range(3600) if choice.take(float(at), None, NOBODY)]
    assert len(read) <= 45
    assert read[:3] == [10, 15, 20]
    assert max(after - before for before, after in pairwise(read)) == 300


def test_a_deleted_workflow_is_not_read() -> None:
    choice = WorkflowChoice(0.0)
    choice.see(key(1), 0.0, over=False, failed=False)
    choice.forget("kubeflow", "w-0001")
    assert choice.take(100.0, None, NOBODY) is None


def test_those_that_never_had_a_pod_are_read_in_turn_before_one_whose_pod_just_ended() -> None:
    choice = WorkflowChoice(0.0)
    for number in range(4):
        choice.see(key(number), float(number), over=False, failed=False)
    worked = {"run-0000", "run-0003"}
    read = [choice.take(at, None, {"run-0000"}, worked) for at in (20.0, 26.0, 32.0, 38.0)]
    assert read == [key(1), key(2), key(1), key(2)]

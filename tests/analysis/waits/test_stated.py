"""Waits are attributed to what was stated, and the sums stay exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.waits.stated import causes, shares_of, unstated
from harness.detectors import diagnose
from harness.model import Outcome
from harness.model.phases import FAILED, RUNNING, SCHEDULING, STARTING, UNSCHEDULABLE
from harness.reasons import builtin, stated
from tests.support.injected.loads import NODES
from tests.support.timelines import Story


def message(*predicates):
    text = ", ".join(f"{count} {predicate}" for count, predicate in predicates)
    return stated(
        "scheduler", "FailedScheduling", f"0/9 nodes are available: {text}. preemption: 0/9 nodes are available."
    )


CPU, TAINT = "Insufficient cpu", "node(s) had untolerated taint {sku: training}"
SYSTEM, AFFINITY = (
    "node(s) had untolerated taint {CriticalAddonsOnly: true}",
    "node(s) didn't match Pod's node affinity/selector",
)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        (message((2, CPU)), {"insufficient-cpu": 1.0}),
        (message((2, CPU), (3, TAINT)), {"insufficient-cpu": 0.4, "untolerated-taint": 0.6}),
        (message((2, CPU), (3, SYSTEM), (4, AFFINITY)), {"insufficient-cpu": 1.0}),
        (message((3, SYSTEM), (1, TAINT)), {"system-nodes-only": 0.75, "untolerated-taint": 0.25}),
        (stated("waiting", "CreateContainerConfigError", 'secret "x" not found'), {"secret-missing": 1.0}),
    ],
)
def test_a_message_of_several_predicates_is_divided_by_their_nodes(text, shares):
    found = {match.row.name: pytest.approx(share) for _, match, share in shares_of(text, builtin())}
    assert found == shares


def test_taints_that_the_scheduler_does_not_name_are_those_of_nodes_that_are_not_ready():
    text = message((2, CPU), (2, "node(s) had untolerated taint(s)"))
    for unready, names in ((2, ["insufficient-cpu", "node-not-ready"]), (1, ["insufficient-cpu", None])):
        found = {match.row.name for _, match, _ in shares_of(text, builtin(), unready)}
        assert found == {name for name in names if name}
    alone = message((2, "node(s) had untolerated taint(s)"))
    assert [match.row.name for _, match, _ in shares_of(alone, builtin(), 2)] == ["node-not-ready"]
    assert [match.row.name for _, match, _ in shares_of(alone, builtin())] == ["untolerated-taints"]


@given(
    st.lists(
        st.tuples(st.integers(1, 999), st.sampled_from([CPU, TAINT, SYSTEM, AFFINITY, "gibberish, it seems"])),
        min_size=1,
    )
)
def test_the_shares_of_a_message_add_up_to_one(predicates):
    assert sum(share for *_, share in shares_of(message(*predicates), builtin())) == pytest.approx(1.0)


def waiting(count, reason, *, phase=UNSCHEDULABLE, wait_s=60.0, over=True):
    """Runs of one pod each that wait, state why, and then run for 10 s."""
    story = Story(intended=count, target="argo")
    for name in NODES:
        story.node(name, -900, -890)
    for seq in range(count):
        run = story.submit(seq, due=2.0 * seq)
        now = 2.0 * seq + 0.5
        end = now + wait_s if over else None
        stretches = [(SCHEDULING, now - 0.1, now), (phase, now, end)]
        story.pod(run, "main", NODES[0] if phase == STARTING else None, *stretches, reason=reason)
        if over:
            story.pod(run, "main2", NODES[seq % 6], (RUNNING, now + wait_s, now + wait_s + 10))
            story.run(run, now, now + wait_s + 10.2)
        else:
            story.run(run, now, None)
    return story


def test_the_time_of_a_phase_is_attributed_to_what_was_stated_in_it(tmp_path):
    timeline = waiting(40, message((2, CPU), (2, TAINT))).timeline(tmp_path)
    found = {cause.row.name: sum(cause.waited.values()) for cause in causes(timeline)}
    assert found == {
        "insufficient-cpu": pytest.approx(1200, rel=0.01),
        "untolerated-taint": pytest.approx(1200, rel=0.01),
    }
    assert unstated(timeline)[UNSCHEDULABLE] == pytest.approx(0.5)


def test_nodes_are_only_as_full_as_was_stated_and_a_cause_stated_beside_them_is_not_sure(tmp_path):
    shared = {
        each.name: each for each in diagnose(waiting(40, message((2, CPU), (2, TAINT))).timeline(tmp_path)).findings
    }
    assert shared["untolerated-taint"].confidence == 0.6
    assert "42% of their time" in shared["nodes-exhausted"].title
    alone = {each.name: each for each in diagnose(waiting(40, message((4, TAINT))).timeline(tmp_path / "2")).findings}
    assert alone["untolerated-taint"].confidence == 0.95
    assert "nodes-exhausted" not in alone


@settings(max_examples=10)  # each goes through all detectors
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=300))
def test_a_text_that_no_row_knows_is_quoted_and_ranked_by_what_it_cost(tmp_path_factory, text):
    reason = stated("event", "FailedFrobnication", f"xyzzy {text}")
    timeline = waiting(6, reason, phase=STARTING, over=False).timeline(tmp_path_factory.mktemp("run"))
    (cause,) = causes(timeline)
    assert cause.row is None
    assert cause.stuck == set(range(6))
    (finding,) = [each for each in diagnose(timeline).findings if each.name == "unknown-reason"]
    assert finding.title.startswith("Kubernetes says “xyzzy")
    assert finding.commands[0].startswith("kubectl describe pod ")


def test_why_every_submission_was_rejected_is_named_although_no_run_was_observed(tmp_path):
    story = Story(intended=8)
    for seq in range(8):
        error = "InternalServerError: Failed to store run to table: Error 1114 (HY000): The table 'run_details' is full"
        story.submit(seq, due=float(seq), outcome=Outcome.REJECTED, status=500, error=error)
    first = diagnose(story.timeline(tmp_path)).findings[0]
    assert first.name == "db-full"
    assert "8 of 8 submissions were rejected" in first.title


def test_exit_codes_that_differ_are_different_causes(tmp_path):
    story = Story(intended=2)
    for seq, code in enumerate((1, 137)):
        story.run(story.submit(seq), 0.0, 5.0, FAILED, f"main: Error (exit code {code})")
    failed = {each.row.name: each.failed for each in causes(story.timeline(tmp_path)) if each.row}
    assert failed == {"step-failed": {0}, "killed": {1}}


@pytest.mark.parametrize(("code", "killed"), [(137, 1), (1, 0)])
def test_a_run_failed_for_what_its_node_states_only_with_the_exit_code_that_this_has(code, killed, tmp_path):
    story = Story(intended=1, target="argo")
    run = story.submit(0)
    oom = stated("kubelet-event", "SystemOOM", "System OOM encountered, victim process: python, pid: 31337")
    story.pod(run, "train", NODES[0], (RUNNING, 1.0, 20.0), reason=oom)
    story.run(run, 0.0, 21.0, FAILED, f"main: Error (exit code {code})")
    failed = {each.row.name: len(each.failed) for each in causes(story.timeline(tmp_path)) if each.row}
    assert failed["node-oom"] == killed


def test_what_a_node_states_is_no_reason_of_a_failure_elsewhere(tmp_path):
    broken = stated("node-condition", "FilesystemIsReadOnly", "Filesystem is read-only")
    story = Story(intended=2)
    for seq, (driver, step) in enumerate((("", broken), (broken, ""))):
        run = story.submit(seq)
        story.pod(run, "train-driver", NODES[0], (RUNNING, 1.0, 2.0), reason=driver)
        failed = story.pod(run, "train", NODES[seq], (RUNNING, 3.0, 5.0), reason=step)
        story.event(5.0, "Pod", failed, "Failed", "main: Error (exit code 1)", run=run, type="Warning")
        story.run(run, 0.0, 6.0, FAILED)
    failed = {each.row.name: each.failed for each in causes(story.timeline(tmp_path)) if each.row}
    assert failed == {"node-kernel-problem": {0}, "step-failed": {1}}

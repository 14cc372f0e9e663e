from harness.model.phases import (
    POD_PHASES,
    PULLING,
    RUN_PHASES,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORING,
    UNSCHEDULABLE,
    is_workload,
    workload_name,
)


def test_what_is_no_run_is_named_with_its_namespace():
    assert workload_name("team-b", "nightly") == "team-b/nightly"
    assert is_workload("team-b/nightly")
    assert not is_workload("run-1")


def test_phases_are_listed_in_the_order_in_which_a_pod_passes_them():
    passed = [UNSCHEDULABLE, SCHEDULING, PULLING, STARTING, RUNNING, STORING]
    for listed in (POD_PHASES, RUN_PHASES):
        assert [phase for phase in listed if phase in passed] == passed

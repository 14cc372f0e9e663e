from harness.model.phases import is_workload, workload_name


def test_what_is_no_run_is_named_with_its_namespace():
    assert workload_name("team-b", "nightly") == "team-b/nightly"
    assert is_workload("team-b/nightly")
    assert not is_workload("run-1")

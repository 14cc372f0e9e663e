from harness.model.run_name import run_name


def test_a_run_is_named_by_its_start_target_schedule_and_runs():
    assert run_name("kfp", "burst", 200, 1_767_323_045_999_000_000) == "20260102T030405Z-kfp-burst-200"

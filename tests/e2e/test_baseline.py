"""``--baseline``: a test that became slower than a former one of the same load ends with 3."""

from pathlib import Path

import pytest

from tests.e2e.conftest import QUICK

LOAD = ("--runs", "80", "--over", "4s")


@pytest.fixture
def slow(tmp_path):
    """The quick platform with steps that take longer."""
    path = tmp_path / "slow.yaml"
    path.write_text(Path(QUICK).read_text().replace("uniform: [0.2s, 0.5s]", "uniform: [1.5s, 1.8s]"))
    return str(path)


def test_a_slower_test_ends_with_3_and_one_of_another_load_does_not_begin(locust, slow):
    former = locust.headless("--simulate", QUICK, *LOAD, "--run-name", "a")
    assert former.code == 0, former.err + former.out
    baseline = ("--baseline", str(former.folder))

    again = ("--schedule", "replay", "--schedule-file", str(former.folder))
    worse = locust.headless("--simulate", slow, *again, *baseline, "--run-name", "b")
    assert worse.code == 3, worse.err + worse.out
    assert "WORSE" in worse.out
    assert worse.report()["baseline"]["worse"]
    assert worse.report()["slos"] == []

    other = locust.headless("--simulate", QUICK, "--runs", "81", "--over", "4s", *baseline, "--run-name", "c")
    assert (other.code, other.folder.name) == (2, "b"), other.err
    assert "another load: runs: 80 and 81" in other.err


def test_a_baseline_that_cannot_be_read_ends_with_2_before_anything_is_made(locust):
    finished = locust.headless("--simulate", QUICK, *LOAD, "--baseline", "nowhere")
    assert (finished.code, finished.folder) == (2, None), finished.err
    assert "the baseline nowhere" in finished.err

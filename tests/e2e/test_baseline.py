"""``--baseline``: a test that is slower than an earlier one with the same load ends with 3."""

from pathlib import Path

import pytest

from harness.cli import main
from tests.support.e2e import QUICK


@pytest.mark.soak
def test_a_slower_test_ends_with_3_and_one_with_another_load_does_not_start(locust, tmp_path):
    runs = str(tmp_path / "runs")
    load = ("--schedule", "spread", "--runs", "80", "--over", "4s")
    assert main(["simulate", "run", "--profile", QUICK, *load, "--run-name", "a", "--runs-dir", runs]) == 0
    baseline = ("--baseline", f"{runs}/a")
    slow = tmp_path / "slow.yaml"
    slow.write_text(Path(QUICK).read_text().replace("uniform: [0.2s, 0.5s]", "uniform: [1.5s, 1.8s]"))

    worse = locust.headless("--simulate", str(slow), *load, *baseline, "--run-name", "b")
    assert worse.code == 3, worse.err + worse.out
    assert "WORSE" in worse.out
    assert worse.report()["baseline"]["worse"]
    assert worse.report()["slos"] == []

    other = locust.headless("--simulate", QUICK, *load, *baseline, "--runs", "81", "--run-name", "c")
    assert (other.code, other.folder.name) == (2, "b"), other.err
    assert "another load: runs: 80 and 81" in other.err


def test_an_unreadable_baseline_ends_with_2_before_anything_is_written(locust):
    finished = locust.headless("--simulate", QUICK, "--baseline", "nowhere")
    assert (finished.code, finished.folder) == (2, None), finished.err
    assert "the baseline nowhere" in finished.err

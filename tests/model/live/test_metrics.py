import shutil
import subprocess

import pytest

from harness.model.live.metrics import exposition
from tests.support.live_views import LOAD, OBSERVED

STATE = {"load": LOAD, "observer": OBSERVED, "findings": [{"name": "quota", "confidence": c} for c in (0.5, 0.9)]}


def test_the_current_state_is_a_page_of_metrics():
    lines = exposition(STATE).splitlines()
    assert {
        "pipeswarm_arrivals_intended 200",
        "pipeswarm_arrivals_sent_total 200",
        "pipeswarm_arrivals_missed_total 0",
        "pipeswarm_runs_in_flight 40",
        "pipeswarm_lag_seconds 0.0012",
        'pipeswarm_runs_ended_total{outcome="failed"} 30',
        'pipeswarm_test_stage{stage="draining"} 1',
        'pipeswarm_platform_runs{state="RUNNING"} 40',
        'pipeswarm_finding_confidence{finding="quota"} 0.9',
        'pipeswarm_observer_requests_total{endpoint="b"} 4',
    } <= set(lines)


def test_unknown_metrics_are_left_out():
    assert exposition({}) == ""
    assert "lag" not in exposition({"load": {"stage": "draining", "lag_s": None}})


def test_what_the_platform_names_adds_a_bounded_number_of_series():
    page = exposition({"observer": {"runs": {f"state-{k}": 1 for k in range(1000)}}})
    assert page.count("pipeswarm_platform_runs{") == 50


def test_labels_are_escaped():
    page = exposition({"observer": {"store_free_bytes": {'a"b\\c\nd': 1}}})
    assert 'volume="a\\"b\\\\c\\nd"' in page


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (of Prometheus) is not installed")
def test_the_linter_of_prometheus_accepts_the_page():
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition(STATE), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")

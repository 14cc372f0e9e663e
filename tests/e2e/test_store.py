"""A slow and a full artifact store, named from what a kubeconfig gives: pods, their logs, their volumes."""

import json
from pathlib import Path

import pytest

from tests.support.e2e import QUICK, locust

__all__ = ["locust"]


def platform(place: Path, store: str) -> str:
    """The platform in a hurry, with another store."""
    path = place / "platform.yaml"
    lines = Path(QUICK).read_text().splitlines()
    path.write_text("\n".join(f"store: {store}" if line.startswith("store:") else line for line in lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("store", "name", "said"),
    [
        ("{bytes_per_s: 4Mi, stream_bytes_per_s: 4Mi, request_s: 2ms}", "store-slow", "logs show when they uploaded"),
        # Its answer says nothing of space: the volume does.
        pytest.param(
            "{capacity: 200Mi, used: 185Mi, timeout_s: 1s, request_s: 2ms}",
            "store-full",
            "failed to upload output artifact",
            marks=pytest.mark.soak,  # `make demo` finds it, too
        ),
    ],
)
def test_a_stores_fault_is_named_first_from_the_logs_of_steps(store, name, said, locust, tmp_path):
    finished = locust.headless(
        "--simulate", platform(tmp_path, store), "--schedule", "burst", "--runs", "6", "--seed", "7"
    )
    assert finished.folder is not None, finished.err
    report = finished.report()
    assert report["validity"]["verdict"] == "VALID", report["validity"]
    first = report["findings"][0]
    assert first["name"] == name, json.dumps(report["findings"], indent=1)
    assert any(said in each["statement"] for each in first["evidence"]), first["evidence"]
    assert "whose logs were read" in report["phases"]["caveat"]
    assert sum(phase["mean_s"] for phase in report["phases"]["phases"]) == pytest.approx(
        report["phases"]["mean_total_s"], rel=1e-4
    )

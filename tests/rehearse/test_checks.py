"""Each check is met by what happened, and not by anything else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import urllib3

from harness.model.phases import RUN, RUNNING
from harness.model.records import Event, Outcome, Span, Submission
from harness.store import RunFolder
from tests.support.e2e import platform
from tests.support.real_parts.checks import Folder, check_pods, check_runs
from tests.support.real_parts.kubelet import Lived
from tests.support.real_parts.platform import perform_on_platform
from tests.support.serving import Served

__all__ = ["platform"]

_S = 10**9
_RUNS = {"a": {"state": "SUCCEEDED"}, "b": {"state": "FAILED"}}
Records = list[Submission | Span | Event]


def records() -> Records:
    found: Records = []
    for seq, (run, shown) in enumerate(_RUNS.items()):
        found += [
            Submission(seq, str(seq), run, 0, 0, _S, Outcome.ACCEPTED, run, 0, 200, None),
            Span(run, "", RUN, _S, 9 * _S),
            Span(run, f"pod-{run}", RUNNING, 3 * _S, 8 * _S, node="node-0"),
            Event(9 * _S, "Run", run, shown["state"], run=run),
        ]
    return found


def unmet(tmp_path: Path, told: Records) -> list[str]:
    folder = RunFolder.create(tmp_path, "run")
    with folder.recorder() as recorder:
        for each in told:
            recorder.write(each)
    left, lived = Folder(folder.path), {f"pod-{run}": Lived("node-0", 3.2, 7.4) for run in _RUNS}
    checks = [*check_runs(left, dict.fromkeys(_RUNS, 9.0), _RUNS, 2), *check_pods(left, lived)]
    return [check.what for check in checks if not check.met]


def test_what_happened_meets_all(tmp_path: Path) -> None:
    assert unmet(tmp_path, records()) == []


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda each: None if isinstance(each, Submission) and each.run == "a" else each, "arrivals accepted"),
        (lambda each: replace(each, run="c") if isinstance(each, Submission) and each.run == "a" else each,
         "runs created once, and no others"),
        (lambda each: None if isinstance(each, Span) and (each.run, each.step) == ("a", "") else each, "runs listed"),
        (lambda each: replace(each, reason="SUCCEEDED") if isinstance(each, Event) else each, "ends of runs"),
        (lambda each: replace(each, ended_at=8 * _S) if isinstance(each, Span) and not each.step else each,
         "runs whose phases don't add up to their duration"),
        (lambda each: None if isinstance(each, Span) and each.step == "pod-a" else each, "pods"),
        (lambda each: replace(each, node="node-1") if isinstance(each, Span) and each.step == "pod-a" else each,
         "nodes of the pods"),
        (lambda each: replace(each, ended_at=9 * _S) if isinstance(each, Span) and each.step == "pod-a" else each,
         "pods whose running is off by more than a second"),
    ],
)  # fmt: skip
def test_anything_else_does_not(
    tmp_path: Path, spoil: Callable[[Submission | Span | Event], Submission | Span | Event | None], what: str
) -> None:
    told = [spoilt for each in records() if (spoilt := spoil(each)) is not None]
    assert what in unmet(tmp_path, told)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_platform_is_left_as_it_was(platform: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated platform in the place of the real one."""
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    assert [check for check in perform_on_platform(platform.url, tmp_path / "scene") if not check.met] == []
    for kind in ("runs", "pipelines"):
        assert urllib3.request("GET", f"{platform.url}/apis/v2beta1/{kind}").json() == {}
    left = urllib3.request("GET", f"{platform.url}/apis/v2beta1/experiments").json()["experiments"]
    assert [each["display_name"] for each in left] == ["Default"]

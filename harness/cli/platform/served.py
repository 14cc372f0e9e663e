"""``pipeswarm simulate corpus --served``: the load test that a user would start with each document.

Locust starts a platform for it, which answers over HTTP in wall time, sends a burst of runs, observes them and reports.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from harness.cli.loading.load import locustfile
from harness.cli.platform.tried import BUG, FAILED, RAN, REFUSED, WAITS, Tried
from harness.model import Span
from harness.model.errors import ExitCode
from harness.plan.environment import without_settings
from harness.plan.subprocesses import run
from harness.simulator.profile.file import built_in
from harness.store.folder import REPORT, RunFolder

_RUNS = 2
_LOAD = ("--headless", "--only-summary", "--skip-log", "--runs", str(_RUNS), "--schedule", "burst", "--no-what-if")
_OPTIONS = {"argo": "--workflow", "kfp": "--pipeline"}
_GRACE_S = 30.0  # beyond twice the time that a run takes in simulated time


def load(tried: Tried, path: Path, own: Sequence[object], beside: Sequence[object], profile: str) -> Tried:
    """How a document fares under load; `tried` is how it did in simulated time.

    The file at `path` is loaded as it is, unless `own` are the documents of it to load. `beside` are the objects of
    other files that workflows may need.
    """
    with TemporaryDirectory(prefix="pipeswarm-") as text:
        place = Path(text)
        what = [_OPTIONS[tried.kind], str(_written(place / "own.yaml", own) if own else path.absolute())]
        if beside and tried.kind == "argo":
            what += ["--with", str(_written(place / "beside.yaml", beside))]
        known = profile if profile in built_in() else str(Path(profile).absolute())
        command = [
            sys.executable, "-m", "locust", "-f", str(locustfile(tried.kind)), *_LOAD, "--simulate", known, *what,
            "--drain", f"{2 * tried.seconds + _GRACE_S:.0f}s", "--runs-dir", text, "--run-name", "run",
        ]  # fmt: skip
        done = run(command, place, without_settings(text))
        if done.returncode == ExitCode.BUG or not (place / "run" / REPORT).exists():
            verdict = REFUSED if done.returncode == ExitCode.BAD_CONFIG else BUG
            said = [line for line in done.stderr.splitlines() if line.startswith("error: ")] or [done.stderr.strip()]
            return replace(tried, run=verdict, note=said[0].removeprefix("error: "))
        folder = RunFolder.open(place / "run")
        return _judged(tried, json.loads(folder.read_bytes(REPORT)), folder.records(Span))


def _written(path: Path, documents: Sequence[object]) -> Path:
    path.write_bytes(yaml.dump_all(documents, Dumper=yaml.CSafeDumper).encode())
    return path


def _judged(tried: Tried, report: Mapping[str, Any], spans: Sequence[Span]) -> Tried:
    """As the worst of the runs, with their mean pods and duration."""
    ledger, duration = report["ledger"], report["latencies"]["duration_s"]
    ends = {REFUSED: ledger["rejected"], WAITS: ledger["in_flight"], FAILED: ledger["failed"] + ledger["canceled"]}
    ends |= {RAN: ledger["succeeded"], BUG: _RUNS}
    worst = next(each for each, count in ends.items() if count)
    notes = [f"{tried.run} in simulated time"] if worst != tried.run else []
    notes += [tried.note, *(each["message"] for each in report["errors"]), *report["validity"]["reasons"]]
    pods = round(len({span.step for span in spans if span.step and span.source == "kubernetes"}) / _RUNS)
    mean = round((duration or {}).get("mean") or 0.0, 1)
    return replace(tried, run=worst, pods=pods, seconds=mean, note="; ".join(filter(None, notes)))

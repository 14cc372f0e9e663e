"""What a run folder and its report must say, held against what the stand-ins did."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.model import Plan
from harness.model.phases import POD_PHASES, RUN, RUNNING, STORE_WRITABLE, TERMINAL_STATES, UPLOAD_SECONDS
from harness.model.records import Event, Node, Outcome, Sample, Span, Submission
from harness.store import RunFolder
from tests.support.real_parts.stage import ACCOUNT, Stage

_WITHIN_S = 1.0  # Kubernetes tells the times of containers in whole seconds
_TOLD_S = 0.01


@dataclass(frozen=True)
class Check:
    """One comparison; it is met when both are equal."""

    what: str
    expected: object
    seen: object

    @property
    def met(self) -> bool:
        """Whether what was expected was seen."""
        return self.expected == self.seen


class Folder:
    """What a load test left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = RunFolder(path)

    @cached_property
    def plan(self) -> Plan:
        """What the test was to do, and the ids that it found."""
        return self._folder.read_plan()

    @cached_property
    def report(self) -> dict[str, Any]:
        """``report.json``."""
        found: dict[str, Any] = json.loads((self.path / "report.json").read_text())
        return found

    @cached_property
    def sent(self) -> dict[str, Submission]:
        """Accepted submissions by run."""
        rows = self._folder.records(Submission)
        return {str(row.run): row for row in rows if row.outcome is Outcome.ACCEPTED}

    @cached_property
    def events(self) -> list[Event]:
        """All events."""
        return list(self._folder.records(Event))

    @cached_property
    def spans(self) -> dict[tuple[str, str, str, int], Span]:
        """The last record of each span."""
        return {(each.run, each.step, each.phase, each.attempt): each for each in self._folder.records(Span)}

    def rows(self, kind: type[Any]) -> list[Any]:
        """Records of another kind."""
        return list(self._folder.records(kind))

    def ends(self) -> dict[str, Event]:
        """By run, the end that the platform reported."""
        return {each.object: each for each in self.events if each.kind == "Run" and each.reason in TERMINAL_STATES}

    def lengths(self) -> dict[str, float]:
        """By run, the sum of its phases in seconds."""
        found: dict[str, float] = {}
        for row in pq.read_table(self.path / "tables" / "phases.parquet").to_pylist():
            found[row["run"]] = found.get(row["run"], 0.0) + row["length_s"]
        return found


def check_runs(
    folder: Folder, lengths: Mapping[str, float], runs: Mapping[str, Mapping[str, Any]], intended: int
) -> Iterator[Check]:
    """Every run exactly once, its end, and its phases.

    Args:
        folder: that the test left.
        lengths: by run, the sum of its phases in seconds.
        runs: the platform's own, by id.
        intended: number of arrivals.
    """
    rows = folder.rows(Submission)
    yield Check("arrivals accepted", intended, sum(row.outcome is Outcome.ACCEPTED for row in rows))
    yield Check("runs created once, and no others", sorted(runs), sorted(str(row.run) for row in rows))
    listed = Counter(run for run, step, phase, _ in folder.spans if phase == RUN and not step)
    yield Check("runs listed", sorted(runs), sorted(listed))
    ends = folder.ends()
    yield Check("ends of runs", _states(runs), dict(sorted((run, end.reason) for run, end in ends.items())))
    sent = folder.sent
    over = {run: span.ended_at for (run, step, phase, _), span in folder.spans.items() if phase == RUN and not step}
    off = [
        run for run in sent if abs(lengths.get(run, 0.0) - ((over.get(run) or 0) - sent[run].due_at) / 1e9) > _TOLD_S
    ]
    yield Check("runs whose phases don't add up to their duration", [], off)


def _states(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {run: str(runs[run]["state"]) for run in sorted(runs)}


def check_pods(folder: Folder, stage: Stage) -> Iterator[Check]:
    """Pods, their nodes and their running times, against the kubelet's account."""
    lived = stage.kubelet.pods
    sent = folder.sent  # other workloads of the cluster are recorded, too
    spans = [span for span in folder.spans.values() if span.phase in POD_PHASES and span.run in sent]
    yield Check("pods", sorted(lived), sorted({span.step for span in spans}))
    ran = {span.step: span for span in spans if span.phase == RUNNING}
    places = {name: pod.node for name, pod in sorted(lived.items())}
    yield Check("nodes of the pods", places, {name: span.node for name, span in sorted(ran.items())})
    off, logged = [], {each.labels["pod"] for each in folder.rows(Sample) if each.metric == UPLOAD_SECONDS}
    for name, span in ran.items():
        end_s = lived[name].stored_from_s if name in logged else lived[name].ended_s
        times = ((span.started_at, lived[name].began_s), (span.ended_at, end_s))
        if any(seen is None or abs(seen / 1e9 - true_s) > _WITHIN_S for seen, true_s in times):
            off.append(name)
    yield Check("pods whose running is off by more than a second", [], off)


def check_uploads(folder: Folder, stage: Stage) -> Iterator[Check]:
    """How long the steps stored their outputs, from their logs."""
    found = {each.labels["pod"]: each.value for each in folder.rows(Sample) if each.metric == UPLOAD_SECONDS}
    stored = {name: pod.ended_s - pod.stored_from_s for name, pod in stage.kubelet.pods.items() if pod.stored_from_s}
    yield Check("pods whose logs told of an upload", sorted(stored), sorted(found))
    off = [name for name, seconds in found.items() if abs(seconds - stored.get(name, 0.0)) > _TOLD_S]
    yield Check("uploads that lasted otherwise", [], off)


def check_nodes(folder: Folder, stage: Stage) -> Iterator[Check]:
    """The scene's nodes and their cores."""
    cores = {node.name: node.cpu for node in folder.rows(Node) if node.name in stage.nodes}
    expected = {name: float(cpu) for name, cpu in zip(stage.nodes, stage.scene.nodes, strict=True)}
    yield Check("nodes and their cores", expected, dict(sorted(cores.items())))


def check_findings(folder: Folder, stage: Stage) -> Iterator[Check]:
    """The findings that the scene plants."""
    named = [each["name"] for each in folder.report["findings"]]
    for name in stage.scene.findings:
        yield Check(f"finding {name}", name, name if name in named else f"only {', '.join(named) or 'none'}")
    commands = " ".join(command for each in folder.report["findings"] for command in each["commands"])
    elsewhere = set(re.findall(r" -n (\S+)", commands)) - {stage.kfp.namespace}
    yield Check("namespaces in commands, other than that of the runs", set(), elsewhere)


def check_rights(folder: Folder) -> Iterator[Check]:
    """Of a restricted account: what it may not read is told with the verb and the resource that are missing."""
    said = [each.message for each in folder.events if each.kind == "Observer" and each.reason == "NotReachable"]
    for resource in ("nodes", "events", "workflows.argoproj.io"):
        group, name = resource.partition(".")[2], resource.partition(".")[0]
        words = f'cannot list resource "{name}" in API group "{group}"'
        told = any(words in message and ACCOUNT in message for message in said)
        yield Check(f"told that it may not list {resource}", words, words if told else said)
    silent = {each["name"] for each in folder.report["not_judged"]}
    yield Check("nodes-exhausted is not judged", True, "nodes-exhausted" in silent)


def check_metrics(folder: Folder, stage: Stage) -> Iterator[Check]:
    """What Prometheus scraped from the platform's pages."""
    samples = [each for each in folder.rows(Sample) if each.metric == "argo_workflows"]
    phases = {each.labels.get("phase") for each in samples}
    yield Check("phases of workflows in Prometheus", {"Pending", "Running", "Succeeded", "Failed"}, phases)
    done = max((each.value for each in samples if each.labels.get("phase") == "Succeeded"), default=0.0)
    most = sum(run["state"] == "SUCCEEDED" for run in stage.kfp.runs.values())
    yield Check("workflows that succeeded, by Prometheus, at most", True, 0 < done <= most)


def check_store(folder: Folder, bucket: Path) -> Iterator[Check]:
    """The probe of the object store."""
    values = [each.value for each in folder.rows(Sample) if each.metric == STORE_WRITABLE]
    yield Check("the store could be written", True, bool(values) and min(values) == 1.0)
    yield Check(
        "objects that the probe left behind", [], sorted(str(each) for each in bucket.rglob("*") if each.is_file())
    )

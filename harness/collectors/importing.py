"""Records from files instead of a live platform, so that a report needs no second test.

The content of a file decides its kind: Kubernetes objects (``kubectl get nodes,pods,events,pvc,workflows -o json``),
pages of a platform's listing of runs (``GET …/runs``), or responses of Prometheus to ``query_range``. Where
the runs of a platform are objects, as Argo's workflows are, these are its runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import orjson

from harness import reading
from harness.collectors.collector import Observation
from harness.collectors.kubernetes import pvcs
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.reflector import Manifest, OnChange
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.kubernetes.workflow import watch as workflows
from harness.collectors.kubernetes.workflow.controller_limits import ControllerArguments, see_config_map
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.run_watch import OFFLOADED
from harness.collectors.runs.tasks import record_task
from harness.model import ConfigError, Sample
from harness.model.argo.nodes import is_offloaded
from harness.model.http import HttpAnswer
from harness.model.phases import NOT_REACHABLE
from harness.targets.target import ListsRuns, Target, WatchesRuns

_ORDER = ("ConfigMap", "Node", "Pod", workflows.KIND, "Event", pvcs.KIND)  # events refer to pods and workflows

_DATES = ("Time", "Timestamp", "At", "_at", "_time")
_AHEAD = frozenset({"deletionTimestamp", "expirationTimestamp", "renewTime"})  # of what is still to happen
_COMPLETE = "give the complete response"


class DumpKind(Enum):
    """What a file holds."""

    OBJECTS = auto()  # of Kubernetes
    RUNS = auto()
    SAMPLES = auto()


@dataclass(frozen=True, slots=True)
class Dump:
    """A file that was read."""

    path: Path
    kind: DumpKind
    document: Mapping[str, Any]


def read_files(paths: Iterable[Path]) -> list[Dump]:
    """The content of `paths`.

    Raises:
        ConfigError: a file can't be read, or is of no known kind.
    """
    return [_read(path) for path in paths]


def count_runs(dumps: Iterable[Dump], target: Target) -> int:
    """How many runs of the target's platform they list.

    Raises:
        ConfigError: a file is damaged.
    """
    count = 0
    for dump in dumps:
        runs = dump.document.get("runs") if dump.kind is DumpKind.RUNS else None
        count += len(runs) if isinstance(runs, list) else 0
        if dump.kind is DumpKind.OBJECTS and isinstance(target, WatchesRuns):
            with reading.structured(dump.path, _COMPLETE):
                count += sum(item["kind"] == workflows.KIND for item in _items(dump))
    return count


def statuses_in(dumps: Iterable[Dump]) -> Iterator[Mapping[str, Any]]:
    """The statuses of the workflows in dumps that were imported."""
    for dump in dumps:
        if dump.kind is DumpKind.OBJECTS:
            yield from (item.get("status") or {} for item in _items(dump) if item["kind"] == workflows.KIND)


def latest_at(dumps: Iterable[Dump]) -> int:
    """The last instant that the dumps show, UTC ns: what had not ended then is censored there. 0 if they show none."""
    return max((at for dump in dumps for at in _instants(dump.document)), default=0)


def _instants(document: object) -> Iterator[int]:
    """The instants of objects and runs, by the names that their APIs give them, and those of samples."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if isinstance(value, str) and key.endswith(_DATES) and key not in _AHEAD:
                with suppress(ValueError):
                    yield at.at if (at := stamp(value)) else 0
            elif key == "values" and isinstance(value, list):
                with suppress(TypeError, ValueError, LookupError, OverflowError):  # another reader says what is wrong
                    yield round(float(value[-1][0]) * 1e9)
            else:
                yield from _instants(value)
    elif isinstance(document, list):
        for each in document:
            yield from _instants(each)


def import_files(observation: Observation, dumps: Sequence[Dump]) -> Mapping[str, int]:
    """Record the dumps; returns how many objects of each kind there were.

    Raises:
        ConfigError: a file is damaged.
    """
    objects: dict[str, list[tuple[Path, dict[str, Any]]]] = {kind: [] for kind in _ORDER}
    counts: Counter[str] = Counter()
    known = KnownRuns(observation.plan)
    for dump in (each for each in dumps if each.kind is DumpKind.OBJECTS):
        with reading.structured(dump.path, _COMPLETE):
            for item in _items(dump):
                objects[str(item["kind"])].append((dump.path, item))
    for dump in dumps:
        with reading.structured(dump.path, _COMPLETE):
            if dump.kind is DumpKind.RUNS:
                counts["Run"] += _record_runs(observation, dump, known)
            elif dump.kind is DumpKind.SAMPLES:
                counts["Sample"] += _record_samples(observation, dump)
    if found := _record_run_objects(observation, objects[workflows.KIND], known):
        counts["Run"] += found
    _record_objects(observation, objects)
    return dict(counts) | {kind: len(each) for kind, each in objects.items() if each}


def _read(path: Path) -> Dump:
    try:
        document = reading.parse_json(reading.read_bytes(path, reading.MOST_TABLE_BYTES), path, "kubectl needs -o json")
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "give the path of a readable file") from error
    if isinstance(document, dict):
        if "items" in document:
            return Dump(path, DumpKind.OBJECTS, document)
        if "kind" in document and "metadata" in document:  # of kubectl get with a name
            return Dump(path, DumpKind.OBJECTS, {"items": [document]})
        if "runs" in document or not document:  # a listing without any run is {}
            return Dump(path, DumpKind.RUNS, document)
        if "data" in document:
            return Dump(path, DumpKind.SAMPLES, document["data"])
    raise ConfigError(
        f"{path} holds neither Kubernetes objects, nor runs, nor a range of samples",
        "give the output of kubectl get nodes,pods,events,pvc,workflows -o json, GET /runs, or query_range",
    )


def _items(dump: Dump) -> Iterator[dict[str, Any]]:
    """The objects of a list, each with its kind: the items of a list of one kind do not repeat it."""
    common = str(dump.document.get("kind", "")).removesuffix("List")
    for k, item in enumerate(dump.document["items"] or ()):
        kind = str(item.get("kind") or common)
        if kind not in _ORDER:
            raise ConfigError(
                f"{dump.path}: items[{k}] is a {kind or 'thing without a kind'}",
                "give nodes, pods, events, pvc, workflows or configmaps",
            )
        yield {**item, "kind": kind}


def _record_runs(observation: Observation, dump: Dump, known: KnownRuns) -> int:
    """A page of the platform's listing, read by the platform's own target."""
    listing, name = observation.target, observation.plan.target
    if not isinstance(listing, ListsRuns):
        raise ConfigError(f"{dump.path} lists runs, but {name} has no listing", "give the platform that it is from")
    page = listing.list_runs(lambda _request: HttpAnswer(200, orjson.dumps(dump.document)))
    for run in page.runs:
        for record in known.see(run, observation.journal.now()):
            observation.journal.write(record)
    return len(page.runs)


def _record_run_objects(observation: Observation, found: list[tuple[Path, dict[str, Any]]], known: KnownRuns) -> int:
    """The runs that are objects, with their tasks."""
    target, journal = observation.target, observation.journal
    if not isinstance(target, WatchesRuns):
        return 0
    for path, each in found:
        with reading.structured(path, _COMPLETE):
            run = target.read_run(each)
            for record in known.see(run, journal.now()):
                journal.write(record)
            if is_offloaded(each.get("status") or {}):
                journal.note(NOT_REACHABLE, "tasks", OFFLOADED)
            try:
                tasks = target.tasks_in(each) if run.id in known.over else ()
            except ValueError:  # the reader of the cluster's objects says which nodes can't be read
                tasks = ()
            for task in tasks:
                record_task(observation, run.id, task)
    return len(found)


def _record_samples(observation: Observation, dump: Dump) -> int:
    """A matrix; series without a metric name get the file's name."""
    found = dump.document.get("resultType")
    if found != "matrix":
        raise ConfigError(f"{dump.path} holds a {found} instead of a range of samples", "use query_range")
    count = 0
    for each in dump.document["result"]:
        labels = {str(name): str(value) for name, value in each["metric"].items()}
        metric = labels.pop("__name__", dump.path.stem)
        for at_s, text in each["values"]:
            value = float(text)
            if value == value:  # noqa: PLR0124  # NaN is no value
                observation.journal.write(Sample(metric, round(float(at_s) * 1e3) * 10**6, value, labels))
                count += 1
    return count


def _record_objects(observation: Observation, objects: Mapping[str, Iterable[tuple[Path, dict[str, Any]]]]) -> None:
    journal, since = observation.journal, observation.plan.started_at
    nodes, pods = Nodes(journal), Pods(journal, since)
    known = workflows.Workflows(journal, since)
    controller = ControllerArguments(journal)
    events = Events(
        journal, pods.see_event, since, run_of_workflow=known.run_of, see_other_event=pods.see_other_event
    )  # fmt: skip

    def see_pod(change: str, manifest: Manifest) -> None:
        pods.see(change, manifest)
        controller.see(change, manifest)

    see: dict[str, OnChange] = {
        "Node": nodes.see, "Pod": see_pod, "Event": events.see,
        pvcs.KIND: pvcs.Claims(journal).see, workflows.KIND: known.see,
        "ConfigMap": lambda _change, manifest: see_config_map(journal, manifest),
    }  # fmt: skip
    for kind in _ORDER:
        for path, each in objects[kind]:
            with reading.structured(path, _COMPLETE):
                see[kind]("ADDED", each)
                if kind == "Node":
                    pods.see_node(each, nodes.known.get(str(each["metadata"]["name"])))
    events.release(every=True)

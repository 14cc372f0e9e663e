"""Records from files instead of from a live platform, so that a report needs no second test.

Files are told apart by what is in them: what ``kubectl get nodes,pods,events,pvc,workflows -o json`` prints, pages of
a platform's listing of runs (``GET …/runs``), answers of Prometheus to ``query_range``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from harness.collectors.collector import Observation
from harness.collectors.kubernetes import pvcs, workflows
from harness.collectors.kubernetes.cluster import Pods
from harness.collectors.kubernetes.events import Events
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.reflector import OnChange
from harness.collectors.runs.listing import Runs
from harness.model.errors import ConfigError
from harness.model.http import HttpAnswer
from harness.model.records import Sample
from harness.targets.target import Listing

_ORDER = ("Node", "Pod", "Event", pvcs.KIND, workflows.KIND)  # events tell of pods that must be known

Dump = tuple[Path, dict[str, Any]]


def read_files(paths: Iterable[Path]) -> list[Dump]:
    """What is in `paths`.

    Raises:
        ConfigError: a file can't be read, or is none of those that are understood.
    """
    return [(path, _read(path)) for path in paths]


def count_runs(dumps: Iterable[Dump]) -> int:
    """How many runs they list."""
    lists = (document.get("runs") for _, document in dumps)
    return sum(len(runs) for runs in lists if isinstance(runs, list))


def import_files(observation: Observation, dumps: Sequence[Dump]) -> Mapping[str, int]:
    """Record what was read; returns how many objects of each kind there were.

    Raises:
        ConfigError: a file is damaged.
    """
    objects: dict[str, list[tuple[Path, dict[str, Any]]]] = {kind: [] for kind in _ORDER}
    counts: dict[str, int] = {}
    for path, document in dumps:
        if "items" in document:
            with _reading(path):
                for each in _items(path, document):
                    objects[str(each["kind"])].append((path, each))
    for path, document in dumps:
        with _reading(path):
            if _lists_runs(document):
                counts["Run"] = counts.get("Run", 0) + _record_runs(observation, path)
            elif "data" in document:
                counts["Sample"] = counts.get("Sample", 0) + _record_samples(observation, path, document["data"])
    _record_objects(observation, objects)
    return counts | {kind: len(found) for kind, found in objects.items() if found}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What is in `path` is read here: whatever it lacks is told as its fault."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path} is damaged, or cut: {what}", "give the whole answer, as it came") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "name a file") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path} is not JSON: {error}", "kubectl needs -o json") from error
    if not isinstance(document, dict) or not ({"items", "data"} & set(document) or _lists_runs(document)):
        raise ConfigError(
            f"{path} holds neither Kubernetes objects, nor runs, nor a range of samples",
            "give the answer of kubectl get nodes,pods,events,pvc,workflows -o json, GET /runs, or query_range",
        )
    return document


def _lists_runs(document: Mapping[str, Any]) -> bool:
    """A listing of runs leaves out what is empty: without any run it is ``{}``."""
    return "runs" in document or not document


def _items(path: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects of a list; those of a list of one kind do not repeat it."""
    of_all = str(document.get("kind", "")).removesuffix("List")
    for k, item in enumerate(document["items"] or ()):
        kind = str(item.get("kind") or of_all)
        if kind not in _ORDER:
            raise ConfigError(
                f"{path}: items[{k}] is a {kind or 'thing without a kind'}",
                "give nodes, pods, events, pvc or workflows",
            )
        yield {**item, "kind": kind}


def _record_runs(observation: Observation, path: Path) -> int:
    """A page of the platform's listing, read by the platform's own target."""
    listing = observation.target
    if not isinstance(listing, Listing):
        raise ConfigError(f"{path} lists runs, and {observation.plan.target} lists none", "name the platform it is of")
    return Runs(observation, listing, lambda _request: HttpAnswer(200, path.read_bytes())).take_page()


def _record_samples(observation: Observation, path: Path, data: Mapping[str, Any]) -> int:
    """A matrix; where a query left no metric name, the file's name is it."""
    if data.get("resultType") != "matrix":
        raise ConfigError(f"{path} is no range of samples, but a {data.get('resultType')}", "ask for query_range")
    count = 0
    for each in data["result"]:
        labels = {str(name): str(value) for name, value in each["metric"].items()}
        metric = labels.pop("__name__", path.stem)
        for at_s, text in each["values"]:
            value = float(text)
            if value == value:  # noqa: PLR0124  # NaN is no value
                observation.journal.write(Sample(metric, round(float(at_s) * 1e3) * 10**6, value, labels))
                count += 1
    return count


def _record_objects(observation: Observation, objects: Mapping[str, Iterable[tuple[Path, dict[str, Any]]]]) -> None:
    journal, since = observation.journal, observation.plan.started_at
    nodes, pods = Nodes(journal), Pods(journal, since)
    events = Events(journal, pods.see_event, since, set())
    see: dict[str, OnChange] = {
        "Node": nodes.see, "Pod": pods.see, "Event": events.see,
        pvcs.KIND: pvcs.Claims(journal).see, workflows.KIND: workflows.Workflows(journal, since).see,
    }  # fmt: skip
    for kind in _ORDER:
        for path, each in objects[kind]:
            with _reading(path):
                see[kind]("ADDED", each)
    events.release(every=True)

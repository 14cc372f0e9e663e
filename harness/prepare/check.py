"""What would spoil a load test of a compiled pipeline, step by step."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from harness.model.units import format_duration
from harness.prepare.changes import platform_of
from harness.prepare.settings import RESOURCE_KEYS, SPOT
from harness.prepare.steps import Document, Task, container_of, tasks_of

# Tags that registries move to newer images; `latest` is also what no tag means.
_MOVING = frozenset({"latest", "main", "master", "dev", "develop", "edge", "nightly", "stable", "snapshot", "test"})
_PIP_INSTALL = re.compile(r"\bpip3?\s+install\b[^\n]*")
_REQUIREMENT = re.compile(r"'([^'-][^']*)'")  # an option begins with a hyphen
# Names of what loses state or stops serving when its node is taken away.
_KEEPS_OR_SERVES = re.compile(
    r"(?<![a-z])(serv(e|er|es|ing)|infer(ence)?|online|database|datastore|mysql|mariadb|postgres(ql)?|mongo(db)?|redis"
    r"|kafka|elasticsearch|notebook|jupyter|dashboard)(?![a-z])"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What would spoil the test.

    Attributes:
        kind: its name, for programs.
        task: the step; "" for the whole pipeline.
        found: what the pipeline has.
        cost: what it does to a load test.
        remedy: what to do; a question where only the user can know.
        at_most_s: seconds that it costs at each start, at most; none if that was not measured.
    """

    kind: str
    task: str
    found: str
    cost: str
    remedy: str
    at_most_s: float | None = None


def check(
    documents: Sequence[Document],
    spot: tuple[str, str] | None = None,
    quickest_s: Mapping[str, float] = MappingProxyType({}),
) -> list[Finding]:
    """Everything that would spoil a load test, in the order of the pipeline's tasks.

    Args:
        documents: of the pipeline.
        spot: a label that spot nodes have besides those of known providers.
        quickest_s: by step, how long its container ran in the quickest run of a test.

    Raises:
        LookupError: a part of the documents is missing.
    """
    spec, platform = documents[0], platform_of(documents[1] if len(documents) > 1 else {})
    spot_labels = {*SPOT.values(), *([spot] if spot else [])}
    found = list(_inputs(spec, platform))
    for task in tasks_of(spec):
        found += _caching(task)
        container = container_of(spec, task)
        if container is not None:
            on_platform = platform.get(task.label, {})
            name = task.name
            installs = _installs(name, container, quickest_s.get(name))
            found += [*_requests(name, container), *installs, *_image(name, container)]
            if _on_spot(on_platform, spot_labels):
                found += [*_retries(task), *_unfit(task.name, container, on_platform)]
    return list(dict.fromkeys(found))


def _inputs(spec: Mapping[str, Any], platform: Mapping[str, Any]) -> Iterator[Finding]:
    if not spec["root"].get("inputDefinitions", {}).get("parameters"):
        what = "the pipeline has no inputs"
        cost = "every run does the same: neither sizes nor sources of data vary, and caches of any kind look better"
        yield Finding("identical-runs", "", what, cost, "give the pipeline parameters, and scenarios for them")
    elif unused := _unused_inputs(spec, platform):
        cost = "scenarios that vary them change nothing"
        yield Finding(
            "unused-input", "", f"no step reads {', '.join(unused)}", cost, "pass them to a step, or remove them"
        )


def _unused_inputs(spec: Mapping[str, Any], platform: Mapping[str, Any]) -> list[str]:
    """The pipeline's parameters that neither its root DAG nor an executor mentions."""
    text = repr((spec["root"].get("dag", {}), spec.get("deploymentSpec", {}).get("executors", {}), platform))
    return [name for name in spec["root"]["inputDefinitions"]["parameters"] if not re.search(_whole(name), text)]


def _whole(name: str) -> str:
    return rf"(?<![\w-]){re.escape(name)}(?![\w-])"


def _caching(task: Task) -> Iterator[Finding]:
    """Of tasks with an executor: KFP caches neither nested pipelines nor conditions and loops themselves."""
    if task.label and task.spec.get("cachingOptions", {}).get("enableCache"):
        cost = "a step with known inputs is not executed, so the test measures the cache"
        yield Finding("caching", task.name, "caching is on", cost, "--caching off")


def _requests(name: str, container: Mapping[str, Any]) -> Iterator[Finding]:
    given = container.get("resources", {})
    missing = [
        kind.partition("_")[0]
        for kind, (text, number, _) in RESOURCE_KEYS.items()
        if kind.endswith("request") and text not in given and number not in given
    ]
    if missing:
        what = f"no request for {' and '.join(missing)}".replace("cpu", "CPU")
        cost = "the scheduler packs such pods without limit, so jobs per node mean nothing"
        remedy = "--cpu-request and --memory-request, or --resources with the output of pipeswarm resources RUN --json"
        yield Finding("no-requests", name, what, cost, remedy)


def _installs(name: str, container: Mapping[str, Any], quickest_s: float | None) -> Iterator[Finding]:
    script = "\n".join(str(each) for each in (*container.get("command", ()), *container.get("args", ())))
    if calls := _PIP_INSTALL.findall(script):
        packages = list(dict.fromkeys(each for call in calls for each in _REQUIREMENT.findall(call)))
        what = f"installs {', '.join(packages)} at every start" if packages else "runs pip install at every start"
        cost = "each run waits for the package index, which the test loads too"
        if quickest_s is not None:
            cost += f"; at most {format_duration(quickest_s)} per start, which the quickest run of the step took in all"
        remedy = "build an image that has them (kfp component build)"
        yield Finding("pip-install", name, what, cost, remedy, quickest_s)


def _image(name: str, container: Mapping[str, Any]) -> Iterator[Finding]:
    image = str(container.get("image", ""))
    if "@" in image or "{{" in image:  # a digest; a run's parameter
        return
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in _MOVING or not tag:
        what = f"image {image} has {f'the moving tag {tag}' if tag else 'no tag'}"
        pulled = "; Kubernetes asks the registry for it at every start" if tag in ("", "latest") else ""
        cost = f"two tests may run different images{pulled}"
        yield Finding("mutable-image", name, what, cost, "name a digest or a version (--image-map FROM=TO)")


def _on_spot(platform: Mapping[str, Any], spot: Collection[tuple[str, str]]) -> bool:
    """Whether a pod may run on nodes with one of the labels `spot`: it tolerates, selects or requires them."""
    labels = set(platform.get("nodeSelector", {}).get("labels", {}).items())
    for term in platform.get("nodeAffinity", ()):
        for each in term.get("matchExpressions", ()):
            labels |= {(each["key"], value) for value in each.get("values", ()) if each["operator"] == "In"}
    for each in platform.get("tolerations", ()):
        values = {value for key, value in spot if key == each.get("key")} if each.get("operator") == "Exists" else ()
        labels |= {(each.get("key"), value) for value in (*values, each.get("value"))}
    return not labels.isdisjoint(spot)


def _retries(task: Task) -> Iterator[Finding]:
    if not task.spec.get("retryPolicy", {}).get("maxRetryCount"):
        cost = "the first eviction of its node fails the whole run"
        yield Finding(
            "no-retries-on-spot", task.name, "may run on spot nodes without retries", cost, "--retries 5 --backoff 5m"
        )


def _unfit(name: str, container: Mapping[str, Any], platform: Mapping[str, Any]) -> Iterator[Finding]:
    signs = [f"mounts the volume at {each.get('mountPath', '?')}" for each in platform.get("pvcMount", ())]
    for what, text in (("name", name), ("image", str(container.get("image", "")))):
        if match := _KEEPS_OR_SERVES.search(text.lower()):
            signs.append(f"its {what} says '{match[0]}'")
    if signs:
        cost = "an eviction loses its state, or interrupts those that it serves"
        remedy = "does it keep state or serve requests? If so, leave it on ordinary nodes (--task for the others)"
        yield Finding("unfit-for-spot", name, f"may run on spot nodes, and {' and '.join(signs)}", cost, remedy)

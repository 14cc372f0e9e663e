"""Settings applied to a pipeline's documents."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.prepare.placement import place
from harness.prepare.pools import parametrize
from harness.prepare.settings import RESOURCE_KEYS, Resources, Retry, Settings
from harness.prepare.steps import Document, Task, container_of, matching, separate

_CACHING = "cachingOptions"
PLATFORM_PATH = ("platforms", "kubernetes", "deploymentSpec", "executors")


def prepared(documents: Sequence[Document], settings: Settings) -> list[Document]:
    """The documents with the settings; preparing these again with the same settings changes nothing.

    Raises:
        ConfigError: a task pattern or image matches nothing, or settings contradict the pipeline.
        LookupError: a part of the documents is missing.
    """
    spec, *rest = map(_copied, documents)
    platform_document = rest[0] if rest else {}
    chosen = matching(spec, settings.tasks)
    if not settings.caching:
        disable_caching(chosen)
    before = platform_of(platform_document)
    platform = deepcopy(before)
    if _changes_executors(settings):
        separate(spec, platform, {task.key for task in chosen})
        chosen = matching(spec, settings.tasks)
    steps = [(task, container) for task in chosen if (container := container_of(spec, task)) is not None]
    _resources(steps, settings)
    _images(steps, settings.images)
    if settings.placement.parameter:
        parametrize(spec, platform, [task for task, _ in steps], settings.placement)
    for task, _ in steps:
        if settings.retry is not None:
            _retry(task.spec, settings.retry)
        if changed := _on_platform(platform.get(task.label, {}), settings, task.name):
            platform[task.label] = changed
    if platform != before:
        _store(platform_document, platform)
        rest = [platform_document, *rest[1:]]
    return [spec, *rest]


def disable_caching(tasks: Sequence[Task]) -> bool:
    """Clear the caching options of the tasks, in place; whether any changed."""
    cached = [task.spec for task in tasks if task.spec.get(_CACHING, {}).get("enableCache")]
    for spec in cached:
        spec[_CACHING] = {}
    return bool(cached)


def platform_of(document: Mapping[str, Any]) -> Document:
    """The settings by executor in a PlatformSpec."""
    found: Any = document
    for key in PLATFORM_PATH:
        found = found.get(key) or {}
    return dict(found)


def _copied(node: Any) -> Any:
    """A copy that shares nothing: with YAML's aliases, several places of a document are one object."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(value) for value in node] if isinstance(node, list) else node


def _store(document: Document, executors: Document) -> None:
    inner = document
    for key in PLATFORM_PATH[:-1]:
        inner[key] = inner = inner.get(key) or {}
    inner[PLATFORM_PATH[-1]] = executors


def _changes_executors(settings: Settings) -> bool:
    """Whether a setting belongs to an executor: caching and retries belong to the task."""
    of_tasks = {"tasks", "caching", "retry"}
    unset = Settings()
    return any(getattr(settings, f.name) != getattr(unset, f.name) for f in fields(Settings) if f.name not in of_tasks)


def _retry(task: Document, retry: Retry) -> None:
    if not retry.count:
        task.pop("retryPolicy", None)
        return
    task["retryPolicy"] = {
        "maxRetryCount": retry.count,
        "backoffDuration": _duration(retry.backoff_s),
        "backoffFactor": float(retry.factor),
        "backoffMaxDuration": _duration(retry.most_s),
    }


def _duration(seconds: float) -> str:
    """As protobuf's JSON writes a Duration: seconds with up to three decimals here."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def _on_platform(given: Document, settings: Settings, task: str) -> Document:
    changed = place(given, settings.placement, task)
    if settings.pull_policy:
        changed["imagePullPolicy"] = settings.pull_policy
    if settings.labels:
        metadata = changed.get("podMetadata", {})
        changed["podMetadata"] = metadata | {"labels": metadata.get("labels", {}) | dict(settings.labels)}
    if settings.timeout_s:
        changed["activeDeadlineSeconds"] = f"{settings.timeout_s}"  # protobuf's JSON writes 64-bit numbers as text
    return changed


def _resources(steps: Sequence[tuple[Task, Document]], settings: Settings) -> None:
    by_step = settings.by_step or {}
    unknown = sorted(by_step.keys() - {task.name for task, _ in steps})
    if by_step and len(unknown) == len(by_step):
        raise ConfigError(
            f"--resources: no step is called {', '.join(unknown)}", "give the file of a run of this pipeline"
        )
    for task, container in steps:
        for resources in (settings.resources, by_step.get(task.name, Resources())):
            if resources != Resources():
                container["resources"] = _with(container.get("resources", {}), resources)
                _check_limits(task.name, container["resources"])


def _with(given: Document, wanted: Resources) -> Document:
    """KFP's ResourceSpec with both the text and, for servers before KFP 2.7, the number, as the SDK writes them."""
    changed = dict(given)
    for name, (text, number, unit) in RESOURCE_KEYS.items():
        if quantity := getattr(wanted, name):
            changed |= {text: quantity, number: parse_quantity(quantity) / unit}
    if wanted.gpus == 0:
        changed.pop("accelerator", None)
    elif wanted.gpus is not None:
        count = f"{wanted.gpus}"
        changed["accelerator"] = {
            "count": count,
            "resourceCount": count,
            "resourceType": wanted.gpu,
            "type": wanted.gpu,
        }
    return changed


def _check_limits(task: str, resources: Mapping[str, Any]) -> None:
    for name in ("cpu", "memory"):
        request, limit = (_amount(resources, *RESOURCE_KEYS[f"{name}_{each}"]) for each in ("request", "limit"))
        if request is not None and limit is not None and request > limit:
            what = {"cpu": "CPU", "memory": "memory"}[name]
            raise ConfigError(
                f"step {task}: its {what} request of {request:g} is above its limit of {limit:g}",
                f"Kubernetes refuses such a pod: set --{name}-limit, too",
            )


def _amount(resources: Mapping[str, Any], text: str, number: str, unit: float) -> float | None:
    """Cores or bytes; none if not given, or a placeholder that only the run fills in."""
    try:
        if text in resources:
            return parse_quantity(str(resources[text]))
        return parse_quantity(resources[number]) * unit if number in resources else None
    except ConfigError:
        return None


def _images(steps: Sequence[tuple[Task, Document]], mapped: Sequence[tuple[str, str]]) -> None:
    for before, after in mapped:
        of_it = [container for _, container in steps if _begins(container["image"], before, after)]
        if not of_it:
            images = ", ".join(sorted({container["image"] for _, container in steps}))
            raise ConfigError(f"--image-map: no image begins with '{before}'", f"the images: {images}")
        for container in of_it:
            if not container["image"].startswith(after):
                container["image"] = after + container["image"].removeprefix(before)


def _begins(image: str, before: str, after: str) -> bool:
    """Whether the image is to be replaced, or is already; a name counts as a whole: ``a/b`` does not begin ``a/bc``."""
    if image.startswith(after):
        return True
    rest = image.removeprefix(before)
    return image.startswith(before) and (not before or before[-1] == "/" or rest[:1] in ("", "/", ":", "@"))

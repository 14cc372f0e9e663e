"""Metric profiles: what is worth recording of a component, under the names that its versions export it.

A profile is a YAML file. Each of its metrics has a name of ours, a kind, the labels that distinguish its series, and
the names it has had on the platform, of which the first that exists is used::

    title: Argo workflow controller
    metrics:
      - name: argo_queue_depth          # ours
        any_of: [argo_workflows_queue_depth_gauge, argo_workflows_queue_depth_count]
        kind: gauge                     # counters are recorded as rates per second, histograms as quantiles
        by: [queue_name]
        where: {queue_name: workflow_queue}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness import reading
from harness.model.errors import ConfigError

_FOLDER = Path(__file__).with_name("profiles")
_KEYS = frozenset({"name", "any_of", "kind", "buckets", "by", "where", "rename", "labels", "fold"})
_FOLDS = frozenset({"sum", "max", "min"})
QUANTILES = (0.5, 0.99)
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class Kind(StrEnum):
    """What a metric's values mean."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of a profile.

    Attributes:
        name: of the samples.
        any_of: its names on the platform, newest first; of a histogram without the suffix of its buckets.
        kind: gauges are recorded as they are, counters as rates per second, histograms as quantiles.
        by: labels that distinguish series; series that differ in other labels are folded into one.
        where: required values of labels; a leading ``~`` makes one a regular expression.
        rename: labels that samples carry under another name.
        fixed: labels that every sample carries.
        buckets: suffix of a histogram's series.
        fold: sum, max or min.
    """

    name: str
    any_of: tuple[str, ...]
    kind: Kind = Kind.GAUGE
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    buckets: str = "_bucket"
    fold: str = "sum"

    @property
    def suffix(self) -> str:
        """Of the series on the platform."""
        return self.buckets if self.kind is Kind.HISTOGRAM else ""

    def queries(self, found: str, window_s: int, more: str = "") -> dict[str, str]:
        """PromQL for the name that was `found`, by quantile; "" is the key unless it is a histogram.

        `more` are matchers in addition to the metric's own.
        """
        matchers = ",".join([*(_matcher(label, value) for label, value in self.where), *filter(None, [more])])
        series = f"{found}{self.suffix}" + (f"{{{matchers}}}" if matchers else "")
        by = ",".join(self.by)
        match self.kind:
            case Kind.GAUGE:
                return {"": f"{self.fold} by ({by}) ({series})"}
            case Kind.COUNTER:
                return {"": f"{self.fold} by ({by}) (rate({series}[{window_s}s]))"}
            case Kind.HISTOGRAM:
                inner = f"sum by ({','.join(('le', *self.by))}) (rate({series}[{window_s}s]))"
                return {str(q): f"histogram_quantile({q}, {inner})" for q in QUANTILES}

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a series of a page has the required labels; its job is the page's."""
        for label, wanted in self.where:
            if label == "job":
                continue
            value = labels.get(label, "")
            if not (re.fullmatch(wanted[1:], value) if wanted.startswith("~") else value == wanted):
                return False
        return True

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of a sample: the distinguishing ones, under our names, and the fixed ones."""
        ours = dict(self.rename)
        return {ours.get(label, label): labels[label] for label in self.by if labels.get(label)} | dict(self.fixed)


@dataclass(frozen=True, slots=True)
class Profile:
    """The metrics of one component."""

    name: str
    title: str
    metrics: tuple[Metric, ...]


def names() -> list[str]:
    """Names of the built-in profiles, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load(name: str, platform: tuple[str, ...] = (), own: tuple[str, ...] = ()) -> Profile:
    """The built-in profile `name`, or the one in the file `name`.

    Args:
        name: of the profile.
        platform: the platform's namespaces, for which ``$platform`` stands in it; none is every namespace.
        own: those of the runs; with the platform's, they are ``$observed``.

    Raises:
        ConfigError: it does not exist or is invalid.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else _FOLDER / f"{name}.yaml"
    try:
        text = reading.read_text(path)
    except OSError as error:
        raise ConfigError(
            f"there is no metric profile '{name}'", f"profiles are: {', '.join(names())}, or a .yaml file"
        ) from error
    observed = (*platform, *own) if platform and own else ()
    for sign, namespaces in (("$platform", platform), ("$observed", observed)):
        text = text.replace(sign, "|".join(map(re.escape, dict.fromkeys(namespaces))) or ".*")
    document = next(iter(reading.parse_yaml(text, f"the metric profile {path}")), None)
    if not isinstance(document, dict) or not isinstance(document.get("metrics"), list):
        raise ConfigError(f"the metric profile {path} has no list 'metrics'", "take a built-in profile as an example")
    with reading.structured(f"the metric profile {path}"):
        metrics = tuple(_metric(each, f"{path}: metrics[{k}]") for k, each in enumerate(document["metrics"]))
    return Profile(path.stem, str(document.get("title", path.stem)), metrics)


def _metric(raw: Any, where: str) -> Metric:
    if not isinstance(raw, dict):
        raise ConfigError(f"{where} is not a mapping", "it needs name and any_of")
    unknown = set(raw) - _KEYS
    if unknown:
        raise ConfigError(f"{where} has an unknown key '{min(unknown)}'", f"keys are: {', '.join(sorted(_KEYS))}")
    candidates = raw.get("any_of")
    if not isinstance(candidates, list) or not candidates or not all(_is_name(candidate) for candidate in candidates):
        raise ConfigError(f"{where}: 'any_of' is not a list of metric names", "write any_of: [new_name, old_name]")
    if not _is_name(raw.get("name")):
        raise ConfigError(f"{where}: 'name' is not a metric name", "use letters, digits and _")
    if raw.get("kind", "gauge") not in set(Kind):
        raise ConfigError(f"{where}: '{raw['kind']}' is not a kind", f"kinds are: {', '.join(Kind)}")
    if raw.get("fold", "sum") not in _FOLDS:
        raise ConfigError(f"{where}: '{raw['fold']}' is not a fold", f"folds are: {', '.join(sorted(_FOLDS))}")
    for key in ("where", "rename", "labels"):
        if not isinstance(raw.get(key) or {}, dict):
            raise ConfigError(f"{where}: '{key}' is not a mapping", f"write {key}: {{label: value}}")
    if not isinstance(raw.get("by") or [], list):
        raise ConfigError(f"{where}: 'by' is not a list", "write by: [label]")
    return Metric(
        name=raw["name"],
        any_of=tuple(candidates),
        kind=Kind(raw.get("kind", "gauge")),
        by=tuple(map(str, raw.get("by") or ())),
        where=_pairs(raw.get("where")),
        rename=_pairs(raw.get("rename")),
        fixed=_pairs(raw.get("labels")),
        buckets=str(raw.get("buckets", "_bucket")),
        fold=raw.get("fold", "sum"),
    )


def _pairs(raw: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(key), str(value)) for key, value in (raw or {}).items()))


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def _matcher(label: str, value: str) -> str:
    operator, text = ("=~", value[1:]) if value.startswith("~") else ("=", value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{label}{operator}"{escaped}"'

"""What a store holds of a time, and what to ask it for: a hundred requests or so, whatever the length of the time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from harness.collectors.metrics import profiles_file
from harness.collectors.metrics.kube_state_series import ALL, OF_NODES, Series
from harness.collectors.metrics.past import Ask
from harness.collectors.metrics.profiles_file import Metric
from harness.collectors.metrics.prometheus import PrometheusApi, Query
from harness.model.errors import ConfigError
from harness.store.answers import Answers

USAGE = Path(profiles_file.__file__).with_name("profiles") / "past" / "usage.yaml"
_PROBE = "probe"  # key of an answer
_STATES_S = 8 * 3600  # of one request for states: a day of all sources takes 200 requests
_MOST_POINTS = 1500  # of a series of one metric
_LEAST_WINDOW_S = 60  # of rates: jobs are scraped at different intervals
_SCRAPES = 4  # a rate needs two, and one may be missing or late
_PROBED_S = 600
_USUAL_S = 30
_EXPORTED = 'exported_pod!=""'
_MATCHER = r'[a-zA-Z_]\w*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\]|\\.)*"'
_MATCHERS = re.compile(rf"\s*{_MATCHER}\s*(?:,\s*{_MATCHER}\s*)*")
_LOOKED_BACK_S = 90 * 86_400
_ANY = '__name__=~"kube_pod_info|kube_node_info|up"'
_RELABELLED = frozenset({"namespace", "pod", "node", "container"})


@dataclass(frozen=True, slots=True)
class Scope:
    """A time, UTC s, and what a store has of it.

    Attributes:
        matchers: of every series.
        interval_s: between two scrapes of kube-state-metrics.
        exported: its labels are called ``exported_namespace`` and so on, for a Prometheus had these names already.
        names: of all metrics.
    """

    start_s: int
    end_s: int
    matchers: str
    interval_s: int
    exported: bool
    names: tuple[str, ...]

    @property
    def known(self) -> bool:
        """It has something that is asked for."""
        return any(name in self.names for series in ALL for name in series.names) or bool(metric_asks(self, (), ()))

    def nothing(self, api: PrometheusApi) -> str:
        """What to say where it has not: since when there is anything.

        Raises:
            UnreachableError: there is no such answer.
        """
        first = since(api, self.matchers, self.end_s)
        known = f"has such metrics only since {first}" if first else "has none of these metrics in 90 days before"
        return f"nothing was measured between {_utc(self.start_s * 10**9)} and {_utc(self.end_s * 10**9)}: it {known}"

    @property
    def step_s(self) -> int:
        """Between two samples of a component's metric."""
        return max(self.interval_s, -(-(self.end_s - self.start_s) // _MOST_POINTS))


def scope_of(api: PrometheusApi, answers: Answers, start_s: int, end_s: int, matchers: str) -> Scope:
    """Ask for it, in three requests, unless an aborted reading has.

    Raises:
        UnreachableError: there is no such answer.
    """
    for known in answers.read(_PROBE):
        return Scope(**known | {"names": tuple(known["names"])})
    names = tuple(sorted(api.names(start_s, end_s)))
    found = (scrape_interval_s(api, matchers, at_s) for at_s in (end_s, (start_s + end_s) // 2))
    interval_s = next(filter(None, found), _USUAL_S)
    exported = f"count(last_over_time(kube_pod_info{{{_joined(matchers, _EXPORTED)}}}[{end_s - start_s}s]))"
    scope = Scope(start_s, end_s, matchers, interval_s, bool(api.ask("/api/v1/query", _at(exported, end_s))), names)
    answers.keep(_PROBE, asdict(scope))
    return scope


def scrape_interval_s(api: PrometheusApi, matchers: str, at_s: int) -> int | None:
    """Between two samples of a node in the ten minutes until then; None where there are none."""
    found = api.ask("/api/v1/query", _at(f"kube_node_info{{{matchers}}}[{_PROBED_S}s]", at_s))
    times = max(([at for at, _ in points] for _, points in found), key=len, default=[])
    return max(1, round(median(after - at for at, after in pairwise(times)) / 1e9)) if len(times) > 1 else None


def since(api: PrometheusApi, matchers: str, end_s: int) -> str:
    """Since when there are series of pods and nodes, within 90 days; "" without any.

    Raises:
        UnreachableError: there is no such answer.
    """
    times = {"start": str(end_s - _LOOKED_BACK_S), "end": str(end_s), "step": str(_LOOKED_BACK_S // 500)}
    found = api.ask("/api/v1/query_range", {"query": f"count({{{_joined(matchers, _ANY)}}})", **times})
    return next((_utc(points[0][0]) for _, points in found), "")


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 10**9, UTC):%Y-%m-%d %H:%M} UTC"


def _at(promql: str, at_s: int) -> dict[str, str]:
    return {"query": promql, "time": str(at_s)}


def _joined(*matchers: str) -> str:
    return ",".join(filter(None, matchers))


def parse_matchers(text: str) -> str:
    """Matchers as in PromQL, ``cluster="x",region=~"eu.*"``; "" is none.

    Raises:
        ConfigError: it is something else.
    """
    if text and not _MATCHERS.fullmatch(text):
        raise ConfigError(f"'{text}' has no labels of series", "write it as 'cluster=\"x\"', more with commas")
    return text


def kube_state_asks(scope: Scope, namespace: str) -> Iterator[tuple[Series, list[Ask]]]:
    """The requests for each series that is there; pods and claims only of `namespace`, "" is all."""
    prefix = "exported_" if scope.exported else ""
    within = f'{prefix}namespace="{namespace}"' if namespace else ""
    for series in ALL:
        found = next((name for name in series.names if name in scope.names), None)
        if found is not None:
            matchers = _joined(scope.matchers, "" if series in OF_NODES else within)
            ask = Ask(series.name, series.promql(found, matchers, scope.interval_s), scope.start_s, scope.end_s)
            yield series, list(ask.chunks(_STATES_S))


@dataclass(frozen=True, slots=True)
class PastMetric:
    """The requests for a query of a profile's metric."""

    query: Query
    asks: tuple[Ask, ...]


def metric_asks(scope: Scope, profiles: Sequence[str], platform: tuple[str, ...]) -> list[PastMetric]:
    """The requests for the profiles' metrics that are there; of all profiles if none is named.

    Raises:
        ConfigError: a profile is invalid.
    """
    window_s, found = max(_SCRAPES * scope.step_s, _LEAST_WINDOW_S), []
    for profile in [*(profiles or profiles_file.names()), str(USAGE)]:
        for k, metric in enumerate(profiles_file.load(profile, platform).metrics):
            name = next((each for each in metric.any_of if each + metric.suffix in scope.names), None)
            if name is None:
                continue
            asked = _exported(metric) if scope.exported and name.startswith("kube_") else metric
            for quantile, promql in asked.queries(name, window_s, scope.matchers).items():
                key = "_".join((Path(profile).stem, str(k), metric.name, quantile))
                ask = Ask(key, promql, scope.start_s, scope.end_s, scope.step_s)
                found.append(PastMetric(Query(metric, promql, quantile), tuple(_chunks(ask, metric))))
    return found


def _chunks(ask: Ask, metric: Metric) -> Iterator[Ask]:
    """What has a series for each pod has many: at the interval of scrapes it comes in several answers."""
    return ask.chunks(_STATES_S if "pod" in metric.by else ask.end_s - ask.start_s)


def _exported(metric: Metric) -> Metric:
    def name(label: str) -> str:
        return f"exported_{label}" if label in _RELABELLED else label

    where = tuple((name(label), text) for label, text in metric.where)
    return replace(metric, by=tuple(map(name, metric.by)), where=where)

"""The platform's own metrics from a Prometheus, by range queries that continue where the last one ended."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any
from urllib.parse import urlencode

import orjson

from harness.collectors.collector import Observation
from harness.collectors.metrics.profiles_file import Kind, Metric, Profile, load, names
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model import Sample, TargetUnreachableError
from harness.model.http import Exchange, HttpRequest, html_page, redirection
from harness.model.live.observer import LiveObserver
from harness.model.phases import NOT_REACHABLE
from harness.targets.credentials import Credentials

_MAX_POINTS = 10_000  # per series and query; Prometheus refuses more than 11,000
_MAX_SERIES = 2_000  # per metric; more are due to a label too many
_MOST_BYTES = 2**26  # of an answer, which takes ten times as much in memory, and several are read at once
_MOST_SAID = 500  # characters of an error
LAST_S = 2**33  # in the year 2242; nanoseconds until then fit 64 bits
_SCRAPES_PER_RATE = 2
_SCRAPES_PER_WINDOW = 4  # one may be missing or late
_BAD_QUERY = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class Query:
    """The values of a metric under the `name` that it has here; `quantile` is "" unless it is a histogram."""

    metric: Metric
    name: str
    quantile: str

    def promql(self, window_s: int) -> str:
        """The expression; a rate is taken over `window_s`."""
        return self.metric.queries(self.name, window_s)[self.quantile]

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of a sample, from those of a series."""
        return self.metric.labels(labels) | ({"quantile": self.quantile} if self.quantile else {})


class PrometheusApi:
    """The queries used of Prometheus' HTTP API, over any exchange.

    Source: https://prometheus.io/docs/prometheus/latest/querying/api/
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def existing(self, candidates: list[str]) -> set[str]:
        """Which of these metric names have series now. One request."""
        query = f'count by (__name__) ({{__name__=~"{"|".join(candidates)}"}})'
        return {labels.get("__name__", "") for labels, _ in self.ask("/api/v1/query", {"query": query})}

    def names(self, start_s: int, end_s: int) -> set[str]:
        """The names of all metrics that have samples in this time. One request."""
        found = self._get("/api/v1/label/__name__/values", {"start": str(start_s), "end": str(end_s)})
        if not isinstance(found, list):
            raise UnreachableError("/api/v1/label/__name__/values did not answer as a Prometheus does")
        return set(map(str, found))

    def series(self, promql: str, start_s: int, end_s: int, step_s: int) -> Iterator[tuple[dict[str, str], int, float]]:
        """(labels, UTC ns, value) from `start_s` to `end_s`, in requests of at most 10,000 points each."""
        while start_s <= end_s:
            last_s = min(end_s, start_s + (_MAX_POINTS - 1) * step_s)
            query = {"query": promql, "start": str(start_s), "end": str(last_s), "step": str(step_s)}
            for labels, points in self.ask("/api/v1/query_range", query)[:_MAX_SERIES]:
                yield from ((labels, at, value) for at, value in points)
            start_s = last_s + step_s

    def ask(self, path: str, query: Mapping[str, str]) -> list[tuple[dict[str, str], list[tuple[int, float]]]]:
        """(labels, points of UTC ns and value) of an instant vector or a matrix.

        Raises:
            UnreachableError: there is no such answer.
        """
        found = self._get(path, query)
        try:
            return [(_labels(each["metric"]), _points(each)) for each in found["result"]]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UnreachableError(f"{path} did not answer as a Prometheus does") from error

    def _get(self, path: str, query: Mapping[str, str]) -> Any:
        return data_of(self._exchange, path, query, ("status", "success"), "error")


def data_of(exchange: Exchange, path: str, query: Mapping[str, str], good: tuple[str, object], said: str) -> Any:
    """The field ``data`` of a JSON answer that has this `good` field; `said` is the field with an error's text.

    Raises:
        UnreachableError: there is no such answer.
    """
    try:
        answer = exchange(HttpRequest("GET", f"{path}?{urlencode(query)}", most_bytes=_MOST_BYTES))
        document = orjson.loads(answer.body)
    except TargetUnreachableError as error:
        raise UnreachableError(error.message) from error
    except orjson.JSONDecodeError as error:
        what = redirection(answer) or html_page(answer.body) or "no JSON"
        raise UnreachableError(f"{path} answered {answer.status} with {what}", answer.status) from error
    content = document if isinstance(document, dict) else {}
    if answer.status != 200 or content.get(good[0]) != good[1]:
        text = str(content.get(said, ""))[:_MOST_SAID]
        raise UnreachableError(f"{path} answered {answer.status} {text}".rstrip(), answer.status)
    return content.get("data")


def _labels(metric: Mapping[str, str]) -> dict[str, str]:
    return {str(name): str(value) for name, value in metric.items()}


def _points(series: Mapping[str, Any]) -> list[tuple[int, float]]:
    """The points of a series; the quantile of an empty histogram, NaN or infinite, is none."""
    points = series["values"] if "values" in series else [series["value"]]
    return [(_utc_ns(float(at_s)), value) for at_s, text in points if isfinite(value := float(text))]


def _utc_ns(at_s: float) -> int:
    if not 0 <= at_s < LAST_S:
        raise ValueError(at_s)
    return round(at_s * 1e3) * 10**6  # it counts milliseconds


class Prometheus:
    """Records the metrics of the profiles, each sample once."""

    def __init__(self, observation: Observation, api: PrometheusApi, profiles: list[Profile]) -> None:
        self._journal = observation.journal
        self._api = api
        self._metrics = [metric for profile in profiles for metric in profile.metrics]
        self._step_s = max(1, round(observation.settings.scrape_every_s))
        self._window_s = self._step_s * _SCRAPES_PER_WINDOW
        health = SourceHealth("prometheus", observation.journal)
        self._polling = Polling(health, self._read, 2.0 * self._step_s, remembers=True)
        self._start_s = (observation.plan.started_at or self._journal.now()) // 10**9
        # By an earlier observer.
        self._recorded_s = {record.metric: record.at // 10**9 for record in observation.folder.records(Sample)}
        self._moved: dict[tuple[object, ...], bool] = {}  # by series: it was not always 0
        self._queries: list[Query] = []
        self._done_s: dict[Query, int] = {}

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        found = {query.metric.name for query in self._queries}
        return LiveObserver(prometheus_metrics=len(found)) if self._polling.looked else None

    def _read(self) -> None:
        self._probe()  # each time: many metrics appear with the first run, and a short test has few readings
        for query in list(self._queries):
            self._record(query)

    def _probe(self) -> None:
        """Find the name of each metric here: the first candidate that exists."""
        existing = self._api.existing([name + metric.suffix for metric in self._metrics for name in metric.any_of])
        known = {query.metric for query in self._queries}
        for metric in self._metrics:
            found = next((name for name in metric.any_of if name + metric.suffix in existing), None)
            if found and metric not in known:
                self._queries += [Query(metric, found, quantile) for quantile in metric.queries(found, self._window_s)]

    def _record(self, query: Query) -> None:
        name = query.metric.name
        before_s = self._done_s.get(query, max(self._start_s, self._recorded_s.get(name, 0)))
        start_s = (before_s // self._step_s + 1) * self._step_s
        end_s = self._journal.now() // 10**9 // self._step_s * self._step_s
        if start_s > end_s:
            return
        try:
            found = list(self._values(query, start_s, end_s))
        except UnreachableError as error:
            if error.status not in _BAD_QUERY:
                raise
            self._queries.remove(query)
            self._journal.note(NOT_REACHABLE, f"prometheus {name}", str(error))
            return
        for labels, at, value in found:
            sample = Sample(name, at, value, query.labels(labels))
            series = (name, *sample.labels.items())
            # Of what never happens there are thousands of rates: the first one says that it is watched.
            if value or query.metric.kind is Kind.GAUGE or self._moved.get(series, True):
                self._journal.write(sample)
            self._moved[series] = self._moved.get(series, False) or value != 0
        self._done_s[query] = end_s

    def _values(self, query: Query, start_s: int, end_s: int) -> Iterator[tuple[dict[str, str], int, float]]:
        """The values of the test's own time: until a rate's window fits into it, the window begins with the test.

        What ran before it may have had other settings: those that the test is about.
        """
        whole_s = self._start_s + self._window_s
        while start_s < min(whole_s, end_s + 1) and query.metric.kind is not Kind.GAUGE:
            since_start_s = start_s - self._start_s
            if since_start_s >= _SCRAPES_PER_RATE * self._step_s:
                yield from self._api.series(query.promql(since_start_s), start_s, start_s, self._step_s)
            start_s += self._step_s
        yield from self._api.series(query.promql(self._window_s), start_s, end_s, self._step_s)


def open_collector(observation: Observation) -> Prometheus | None:
    """Queries the Prometheus that the settings name, if any.

    Raises:
        ConfigError: a profile is invalid, or the address is.
    """
    settings = observation.settings
    if not settings.prometheus:
        return None
    wanted = settings.metric_profiles or names()
    profiles = [load(name, settings.platform_namespaces, settings.own_namespaces) for name in wanted]
    exchange = observation.connect("prometheus", settings.prometheus, Credentials(token=settings.prometheus_token))
    return Prometheus(observation, PrometheusApi(exchange), profiles)

"""The platform's own metrics, read directly from its ``/metrics`` pages.

Profiles and values are the same as with a Prometheus: rates and quantiles are taken between two scrapes.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from harness.collectors.collector import Observation
from harness.collectors.metrics.profiles_file import QUANTILES, Kind, Metric, Profile, load
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model import Sample, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpRequest
from harness.model.live.observer import LiveObserver

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*?)\})?\s+([^\s#]+)(?:\s+-?\d+)?(?:\s+#.*)?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_FOLDS: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}

Labels = tuple[tuple[str, str], ...]
Page = dict[str, dict[Labels, float]]  # by name, then labels


def parse(text: str) -> Page:
    """The series of a page in Prometheus' text format; comments, timestamps and exemplars are ignored.

    Source: https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    page: Page = defaultdict(dict)
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        name, inside, number = match.groups()
        try:
            value = float(number)
        except ValueError:
            continue
        labels = tuple(
            sorted((key, _ESCAPED.sub(_unescaped, value_of)) for key, value_of in _LABEL.findall(inside or ""))
        )
        page[name][labels] = value
    return dict(page)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def quantile(share: float, buckets: Iterable[tuple[float, float]]) -> float | None:
    """The quantile `share` of a histogram; none when it is empty.

    Linear within a bucket, from 0 in the lowest one; the highest finite bound when it lies beyond. Source: Prometheus'
    documentation of ``histogram_quantile``.

    Args:
        share: between 0 and 1.
        buckets: (upper bound, observations at or below it).
    """
    ordered = sorted(buckets)
    total = ordered[-1][1] if ordered else 0.0
    if total <= 0:
        return None
    rank = share * total
    below, count_below = 0.0, 0.0
    for bound, count in ordered:
        if count >= rank:
            if bound == float("inf"):
                return below
            if count == count_below:
                return bound
            return below + (bound - below) * (rank - count_below) / (count - count_below)
        below, count_below = bound, count
    return below


@dataclass(frozen=True, slots=True)
class Scrape:
    """A page as it was at `at`, UTC ns."""

    at: int
    page: Page


def samples(metric: Metric, now: Scrape, before: Scrape | None) -> list[Sample]:
    """The samples of one metric at `now`; rates and quantiles need the scrape `before`."""
    name = next((each + metric.suffix for each in metric.any_of if each + metric.suffix in now.page), None)
    if name is None:
        return []
    present = now.page[name]
    if metric.kind is Kind.GAUGE:
        return _folded(metric, now.at, present)
    if before is None or now.at <= before.at:
        return []
    # A new series started at 0; a series that fell was reset.
    past = before.page.get(name, {})
    growth = {k: value - past.get(k, 0.0) if value >= past.get(k, 0.0) else value for k, value in present.items()}
    if metric.kind is Kind.HISTOGRAM:
        return _quantiles(metric, now.at, growth)
    length_s = (now.at - before.at) / 1e9
    return _folded(metric, now.at, {labels: grown / length_s for labels, grown in growth.items()})


def _folded(metric: Metric, at: int, series: Mapping[Labels, float]) -> list[Sample]:
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in series.items():
        if metric.matches(dict(labels)):
            groups[tuple(metric.labels(dict(labels)).items())].append(value)
    return [Sample(metric.name, at, _FOLDS[metric.fold](values), dict(k)) for k, values in groups.items()]


def _quantiles(metric: Metric, at: int, growth: Mapping[Labels, float]) -> list[Sample]:
    groups: dict[Labels, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for labels, grown in growth.items():
        plain = dict(labels)
        if metric.matches(plain) and "le" in plain:
            groups[tuple(metric.labels(plain).items())][float(plain["le"])] += grown
    found = []
    for group, buckets in groups.items():
        for share in QUANTILES:
            value = quantile(share, buckets.items())
            if value is not None:
                found.append(Sample(metric.name, at, value, {**dict(group), "quantile": str(share)}))
    return found


class Scraping:
    """Scrapes pages, each for the metrics of one profile."""

    def __init__(self, observation: Observation, pages: list[tuple[Profile, Exchange]]) -> None:
        self._journal = observation.journal
        self._before: dict[Exchange, Scrape] = {}
        self._started_at = observation.plan.started_at
        every_s = observation.settings.scrape_every_s
        self._pages = [
            Polling(
                SourceHealth(f"metrics of {profile.name}", self._journal), partial(self._read, profile, page), every_s
            )
            for profile, page in pages
        ]

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`; each page has a thread, so that an unresponsive one delays no other."""
        threads = [threading.Thread(target=page.follow, args=(stop,), daemon=True) for page in self._pages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        looked = all(page.looked for page in self._pages)
        return LiveObserver(scraped_pages=sum(not page.lost for page in self._pages)) if looked else None

    def _read(self, profile: Profile, exchange: Exchange) -> None:
        page = fetch(exchange)
        scrape = Scrape(self._journal.now(), page)
        for metric in profile.metrics:
            for sample in samples(metric, scrape, self._before.get(exchange)):
                self._journal.write(sample)
        if scrape.at >= self._started_at:  # growth since an earlier one is not the test's
            self._before[exchange] = scrape


def fetch(exchange: Exchange) -> Page:
    """A page of metrics.

    Raises:
        UnreachableError: there is no answer, or it is an error.
    """
    try:
        answer = exchange(HttpRequest("GET", "", headers={"Accept": "text/plain"}, most_bytes=LONG_ANSWER))
    except TargetUnreachableError as error:
        raise UnreachableError(error.message) from error
    if answer.status != 200:
        raise UnreachableError(f"the page answered {answer.status}", answer.status)
    return parse(answer.body.decode(errors="replace"))


def open_collector(observation: Observation) -> Scraping | None:
    """Scrapes the pages that the settings name, if any.

    Raises:
        ConfigError: a profile is invalid, or an address is.
    """
    settings = observation.settings
    pages: list[tuple[Profile, Exchange]] = []
    for name, address in settings.metrics:
        exchange = observation.connect(f"metrics {name}", address)
        pages.append((load(name, settings.platform_namespaces, settings.own_namespaces), exchange))
    return Scraping(observation, pages) if pages else None

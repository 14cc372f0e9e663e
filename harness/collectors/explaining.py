"""The past into a run folder: what the APIs still show of a time, and from a Prometheus what they no longer do.

Every source is optional. The APIs are looked at once, by the collectors of an observation; pods that they no longer
know, nodes that went, and what components measured come from range queries. Runs of which only pods are known are
inferred from these.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from harness import reading
from harness.collectors.collector import ObserverSettings
from harness.collectors.http import Http, Timeouts
from harness.collectors.inferred_runs import inferred_runs, runs_of_workflows
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.life import RUN_ID, WORKFLOW, PodLife
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.pod.others import OtherPods
from harness.collectors.kubernetes.pvcs import Claims
from harness.collectors.metrics.kube_state import Known, KubeState, own_labels
from harness.collectors.metrics.kube_state_series import ALL
from harness.collectors.metrics.opencost import Allocations, pod_costs
from harness.collectors.metrics.past import Ask, PastReader
from harness.collectors.metrics.past_asks import PastMetric, Scope, kube_state_asks, metric_asks, scope_of
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.collectors.observer import Look, observe
from harness.collectors.source_health import UnreachableError
from harness.model import phases
from harness.model.records import Event, Node, Sample, Span
from harness.store.answers import Answers
from harness.store.folder import Recorder, RunFolder, encode
from harness.targets.credentials import Credentials
from harness.targets.target import Target

_ANSWER_S = 120.0  # Prometheus' own limit of a query
_BILL, _COSTS_S = "opencost", 8 * 3600  # of one request
_OF_RUNS = frozenset({"listing", "run_watch"})
_OF_NOW = frozenset({"prometheus", "scraping", "store_probe", "service_probes", "callbacks", "metrics_server"})
_OF_PODS = frozenset({phases.POD_CPU_CORES, phases.POD_MEMORY_BYTES})
# Measured once, and true of the time before.
_LASTING = frozenset({
    phases.CLAIM_CAPACITY_BYTES, phases.CPU_LIMIT_CORES, phases.REQUESTED_CPU_CORES, phases.REQUESTED_EPHEMERAL_BYTES,
    phases.REQUESTED_GPUS, phases.POD_PRIORITY, phases.REQUESTED_MEMORY_BYTES,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """The time to explain, UTC ns."""

    since_at: int
    until_at: int

    def clip(self, record: object) -> object | None:
        """What was known of a record at the end of it; what is stated without a time counts from its beginning."""
        if isinstance(record, Span):
            ended_at = record.ended_at if record.ended_at is None or record.ended_at <= self.until_at else None
            return replace(record, ended_at=ended_at) if record.started_at <= self.until_at else None
        if isinstance(record, Node):
            gone_at = record.gone_at if record.gone_at is None or record.gone_at <= self.until_at else None
            return replace(record, gone_at=gone_at) if record.created_at <= self.until_at else None
        if isinstance(record, Sample | Event) and record.at > self.until_at:
            lasts = (
                record.metric in _LASTING
                if isinstance(record, Sample)
                else record.kind in {"Observer", phases.PLATFORM}
            )
            return replace(record, at=self.since_at) if lasts else None
        return record


@dataclass(frozen=True, slots=True)
class Store:
    """How to read a Prometheus, or a store with its API.

    Attributes:
        credentials: bearer token, a command that prints one, header fields such as a tenant's.
        matchers: of all series, as in PromQL.
        most_samples: after which nothing more is read.
        opencost: address of an OpenCost, which needs no credentials; "" is none.
    """

    credentials: Credentials = Credentials()
    matchers: str = ""
    most_samples: int = 20_000_000
    opencost: str = ""


def explain(
    folder: RunFolder,
    target: Target,
    settings: ObserverSettings,
    window: Window,
    store: Store,
    stop: threading.Event,
    expect: Callable[[int], None],
    over: Callable[[], None],
) -> bool:
    """Fill `folder`, whose plan is written; False when it was stopped before all was read, to be called again later.

    `expect` gets the number of requests to come, `over` is called after each.

    Raises:
        ConfigError: a setting can't work.
    """
    answers = Answers(folder)
    past = Past(folder, settings, window, store, answers) if settings.prometheus else None
    whole = past is None or past.fetch(stop, expect, over)
    lost = _fetch_costs(settings, window, store, answers, stop) if whole and store.opencost else ""
    if not whole or lost is None:
        return False
    answers.drop_records()
    skipped = _OF_NOW if settings.host else _OF_NOW | _OF_RUNS
    observe(folder, target, settings, threading.Event(), Look(window.clip, skipped))
    with folder.recorder() as recorder:
        if past is not None:
            past.record(recorder)
        for cost in _costs(answers, lost, window.since_at) if store.opencost else ():
            recorder.write(cost)
        for record in inferred_runs(folder.records(Span), folder.records(Event)):
            recorder.write(record)
    answers.drop()
    return True


class Past:
    """One reading of a store."""

    def __init__(
        self, folder: RunFolder, settings: ObserverSettings, window: Window, store: Store, answers: Answers
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._window = window
        self._store = store
        self._answers = answers
        self._said: list[tuple[str, str]] = []  # reason and message of notes
        self._scope: Scope | None = None
        timeouts = Timeouts(settings.connect_timeout_s, _ANSWER_S)
        http = Http(phases.PAST, settings.prometheus, store.credentials, timeouts, verify_tls=settings.verify_tls)
        self._api = PrometheusApi(http)

    def fetch(self, stop: threading.Event, expect: Callable[[int], None], over: Callable[[], None]) -> bool:
        """Read what is missing of the answers; False when it was stopped."""
        start_s, end_s = self._window.since_at // 10**9, -(-self._window.until_at // 10**9)
        try:
            self._scope = scope_of(self._api, self._answers, start_s, end_s, self._store.matchers)
        except UnreachableError as error:
            self._said.append((phases.NOT_REACHABLE, str(error)))
            return True
        if not self._scope.known:
            self._said.append((phases.NOT_REACHABLE, self._scope.nothing(self._api)))
        reader = PastReader(self._api.ask, self._answers, self._store.most_samples, stop.wait, over)
        asks = self._asks(self._scope)
        expect(len(asks))
        whole = reader.read(asks)
        self._said += [(phases.GAP, sentence) for sentence in reader.fetched.sentences()]
        return whole

    def _metrics(self, scope: Scope) -> Sequence[PastMetric]:
        return metric_asks(scope, self._settings.metric_profiles, self._settings.platform_namespaces)

    def _asks(self, scope: Scope) -> list[Ask]:
        states = [ask for _, asks in kube_state_asks(scope, self._settings.namespace) for ask in asks]
        return [*states, *(ask for metric in self._metrics(scope) for ask in metric.asks)]

    def record(self, recorder: Recorder) -> None:
        """Record the answers, and what is wrong with them."""
        since_at = self._window.since_at
        for reason, message in self._said:
            recorder.write(Event(since_at, "Observer", phases.PAST, reason, message, type="Warning"))
        if self._scope is None or not self._scope.known:
            return
        with reading.structured(self._folder.path, "start over: pipeswarm explain --since"):
            self._record_objects(recorder, self._scope)
            pods = {span.step for span in self._folder.records(Span)}
            for metric in self._metrics(self._scope):
                for answer in self._answers.read(f"{metric.asks[0].name}-"):
                    lines = map(encode, self._samples(metric, answer, pods))
                    recorder.append(Sample, b"".join(lines))

    def _samples(self, metric: PastMetric, answer: Sequence[tuple[Mapping[str, str], Sequence[tuple[int, float]]]],
                 pods: set[str]) -> Iterator[Sample]:  # fmt: skip
        for given, points in answer:
            labels = metric.query.labels(own_labels(given))
            if metric.query.metric.name in _OF_PODS and labels.get("pod") not in pods:
                continue
            for at, value in points:
                yield Sample(metric.query.metric.name, at, value, labels)

    def _record_objects(self, recorder: Recorder, scope: Scope) -> None:
        state = KubeState(scope.end_s, scope.interval_s)
        for series in ALL:
            for answer in self._answers.read(f"{series.name}-"):
                state.take(series, answer)
        spans = self._folder.records(Span)
        clock = _Clock()
        journal = Journal(recorder, now=clock.now, clip=self._clip)
        self._record_pods(journal, clock, [*state.pods()], spans)
        known = {node.name for node in self._folder.records(Node)}
        for see, objects in ((Nodes(journal).see, state.nodes()), (Claims(journal).see, state.claims())):
            for each in objects:
                if each.manifest["metadata"]["name"] not in known:
                    clock.at = each.at
                    see(each.change, each.manifest)

    def _record_pods(self, journal: Journal, clock: "_Clock", found: Sequence[Known], spans: Sequence[Span]) -> None:
        """The pods that no API shows."""
        platform, since_at = self._settings.platform_namespaces, self._window.since_at
        pods, others = Pods(journal, since_at), OtherPods(journal, since_at, platform)
        shown = {span.step.rpartition("/")[2] for span in spans}
        runs = _runs_of(found, spans)
        for known in found:
            metadata, labels = known.manifest["metadata"], known.manifest["metadata"]["labels"]
            if metadata["name"] in shown:
                continue
            if run := runs.get(labels.get(WORKFLOW, "")):
                labels.setdefault(RUN_ID, run)
            clock.at = known.at
            if labels or metadata["namespace"] in platform:
                pods.see(known.change, known.manifest)
                for event in known.events:
                    pods.see_event(event)
                continue
            alive = {**known.manifest["status"], "phase": "Running"}
            others.see("ADDED", {**known.manifest, "status": alive})
            if known.over:
                others.see("DELETED", known.manifest)
        others.use(pods.hosts)
        if pods.runs:
            every = f"{self._scope.interval_s} s" if self._scope else "now and then"
            text = f"pods are known by scrapes every {every}: shorter ones may be missing"
            journal.write(Event(since_at, "Observer", phases.PAST, phases.SCRAPED, text))

    def _clip(self, record: object) -> object | None:
        """What a scrape shows is not known better than to the time between two."""
        if isinstance(record, Span) and self._scope is not None:
            resolution_s = max(record.resolution_s, float(self._scope.interval_s))
            record = replace(record, source=phases.PAST, resolution_s=resolution_s)
        elif isinstance(record, Event):
            record = replace(record, source=phases.PAST)
        return self._window.clip(record)


def _fetch_costs(
    settings: ObserverSettings, window: Window, store: Store, answers: Answers, stop: threading.Event
) -> str | None:
    """Read what is missing of OpenCost's answers; why one is lost, "" where none is, None when it was stopped."""
    timeouts = Timeouts(settings.connect_timeout_s, _ANSWER_S)
    http = Http(_BILL, store.opencost, Credentials(), timeouts, verify_tls=settings.verify_tls)
    asked = Allocations(_BILL, "", window.since_at // 10**9, -(-window.until_at // 10**9))
    reader = PastReader(partial(pod_costs, http), answers, store.most_samples, stop.wait)
    whole = reader.read([*asked.chunks(_COSTS_S)])
    return next(iter(reader.fetched.lost), "") if whole else None


def _costs(answers: Answers, lost: str, since_at: int) -> Iterator[Sample | Event]:
    """The costs, all of them or none: parts of a bill would pass for the whole. And what is wrong with them."""
    found = [each for answer in answers.read(f"{_BILL}-") for each in answer if not lost]
    for labels, [(at, cost)] in found:
        yield Sample(phases.POD_COST, max(at, since_at), cost, labels)  # asked for from the last whole second on
    missing = "" if any("idle" in labels for labels, _ in found) else "it does not tell what idle nodes cost"
    if problem := missing if found else f"no costs: {lost or 'it allocated none in this time'}":
        yield Event(since_at, "Observer", _BILL, phases.NOT_REACHABLE, problem, type="Warning")


class _Clock:
    """The time at which an object was as it is shown, UTC ns."""

    at = 0

    def now(self) -> int:
        return self.at


def _runs_of(found: Sequence[Known], spans: Sequence[Span]) -> dict[str, str]:
    """The platform's run of each workflow, as far as it has another name."""
    pods: dict[str, tuple[str, str]] = {}
    begun_at: dict[str, int] = {}
    named: dict[str, str] = {}
    for known in found:
        labels, life = known.manifest["metadata"]["labels"], PodLife.of(known.manifest)
        if workflow := labels.get(WORKFLOW):
            pods[life.name] = workflow, life.task
            begun_at[workflow] = min(begun_at.get(workflow, life.created.at), life.created.at)
            named |= {workflow: labels[RUN_ID]} if RUN_ID in labels else {}
    return runs_of_workflows(pods, begun_at, spans) | named

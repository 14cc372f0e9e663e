"""Checks of what a load test needs and what its observer can see, without starting either."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Self

from harness.collectors.collector import ObserverSettings, to_platform
from harness.collectors.http import Http, Timeouts
from harness.collectors.kubernetes.account import may
from harness.collectors.kubernetes.kube_api import connect
from harness.collectors.metrics import profiles_file
from harness.collectors.metrics.kube_state_series import ALL
from harness.collectors.metrics.past_asks import scrape_interval_s, since
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.collectors.metrics.scraping import fetch
from harness.collectors.rights import KARPENTER, KUBELETS, RIGHTS, Right, cluster_role
from harness.collectors.source_health import UnreachableError
from harness.model import ConfigError, PipeswarmError, Plan, format_duration
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.targets.credentials import Credentials
from harness.targets.target import ListsRuns, NamesVersions, Target
from harness.targets.token_command import expiry

_SKEW_S = 2.0  # a Date header has whole seconds
_SOON_S = 3600.0  # a token that expires within it may not last for a test


class State(StrEnum):
    """Of one check."""

    OK = "ok"
    LIMITED = "limited"  # a test runs, but something can't be judged
    BROKEN = "broken"  # no test can run: the platform does not answer as it should
    INVALID = "invalid"  # no test can run: an option, a variable or a file that one names is wrong


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what was looked at.
        state: whether it will do.
        found: what was found, one phrase.
        cost: what is lost because of it, one phrase; "" if nothing is.
    """

    name: str
    state: State
    found: str
    cost: str = ""

    @classmethod
    def failed(cls, name: str, error: PipeswarmError) -> Self:
        """What ends a load test as well, with the same exit code."""
        state = State.INVALID if isinstance(error, ConfigError) else State.BROKEN
        return cls(name, state, error.message, error.hint)


def token(text: str, now_s: float, others: Sequence[str] = (), source: str = "") -> Check:
    """The expiry of a bearer token, if it is a JWT. Its signature is the platform's business.

    `others` name what else is sent to prove who asks; `source` is what a test reads again for a newer token.
    """
    if not text:
        instead = f"none; sent instead: {', '.join(others)}"
        return Check("token", State.OK, instead if others else "none is set: requests are anonymous")
    expires_s = expiry(text)
    if expires_s is None:
        return Check("token", State.OK, "its expiry is not known: it is no JWT with an expiry")
    left_s = expires_s - now_s
    until = f"{datetime.fromtimestamp(expires_s, UTC):%Y-%m-%d %H:%M} UTC"
    if left_s <= 0:
        return Check("token", State.BROKEN, f"expired at {until}", "every request is refused with 401")
    if left_s < _SOON_S:
        cost = "" if source else "requests of a longer test are refused with 401"
        again = f"; a test reads {source} again before" if source else ""
        state = State.LIMITED if cost else State.OK
        return Check("token", state, f"expires in {format_duration(left_s)}{again}", cost)
    return Check("token", State.OK, f"expires at {until}")


def platform(target: Target, plan: Plan, settings: ObserverSettings) -> Iterator[Check]:
    """Whether the platform answers as it should, with its version, and how its clock compares."""
    dates: list[tuple[float, HttpAnswer]] = []
    try:
        http = to_platform("doctor", plan, settings)

        def exchange(request: HttpRequest) -> HttpAnswer:
            began_s = time.time()
            answer = http(request)
            dates.append(((began_s + time.time()) / 2, answer))
            return answer

        yield _answers(target, plan.host, exchange)
    except PipeswarmError as error:
        yield Check.failed("platform", error)
    yield from (clock(middle_s, answer.headers.get("date", "")) for middle_s, answer in dates[:1])


def _answers(target: Target, host: str, exchange: Exchange) -> Check:
    named = dict(target.versions(exchange)) if isinstance(target, NamesVersions) else {}
    version = "".join(f", {name} {release}" for name, release in named.items())
    if isinstance(target, ListsRuns):
        began_s = time.monotonic()
        runs = target.list_runs(exchange).runs
        took = format_duration(time.monotonic() - began_s)
        return Check("platform", State.OK, f"{host}{version}, lists {len(runs)} runs on its first page, in {took}")
    if isinstance(target, NamesVersions):
        return Check("platform", State.OK, f"{host}{version}, answers")
    return Check("platform", State.LIMITED, f"{host} lists no runs", "it is only tried by a test")


def clock(here_s: float, date: str) -> Check:
    """How far the server's clock is from this one; its ``Date`` has whole seconds."""
    try:
        ahead_s = parsedate_to_datetime(date).timestamp() + 0.5 - here_s
    except ValueError:
        return Check("clock", State.LIMITED, "the platform sends no date", "a skewed clock is only seen after a test")
    if abs(ahead_s) <= _SKEW_S:
        return Check("clock", State.OK, "the platform's clock agrees with this one to 2 s")
    return Check("clock", State.LIMITED, f"the platform's clock is {ahead_s:+.0f} s off", "phases are shifted by it")


def cluster(settings: ObserverSettings, to_load: Iterable[Right] = ()) -> tuple[list[Check], str]:
    """What load and observer may do in the cluster, and the ClusterRole of what is missing ("" if nothing is)."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        api, _ = connect(settings.kube_context, settings.kubeconfig)
        version = client.VersionApi(api).get_code(_request_timeout=settings.answer_timeout_s).git_version

        def allowed(right: Right, verb: str) -> bool:
            namespace = right.namespace or settings.namespace
            return may(api, verb, right.resource, group=right.group, namespace=namespace, name=right.only)

        groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
        checks = [Check("cluster", State.OK, f"Kubernetes {version} at {api.configuration.host}")]
        rights = [right for right in (*to_load, *RIGHTS) if right.group != KARPENTER or KARPENTER in groups]
        missing = [(right, verbs) for right in rights if (verbs := [v for v in right.verbs if not allowed(right, v)])]
        checks += [_right(right, dict(missing).get(right, [])) for right in rights]
        checks.append(_right(KUBELETS, [verb for verb in KUBELETS.verbs if not allowed(KUBELETS, verb)]))
        checks += [_installed(groups), _autoscaler(groups, client.CoreV1Api(api))]
    except (UnreachableError, ApiException, HTTPError, PipeswarmError) as error:
        cost = "nodes, pods, the artifact store, quotas and the autoscaler can't be judged"
        reason = getattr(error, "reason", "") or getattr(error, "message", "") or str(error)
        return [Check("cluster", State.LIMITED, str(reason), cost)], ""
    return checks, cluster_role(missing)


def _right(right: Right, missing: Sequence[str]) -> Check:
    if not missing:
        return Check(f"may {', '.join(right.verbs)} {right.name}", State.OK, "yes")
    return Check(f"may {', '.join(right.verbs)} {right.name}", State.LIMITED, f"not {', '.join(missing)}", right.cost)


def _installed(groups: set[str]) -> Check:
    if "metrics.k8s.io" in groups:
        return Check("metrics-server", State.OK, "installed")
    return Check("metrics-server", State.LIMITED, "not installed", "no CPU and memory in use of nodes and steps")


def _autoscaler(groups: set[str], core: Any) -> Check:
    from kubernetes.client.exceptions import ApiException

    if KARPENTER in groups:
        return Check("autoscaler", State.OK, "Karpenter")
    try:
        core.read_namespaced_config_map("cluster-autoscaler-status", "kube-system")
    except ApiException:
        cost = "a managed one may still show in events; without one, more load gets no more nodes"
        return Check("autoscaler", State.LIMITED, "none seen", cost)
    return Check("autoscaler", State.OK, "cluster-autoscaler")


def prometheus(settings: ObserverSettings) -> Check:
    """Which metric profiles find series in the Prometheus, if one is named."""
    if not settings.prometheus:
        cost = "the controller's, the API server's and the database's own metrics are not used"
        return Check("Prometheus", State.LIMITED, "none is named (--prometheus)", cost)
    profiles = [profiles_file.load(name) for name in settings.metric_profiles or profiles_file.names()]
    names = {p.title: [name + m.suffix for m in p.metrics for name in m.any_of] for p in profiles}
    try:
        http = Http(
            "doctor",
            settings.prometheus,
            Credentials(token=settings.prometheus_token),
            timeouts(settings),
            verify_tls=settings.verify_tls,
        )
        existing = PrometheusApi(http).existing(sorted(set().union(*names.values())))
    except (UnreachableError, PipeswarmError) as error:
        return Check("Prometheus", State.LIMITED, str(error), "its metrics are not used")
    seen = [title for title, candidates in names.items() if existing & set(candidates)]
    missing = [title for title in names if title not in seen]
    state = State.OK if seen else State.LIMITED
    return Check("Prometheus", state, f"has metrics of: {', '.join(seen) or 'nothing known'}", _without(missing))


def pages(settings: ObserverSettings) -> Iterator[Check]:
    """Whether each page of ``--metrics`` answers, and has metrics of its profile.

    Raises:
        ConfigError: there is no such profile.
    """
    for name, address in settings.metrics:
        profile, title = profiles_file.load(name), f"metrics of {name}"
        try:
            http = Http("doctor", address, Credentials(), timeouts(settings), verify_tls=settings.verify_tls)
            page = fetch(http)
        except (UnreachableError, PipeswarmError) as error:
            yield Check(title, State.LIMITED, f"{address}: {error}", "its metrics are not used")
            continue
        seen = sum(any(other + metric.suffix in page for other in metric.any_of) for metric in profile.metrics)
        found = f"{address} has {seen} of the profile's {len(profile.metrics)} metrics"
        yield Check(
            title, State.OK if seen else State.LIMITED, found, "" if seen else "is it the page of this profile?"
        )


def _without(missing: Sequence[str]) -> str:
    return f"no metrics of: {', '.join(missing)}" if missing else ""


def timeouts(settings: ObserverSettings) -> Timeouts:
    """Of a check's requests."""
    return Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)


_DAY_S = 86_400
_LABELS = "pods=[pipeline/runid,workflows.argoproj.io/workflow]"
_NODES = "nodes=[*]"
_ANNOTATIONS = "pods=[workflows.argoproj.io/node-name]"
# What to write where series are missing, by a part of the store's address; the last is for all others.
SNIPPETS = (
    ("monitoring.googleapis.com", "GKE's managed kube-state-metrics", (
        "gcloud container clusters update CLUSTER --monitoring=SYSTEM,POD,STORAGE,CADVISOR,KUBELET",
        "# it has few series of pods: run a kube-state-metrics of your own next to it, with",
        f"--metric-labels-allowlist={_LABELS},{_NODES} --metric-annotations-allowlist={_ANNOTATIONS}",
        "# and a PodMonitoring for it",
    )),
    ("prometheus.monitor.azure.com", "AKS with Azure Monitor", (
        "az aks update -g GROUP -n CLUSTER --enable-azure-monitor-metrics \\",
        f'  --ksm-metric-labels-allow-list "{_LABELS},{_NODES}" \\',
        f'  --ksm-metric-annotations-allow-list "{_ANNOTATIONS}"',
        "# and in the ConfigMap ama-metrics-settings-configmap, default-targets-metrics-keep-list:",
        'kubestate = "kube_pod_.*|kube_node_.*|kube_resourcequota|kube_persistentvolumeclaim_.*"',
    )),
    ("aps-workspaces", "Amazon Managed Prometheus", (
        "helm upgrade --install kube-state-metrics prometheus-community/kube-state-metrics \\",
        f"  --set 'metricLabelsAllowlist={{\"{_LABELS}\",\"{_NODES}\"}}' \\",
        f"  --set 'metricAnnotationsAllowList={{\"{_ANNOTATIONS}\"}}'",
        "# and a scrape job for it in the scraper's configuration that drops nothing of kube_pod_.*",
    )),
    ("thanos-querier", "OpenShift's monitoring", (
        "# its own drops kube_*_created and most labels, and can't be changed: run a second kube-state-metrics with",
        f"--metric-labels-allowlist={_LABELS},{_NODES} --metric-annotations-allowlist={_ANNOTATIONS}",
        "# and a ServiceMonitor for it, after enableUserWorkload: true in the ConfigMap cluster-monitoring-config",
    )),
    ("", "kube-prometheus-stack, in its values", (
        "kube-state-metrics:",
        f'  metricLabelsAllowlist: ["{_LABELS}", "{_NODES}"]',
        f'  metricAnnotationsAllowList: ["{_ANNOTATIONS}"]',
    )),
)  # fmt: skip


def past(settings: ObserverSettings) -> Iterator[Check]:
    """The checks; none where no Prometheus is named or it does not answer, as another check says."""
    if not settings.prometheus:
        return
    try:
        credentials = Credentials(token=settings.prometheus_token)
        verify = settings.verify_tls
        http = Http("doctor", settings.prometheus, credentials, timeouts(settings), verify_tls=verify)
        api, now_s = PrometheusApi(http), int(time.time())
        names = api.names(now_s - _DAY_S, now_s)
        every_s, first = scrape_interval_s(api, "", now_s), since(api, "", now_s)
    except (UnreachableError, PipeswarmError):
        return
    missing = [each for each in ALL if not names.intersection(each.names)]
    known = f"{len(ALL) - len(missing)} of {len(ALL)} series of kube-state-metrics"
    found = f"{known}{f', since {first}' if first else ''}{f', every {every_s} s' if every_s else ''}"
    cost = "" if len(missing) < len(ALL) else "a past time can't be explained: pipeswarm explain needs them"
    yield Check("the past", State.LIMITED if cost else State.OK, found, cost)
    if cost:
        return
    for series in missing:
        if series.cost:
            yield Check(series.name, State.LIMITED, "missing in the last day", series.cost)
    if any(series.name.endswith(("_labels", "_annotations")) for series in missing):
        title, lines = snippet(settings.prometheus)
        yield Check("allow-lists", State.LIMITED, f"labels or annotations are missing; for {title}:", "\n".join(lines))


def snippet(address: str) -> tuple[str, tuple[str, ...]]:
    """Where to allow what is missing: the platform that the address is of, and what to write there."""
    return next((title, lines) for part, title, lines in SNIPPETS if part in address)

"""Checks of what a load test needs and what its observer can see, without starting either."""

import base64
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import yaml

from harness.collectors.collector import ObserverSettings
from harness.collectors.http import Http, Timeouts
from harness.collectors.kubernetes.kube_api import connect
from harness.collectors.metrics import profiles_file
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.collectors.source_health import UnreachableError
from harness.model.errors import PipeswarmError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.units import format_duration
from harness.targets.target import ListsRuns, Target

_SKEW_S = 2.0  # a Date header has whole seconds
_SOON_S = 3600.0  # a token that expires within it may not last for a test


class State(StrEnum):
    """Of one check."""

    OK = "ok"
    LIMITED = "limited"  # a test runs, but something can't be judged
    BROKEN = "broken"  # no test can run


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


@dataclass(frozen=True, slots=True)
class Right:
    """A right of the observer's account, and what a test loses without it."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    cost: str

    @property
    def name(self) -> str:
        """As ``kubectl auth can-i`` names the resource."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


_FOLLOW = ("get", "list", "watch")
_KARPENTER = "karpenter.sh"
RIGHTS = (
    Right("", "nodes", _FOLLOW, "no node counts: scaling, capacity and cost can't be judged"),
    Right("", "pods", _FOLLOW, "no phases of runs: where the time went can't be judged"),
    Right("", "events", _FOLLOW, "no reasons why pods wait or fail"),
    Right("", "persistentvolumeclaims", _FOLLOW, "volumes are not assigned to the store or the database"),
    Right("", "pods/log", ("get",), "storing is not told from running"),
    Right("argoproj.io", "workflows", _FOLLOW, "the lag of the platform behind its workflows can't be judged"),
    Right("", "nodes/proxy", ("get",), "free space of volumes can't be judged"),
    Right(_KARPENTER, "nodeclaims", _FOLLOW, "no machines on their way, and not why one did not come"),
    Right("metrics.k8s.io", "nodes", ("get", "list"), "no CPU and memory in use of nodes"),
    Right("metrics.k8s.io", "pods", ("get", "list"), "no CPU and memory in use of steps: no recommended requests"),
)


def token(text: str, now_s: float) -> Check:
    """The expiry of a bearer token, if it is a JWT. Its signature is the platform's business."""
    if not text:
        return Check("token", State.OK, "none is set: requests are anonymous")
    try:
        claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
        left_s = float(claims["exp"]) - now_s
        until = f"{datetime.fromtimestamp(now_s + left_s, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, OSError):
        return Check("token", State.OK, "its expiry is not known: it is no JWT with an expiry")
    if left_s <= 0:
        return Check("token", State.BROKEN, f"expired at {until}", "every request is refused with 401")
    if left_s < _SOON_S:
        cost = "requests of a longer test are refused with 401"
        return Check("token", State.LIMITED, f"expires in {format_duration(left_s)}", cost)
    return Check("token", State.OK, f"expires at {until}")


def platform(target: Target, settings: ObserverSettings) -> Iterator[Check]:
    """Whether the platform answers as it should, and how its clock compares."""
    dates: list[tuple[float, HttpAnswer]] = []
    try:
        http = Http("doctor", settings.host, settings.token, _timeouts(settings), verify_tls=settings.verify_tls)

        def exchange(request: HttpRequest) -> HttpAnswer:
            began_s = time.time()
            answer = http(request)
            dates.append(((began_s + time.time()) / 2, answer))
            return answer

        began_s = time.monotonic()
        if isinstance(target, ListsRuns):
            runs = target.list_runs(exchange).runs
            took = format_duration(time.monotonic() - began_s)
            yield Check("platform", State.OK, f"{settings.host} lists {len(runs)} runs on its first page, in {took}")
        else:
            yield Check("platform", State.LIMITED, f"{settings.host} lists no runs", "it is only tried by a test")
    except PipeswarmError as error:
        yield Check("platform", State.BROKEN, error.message, error.hint)
    yield from (clock(middle_s, answer.headers.get("date", "")) for middle_s, answer in dates[:1])


def clock(here_s: float, date: str) -> Check:
    """How far the server's clock is from this one; its ``Date`` has whole seconds."""
    try:
        ahead_s = parsedate_to_datetime(date).timestamp() + 0.5 - here_s
    except ValueError:
        return Check("clock", State.LIMITED, "the platform sends no date", "a skewed clock is only seen after a test")
    if abs(ahead_s) <= _SKEW_S:
        return Check("clock", State.OK, "the platform's clock agrees with this one to 2 s")
    return Check("clock", State.LIMITED, f"the platform's clock is {ahead_s:+.0f} s off", "phases are shifted by it")


def cluster(settings: ObserverSettings) -> tuple[list[Check], str]:
    """What the observer may do in the cluster, and the ClusterRole of what is missing ("" if nothing is)."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        api, _ = connect(settings)
        version = client.VersionApi(api).get_code(_request_timeout=settings.answer_timeout_s).git_version
        allowed = _allowed(client, api, settings)
        groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
        found = [Check("cluster", State.OK, f"Kubernetes {version} at {api.configuration.host}")]
        rights = [right for right in RIGHTS if right.group != _KARPENTER or _KARPENTER in groups]
        missing = [(right, verbs) for right in rights if (verbs := [v for v in right.verbs if not allowed(right, v)])]
        found += [_right(right, dict(missing).get(right, [])) for right in rights]
        found += [_installed(groups), _autoscaler(groups, client.CoreV1Api(api))]
    except (UnreachableError, ApiException, HTTPError, PipeswarmError) as error:
        cost = "nodes, pods, the artifact store, quotas and the autoscaler can't be judged"
        reason = getattr(error, "reason", "") or getattr(error, "message", "") or str(error)
        return [Check("cluster", State.LIMITED, str(reason), cost)], ""
    return found, _cluster_role(missing)


def _allowed(client: Any, api: Any, settings: ObserverSettings) -> Callable[[Right, str], bool]:
    reviews = client.AuthorizationV1Api(api)

    def ask(right: Right, verb: str) -> bool:
        resource, _, part = right.resource.partition("/")
        wanted = client.V1ResourceAttributes(
            group=right.group, resource=resource, subresource=part or None, verb=verb, namespace=settings.namespace
        )
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=wanted)
        review = client.V1SelfSubjectAccessReview(spec=spec)
        return bool(reviews.create_self_subject_access_review(review).status.allowed)

    return ask


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

    if _KARPENTER in groups:
        return Check("autoscaler", State.OK, "Karpenter")
    try:
        core.read_namespaced_config_map("cluster-autoscaler-status", "kube-system")
    except ApiException:
        cost = "a managed one may still show in events; without one, more load gets no more nodes"
        return Check("autoscaler", State.LIMITED, "none seen", cost)
    return Check("autoscaler", State.OK, "cluster-autoscaler")


def _cluster_role(missing: Iterable[tuple[Right, Sequence[str]]]) -> str:
    rules = [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(verbs)} for right, verbs in missing
    ]
    if not rules:
        return ""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "pipeswarm-observer"},
        "rules": rules,
    }
    return str(yaml.safe_dump(role, sort_keys=False))


def prometheus(settings: ObserverSettings) -> Check:
    """Which metric profiles find series in the Prometheus, if one is named."""
    if not settings.prometheus:
        cost = "the controller's, the API server's and the database's own metrics are not used"
        return Check("Prometheus", State.LIMITED, "none is named (--prometheus)", cost)
    profiles = [profiles_file.load(name) for name in settings.profiles or profiles_file.names()]
    names = {p.title: [name + m.suffix for m in p.metrics for name in m.any_of] for p in profiles}
    try:
        http = Http(
            "doctor",
            settings.prometheus,
            settings.prometheus_token,
            _timeouts(settings),
            verify_tls=settings.verify_tls,
        )
        existing = PrometheusApi(http).existing(sorted(set().union(*names.values())))
    except (UnreachableError, PipeswarmError) as error:
        return Check("Prometheus", State.LIMITED, str(error), "its metrics are not used")
    seen = [title for title, candidates in names.items() if existing & set(candidates)]
    missing = [title for title in names if title not in seen]
    state = State.OK if seen else State.LIMITED
    return Check("Prometheus", state, f"has metrics of: {', '.join(seen) or 'nothing known'}", _without(missing))


def _without(missing: Sequence[str]) -> str:
    return f"no metrics of: {', '.join(missing)}" if missing else ""


def _timeouts(settings: ObserverSettings) -> Timeouts:
    return Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)

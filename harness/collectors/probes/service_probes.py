"""How soon the services of a platform respond to a request that costs them nothing.

A worker that is busy with an execution delays a health probe as it delays the next execution, so a probe's latency is
the queueing delay. Probes stay within a share of the load's own requests.
"""

import threading
import time
from collections.abc import Callable

from harness.collectors.collector import Observation
from harness.collectors.runs.poll_policy import budget
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model import ConfigError, Event, Sample, Submission, TargetUnreachableError
from harness.model.http import Exchange, HttpRequest
from harness.model.live.observer import LiveObserver
from harness.model.phases import SERVICE_PROBE_SECONDS, SERVICE_UP
from harness.targets.target import HasServices, Service

_FREE_ROUNDS = 3  # allowed beyond the share, so that short tests are covered


class ServiceProbes:
    """Probes each service in turn.

    Args:
        observation: what to observe.
        target: knows the services.
        connect: gives the exchange with a host; "" is the platform itself.
    """

    def __init__(self, observation: Observation, target: HasServices, connect: Callable[[str], Exchange]) -> None:
        settings = observation.settings
        self._journal = observation.journal
        self._target = target
        self._connect = connect
        self._platform = connect("")
        self._services: list[tuple[Service, Exchange]] = []
        self._up: dict[str, bool] = {}
        self._share = settings.request_share
        self._ledger = observation.folder.tail(Submission)
        self._requests = self._submitted = 0
        self._polling = Polling(SourceHealth("services", observation.journal), self._probe_all, settings.probe_every_s)

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        return LiveObserver(services_up=dict(self._up)) if self._polling.looked else None

    def _probe_all(self) -> None:
        self._submitted += len(self._ledger.read())
        if not self._services:
            self._requests += 1
            self._services = self._find()
        size = len(self._services)
        if self._requests + size > max(budget(self._submitted, self._share), _FREE_ROUNDS * size + 1):
            return
        for service, exchange in self._services:
            self._probe(service, exchange)

    def _find(self) -> list[tuple[Service, Exchange]]:
        found: list[tuple[Service, Exchange]] = []
        try:
            for service in self._target.services(self._platform):
                at_platform = service.url.startswith("/")
                found.append((service, self._platform if at_platform else self._connect(service.url)))
        except (TargetUnreachableError, ConfigError) as error:
            raise UnreachableError(error.message) from error
        return found

    def _probe(self, service: Service, exchange: Exchange) -> None:
        self._requests += 1
        path = service.url if service.url.startswith("/") else ""
        begun_s = time.perf_counter()
        try:
            answer = exchange(HttpRequest("GET", path))
        except TargetUnreachableError as error:
            why = error.message
        else:
            why = "" if answer.status // 100 == 2 else f"answered {answer.status}"
        at, taken_s, labels = self._journal.now(), time.perf_counter() - begun_s, {"service": service.name}
        self._journal.write(Sample(SERVICE_PROBE_SECONDS, at, taken_s, labels))
        self._journal.write(Sample(SERVICE_UP, at, float(not why), labels))
        if self._up.get(service.name, True) == bool(why):
            reason, severity = ("NotAnswering", "Warning") if why else ("Answering", "Normal")
            self._journal.write(Event(at, "Service", service.name, reason, why, "probe", type=severity))
        self._up[service.name] = not why


def open_collector(observation: Observation) -> ServiceProbes | None:
    """Probes the services that the plan's target knows, if any."""
    target, name = observation.target, observation.plan.target
    if not isinstance(target, HasServices):
        return None

    def connect(address: str) -> Exchange:
        # The credentials belong to the platform: other hosts do not get them.
        if address:
            return observation.connect(f"{name} service", address)
        return observation.platform(name)

    return ServiceProbes(observation, target, connect)

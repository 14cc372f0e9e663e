"""Probes of hetida's backend and adapters, against real servers."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.probes.service_probes import ServiceProbes, open_collector
from harness.model import Event, Outcome, Plan, Sample, Submission
from harness.model.live.observer import LiveObserver
from harness.model.phases import SERVICE_PROBE_SECONDS, SERVICE_UP
from harness.store import RunFolder
from harness.targets.credentials import Credentials
from harness.targets.hetida import HetidaTarget
from tests.support.observations import observation
from tests.support.servers import Served

TOKEN = "token-of-the-platform"


class Scene:
    """A backend with one adapter; `status` holds the status of both."""

    def __init__(self, path: Path, host: str, mode: str = "backend") -> None:
        self.folder = RunFolder.create(path, "run")
        plan = Plan("hetida", host, {}, 100, 0, False, target_options={"mode": mode})
        settings = ObserverSettings(host=host, credentials=Credentials(TOKEN), answer_timeout_s=2.0)
        self.journal = Journal(self.folder.recorder())
        target = HetidaTarget({"mode": mode}, host)
        probes = open_collector(observation(self.folder, self.journal, plan=plan, target=target, settings=settings))
        assert isinstance(probes, ServiceProbes)
        self.probes = probes

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.probes._polling.attempt()

    def submit(self, count: int) -> None:
        with self.folder.recorder() as ledger:
            for k in range(count):
                ledger.write(Submission(k, "", "n", 0, 0, 0, Outcome.ACCEPTED, f"r{k}", 0, 200, None))

    def samples(self, metric: str) -> list[tuple[str, float]]:
        return [(s.labels["service"], s.value) for s in self.folder.records(Sample) if s.metric == metric]


def platform(status: dict[str, int], adapter: str) -> Any:
    def answer(path: str, _: dict[str, str]) -> tuple[int, Any]:
        if path == "/api/adapters/":
            return status["backend"], [{"id": "pi", "name": "PI", "url": adapter, "internalUrl": "http://inside"}]
        return (status["backend"], {"version": "0.9"}) if path == "/engine/info" else (404, {})

    return answer


def test_backend_and_adapters_are_timed_and_start_and_end_of_an_outage_recorded(tmp_path: Path) -> None:
    status = {"backend": 200, "adapter": 200}
    with (
        Served(lambda path, _: (status["adapter"], {}) if path == "/info" else (404, {})) as adapter,
        Served(platform(status, adapter.url)) as backend,
    ):
        scene = Scene(tmp_path, backend.url)
        scene.rounds(1)
        status["adapter"] = 503
        scene.rounds(1)
        assert scene.probes.live() == LiveObserver(services_up={"backend": True, "adapter pi": False})
        status["adapter"] = 200
        scene.rounds(1)
        assert set(backend.tokens) == {f"Bearer {TOKEN}"}
        assert set(adapter.tokens) == {""}
    up = [(name, value) for name, value in scene.samples(SERVICE_UP) if name == "adapter pi"]
    assert up == [("adapter pi", 1.0), ("adapter pi", 0.0), ("adapter pi", 1.0)]
    assert all(0 < seconds < 2 for _, seconds in scene.samples(SERVICE_PROBE_SECONDS))
    events = [(event.object, event.reason, event.message) for event in scene.folder.records(Event)]
    assert events == [("adapter pi", "NotAnswering", "answered 503"), ("adapter pi", "Answering", "")]
    assert scene.journal.requests["hetida GET /api/adapters/"] == 4  # once for the list


def test_a_runtime_is_probed_at_its_health_endpoint(tmp_path: Path) -> None:
    with Served(platform({"backend": 200}, "")) as runtime:
        scene = Scene(tmp_path, runtime.url, mode="runtime")
        scene.rounds(1)
    assert scene.samples(SERVICE_UP) == [("runtime", 1.0)]


def test_a_silent_service_is_down_and_a_silent_platform_unreachable(tmp_path: Path) -> None:
    with Served(platform({"backend": 200}, "http://127.0.0.1:9")) as backend:
        scene = Scene(tmp_path, backend.url)
        scene.rounds(1)
    assert scene.samples(SERVICE_UP) == [("backend", 1.0), ("adapter pi", 0.0)]
    lost = Scene(tmp_path, "http://127.0.0.1:9")
    lost.rounds(1)
    assert [event.reason for event in lost.folder.records(Event)] == ["NotReachable"]


@pytest.mark.parametrize(("submitted", "rounds"), [(0, 3), (200, 9), (2000, 30)])
def test_probes_stay_within_a_share_of_the_load(tmp_path: Path, submitted: int, rounds: int) -> None:
    with Served(platform({"backend": 200}, "")) as backend:
        scene = Scene(tmp_path, backend.url, mode="runtime")
        scene.submit(submitted)
        scene.rounds(30)
    assert len(scene.samples(SERVICE_UP)) == rounds


def test_a_platform_without_services_is_not_probed(tmp_path: Path) -> None:
    assert open_collector(observation(RunFolder(tmp_path))) is None

"""What every collector keeps to, including the one in the documentation.

A new collector is one file, a row in `ROWS`, and the row in docs/observation.md that it names.
"""

import re
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from harness.collectors.collector import (
    Collector,
    Observation,
    ObserverSettings,
    collector_options,
    read_options,
    sources,
)
from harness.collectors.journal import Journal
from harness.collectors.metrics import profiles_file
from harness.collectors.observer import observe
from harness.collectors.probes.s3 import Bucket
from harness.model import Event, Plan, Sample
from harness.model.errors import ConfigError
from harness.model.live.observer import LiveObserver
from harness.model.options import Option
from harness.model.units import parse_duration
from harness.store import RunFolder
from harness.targets import kfp

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "observation.md").read_text()
NOBODY = "http://127.0.0.1:1"
# The collectors and the rows of the documentation's table that describe what they record.
ROWS = {
    "callbacks": ("callbacks",),
    "cluster": ("cluster", "workflows", "volume claims"),
    "listing": ("runs", "tasks"),
    "metrics_server": ("metrics-server",),
    "prometheus": ("Prometheus",),
    "run_watch": ("runs as objects",),
    "scraping": ("scraping",),
    "service_probes": ("services",),
    "store_probe": ("object store",),
    "volumes": ("volumes",),
}
# Collectors that decline: because of the plan's target, KFP, or because of settings that name no source for them.
NEEDS_TARGET = {"callbacks", "run_watch", "service_probes"}
NEEDS_SETTINGS = {"prometheus", "scraping", "store_probe"}

every_source = pytest.mark.parametrize("name", sorted(sources()))


def folder_of(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(Plan("kfp", NOBODY, {}, 0, 0, False, target_options={"experiment": "", "experiment_id": ""}))
    return folder


def unreachable(tmp_path: Path) -> ObserverSettings:
    """Settings that name every kind of source, none of which can be reached."""
    return ObserverSettings(
        host=NOBODY,
        kubeconfig=str(tmp_path / "none"),
        prometheus=NOBODY,
        metrics=(("kfp", NOBODY),),
        bucket=Bucket(endpoint=NOBODY, name="b", prefix="", region="us-east-1", key="key", secret="secret"),
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return folder_of(tmp_path)


@pytest.fixture
def journal(folder: RunFolder) -> Iterator[Journal]:
    with folder.recorder() as recorder:
        yield Journal(recorder)


def opened(name: str, folder: RunFolder, journal: Journal, settings: ObserverSettings) -> Collector | None:
    plan = folder.read_plan()
    target = kfp.from_plan(plan)
    observation = Observation(folder=folder, plan=plan, target=target, settings=settings, journal=journal)
    return sources()[name].open_collector(observation)


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENTATION, re.DOTALL)


class TestEachCollector:
    def test_is_found_with_the_built_in_ones(self) -> None:
        assert set(sources()) >= set(ROWS)

    @every_source
    def test_has_a_row_in_the_documentation(self, name: str) -> None:
        documented = set(re.findall(r"^\| ([\w -]+) \|", DOCUMENTATION, re.MULTILINE))
        assert documented >= set(ROWS[name])

    @every_source
    def test_without_anything_to_do_declines(
        self, name: str, folder: RunFolder, journal: Journal, tmp_path: Path
    ) -> None:
        settings = ObserverSettings(host=NOBODY, kubeconfig=str(tmp_path / "none"))
        declined = opened(name, folder, journal, settings) is None
        assert declined is (name in NEEDS_TARGET | NEEDS_SETTINGS)

    @every_source
    def test_records_that_its_source_is_unreachable_and_stops_in_time(
        self, name: str, folder: RunFolder, journal: Journal, tmp_path: Path
    ) -> None:
        collector = opened(name, folder, journal, unreachable(tmp_path))
        if collector is None:
            assert name in NEEDS_TARGET
            return
        assert collector.live() is None, "it has not looked yet"
        stop = threading.Event()
        stop.set()
        thread = threading.Thread(target=collector.collect, args=(stop,), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        live = collector.live()
        assert live is None or isinstance(live, LiveObserver)

    @every_source
    def test_keeps_its_options_to_itself(self, name: str) -> None:
        """An option is understood by argparse, and its name is taken by no other collector."""
        names = [option.name for option in collector_options()]
        assert len(names) == len(set(names))
        own = [option.name for option in getattr(sources()[name], "OPTIONS", ())]
        assert set(own) <= set(names)
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", each) for each in own)


def test_an_option_of_a_collector_is_found_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("licences")
    module.OPTIONS = (Option("licence-poll", "5s", "interval between samples", parse_duration),)  # type: ignore[attr-defined]
    monkeypatch.setattr("harness.collectors.collector.sources", lambda: {"licences": module})
    assert [option.name for option in collector_options()] == ["licence-poll"]
    assert read_options([]) == {"licence-poll": 5.0}
    assert read_options([("licence-poll", "1m")]) == {"licence-poll": 60.0}
    with pytest.raises(ConfigError, match=r"--collector-option licence-poll: 'soon' is not a duration"):
        read_options([("licence-poll", "soon")])
    with pytest.raises(
        ConfigError, match=r"--collector-option licence: no collector has this option\n.*did you mean .licence-poll"
    ):
        read_options([("licence", "x")])


class Broken:
    """A collector with a defect, which works the second time."""

    def __init__(self, observation: Observation) -> None:
        self._journal = observation.journal
        self.collected = 0

    def collect(self, stop: threading.Event) -> None:
        self.collected += 1
        if self.collected == 1:
            raise ZeroDivisionError("a defect with password=hunter2hunter2")
        self._journal.write(Sample("second", self._journal.now(), 1.0))
        stop.wait()

    def live(self) -> LiveObserver | None:
        raise ValueError("it can't show anything either")


def test_one_collectors_defect_is_recorded_and_does_not_end_the_others(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, documented = ModuleType("broken"), ModuleType("documented")
    module.open_collector = Broken  # type: ignore[attr-defined]
    exec(compile(examples("python")[0], "docs/observation.md", "exec"), documented.__dict__)
    for place in ("harness.collectors.observer.sources", "harness.collectors.collector.sources"):
        monkeypatch.setattr(place, lambda: {"broken": module, "documented": documented})
    monkeypatch.setattr("harness.collectors.observer._RESTART_S", 0.0)
    stop = threading.Event()
    thread = threading.Thread(
        target=observe, args=(folder, kfp.from_plan(folder.read_plan()), ObserverSettings(host=NOBODY), stop)
    )
    thread.start()
    pause = threading.Event()
    for _ in range(1000):
        if {sample.metric for sample in folder.records(Sample)} >= {"second", "solver_licences_free"}:
            break
        pause.wait(0.01)
    stop.set()
    thread.join(30)
    assert {sample.metric for sample in folder.records(Sample)} >= {"second", "solver_licences_free"}
    assert folder.read_live("observer")["solver"] == "watched"
    failed = [event for event in folder.records(Event) if event.reason == "Failed"]
    assert {event.message.partition(":")[0] for event in failed} == {"ZeroDivisionError", "ValueError"}
    assert {(event.object, "hunter2hunter2" in event.message) for event in failed} == {("broken", False)}


class TestLiveView:
    def test_collectors_fill_in_their_own_fields_and_third_parties_add_keys(self) -> None:
        whole = LiveObserver(runs={"RUNNING": 2}) | LiveObserver(nodes=3) | LiveObserver(other={"solver": "watched"})
        assert whole.to_json() == {"runs": {"RUNNING": 2}, "nodes": 3, "solver": "watched"}

    def test_what_was_written_is_read_and_what_is_absent_is_unknown(self) -> None:
        live = LiveObserver(at=1, stage="over", ready_nodes=0, requests={}, last_error="", other={"x": 1})
        assert LiveObserver.from_json(live.to_json()) == live
        assert LiveObserver.from_json({}) == LiveObserver()
        assert asdict(live)["pods"] is None


def test_the_documented_profile_is_one_and_the_list_of_profiles_is_complete(tmp_path: Path) -> None:
    (text,) = examples("yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    (metric,) = profiles_file.load(str(path)).metrics
    assert metric.queries("x", 60) == {"": 'sum by (queue_name) (x{queue_name="workflow_queue"})'}
    assert f"`{' '.join(profiles_file.names())}`" in DOCUMENTATION.replace("\n", " ")
    assert yaml.safe_load(text)["title"]

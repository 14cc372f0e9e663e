"""What every collector keeps to, also the one of the documentation."""

import re
import threading
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from harness.collectors.collector import Observation, ObserverSettings, sources
from harness.collectors.journal import Journal
from harness.collectors.metrics import profiles_file
from harness.collectors.observer import observe
from harness.collectors.probes.s3 import Bucket
from harness.model import Event, Plan, Sample
from harness.store import RunFolder
from harness.targets import kfp

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "observation.md").read_text()
NOBODY = "http://127.0.0.1:1"


def folder_of(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(Plan("kfp", NOBODY, {}, 0, 0, False, target_options={"experiment": "", "experiment_id": ""}))
    return folder


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENTATION, re.DOTALL)


@pytest.mark.parametrize("name", sorted(sources()))
def test_nothing_to_be_reached_is_recorded_and_ends_in_time(name: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    settings = ObserverSettings(
        NOBODY, kubeconfig=str(tmp_path / "none"), prometheus=NOBODY, metrics=(("kfp", NOBODY),),
        store_probe=Bucket(NOBODY, "b", "", "us-east-1", "key", "secret"),
    )  # fmt: skip
    plan = folder.read_plan()
    stop = threading.Event()
    stop.set()
    with folder.recorder() as recorder:
        observation = Observation(folder, plan, kfp.from_plan(plan), settings, Journal(recorder))
        collector = sources()[name].open_collector(observation)
        if collector is None:
            assert name in {"callbacks", "service_probes"}, "only what a target asks for may have nothing to do"
            return
        assert collector.live() == {}, "it has not looked yet"
        thread = threading.Thread(target=collector.collect, args=(stop,), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()


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

    def live(self) -> dict[str, object]:
        raise ValueError("it can't say anything of itself either")


def test_one_collectors_defect_is_recorded_and_ends_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, documented = ModuleType("broken"), ModuleType("documented")
    module.open_collector = Broken  # type: ignore[attr-defined]
    exec(compile(examples("python")[0], "docs/observation.md", "exec"), documented.__dict__)
    monkeypatch.setattr("harness.collectors.observer.sources", lambda: {"broken": module, "documented": documented})
    monkeypatch.setattr("harness.collectors.observer._RESTART_S", 0.0)
    folder = folder_of(tmp_path)
    stop = threading.Event()
    thread = threading.Thread(
        target=observe, args=(folder, kfp.from_plan(folder.read_plan()), ObserverSettings(NOBODY), stop)
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


def test_the_documented_profile_is_one_and_the_list_of_profiles_is_complete(tmp_path: Path) -> None:
    (text,) = examples("yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    (metric,) = profiles_file.load(str(path)).metrics
    assert metric.queries("x", 60) == {"": 'sum by (queue_name) (x{queue_name="workflow_queue"})'}
    assert f"`{' '.join(profiles_file.names())}`" in DOCUMENTATION.replace("\n", " ")
    assert yaml.safe_load(text)["title"]

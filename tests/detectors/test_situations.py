"""What operators met, imported from dumps: the cause that the cluster stated comes first, with its cost and its fix."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from harness.cli import main
from harness.collectors.collector import ObserverSettings
from harness.collectors.explaining import Past, Store, Window
from harness.collectors.inferred_runs import inferred_runs
from harness.detectors import detectors, diagnose
from harness.model import Event, Plan, Span
from harness.model.findings import Diagnosis
from harness.planning.timelines import timeline_in, timeline_of
from harness.store import RunFolder
from harness.store.answers import Answers
from tests.support.first_findings import SITUATIONS_FIRST
from tests.support.past_store import EVERY_S, dump, prometheus_of, stamps

SITUATIONS = Path(__file__).parents[1] / "data" / "situations"
DOUBTS = {each.NAME for each in detectors() if getattr(each, "DOUBT", False)}
WRONG = {
    "nodes-exhausted", "autoscaler-slow", "store-slow", "steps-end-late", "store-full", "failures", "image-missing",
    "controller-backlog", "unexplained-wait",
}  # fmt: skip


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Diagnosis]:
    """The diagnosis of a situation, imported as a user would."""

    @cache
    def diagnosis(name: str) -> Diagnosis:
        place = tmp_path_factory.mktemp("runs")
        arguments = ["--target", "argo", "--namespace", "team-a", "--runs-dir", str(place), "--run-name", name]
        main(["import", *arguments, str(SITUATIONS / f"{name}.json")])
        return diagnose(timeline_of(place / name))

    return diagnosis


@pytest.mark.parametrize(("name", "first", "title", "fix", "evidence"), SITUATIONS_FIRST)
def test_the_stated_cause_comes_first_with_its_cost_and_its_fix(diagnosed, name, first, title, fix, evidence):
    causes = [finding for finding in diagnosed(name).findings if finding.name not in DOUBTS]
    found = causes[0]
    assert found.name == first
    assert title in found.title
    assert fix in found.fix
    assert any(evidence in each.statement for each in found.evidence)
    assert not {each.name for each in causes} & WRONG
    assert all(command.startswith("kubectl get ") or " describe " in command or " logs " in command
               for command in found.commands[:1])  # fmt: skip


def test_an_import_ends_with_the_last_thing_that_its_files_show(diagnosed):
    stuck = diagnosed("istio_sidecar").findings[0]
    longest = next(each for each in stuck.evidence if "the longest wait" in each.statement)
    assert longest.value < 600


@pytest.fixture(scope="module")
def after_the_fact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Diagnosis]]:
    """The same from what kube-state-metrics showed of their pods and nodes, when nothing else is left of them."""
    items = {path.stem: json.loads(path.read_bytes())["items"] for path in sorted(SITUATIONS.glob("*.json"))}
    shown = {name: [each for each in objects if each["kind"] in {"Pod", "Node"}] for name, objects in items.items()}
    ends = {
        name: (int(min(times)) - EVERY_S, int(max(times)) + 2 * EVERY_S)
        for name, objects in items.items()
        if (times := list(stamps([each for each in objects if each["kind"] != "Node"])))
    }
    dumps = (dump(((each, None) for each in objects), *ends[name], name) for name, objects in shown.items())
    with prometheus_of(chain.from_iterable(dumps), tmp_path_factory.mktemp("prometheus")) as url:

        def diagnosis(name: str) -> Diagnosis:
            folder = RunFolder.create(tmp_path_factory.mktemp("runs"), name)
            window = Window(*(at_s * 10**9 for at_s in ends[name]))
            options = {"namespace": "team-a"}
            folder.write_plan(Plan("argo", "", {}, 0, 0, False, options, started_at=window.since_at))
            past = Past(
                folder,
                ObserverSettings(host="", prometheus=url),
                window,
                Store(matchers=f'cluster="{name}"'),
                Answers(folder),
            )
            past.fetch(threading.Event(), lambda _: None, lambda: None)
            with folder.recorder() as recorder:
                past.record(recorder)
                for record in inferred_runs(folder.records(Span), folder.records(Event)):
                    recorder.write(record)
            return diagnose(timeline_in(folder))

        yield diagnosis


@pytest.mark.xdist_group("prometheus")
@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("attach_timeout", {"image-pull"}),  # no series tells mounting from pulling
        ("create_container_config", {"container-config-error"}),
        ("istio_sidecar", set()),
        ("node_notready", set()),
        ("preempted", {"failures"}),
        ("pull_429", {"image-pull"}),
        ("pvc_unbound", {"unexplained-wait"}),  # and not full nodes: by requests they have room
        ("s3_slowdown", set()),
        ("untolerated_taint", {"unexplained-wait"}),
        ("webhook_timeout", set()),
    ],
)
def test_after_the_fact_nothing_is_named_that_the_series_do_not_show(after_the_fact, name, found):
    diagnosis = after_the_fact(name)
    assert {each.name for each in diagnosis.findings} - DOUBTS == found
    assert all(each.confidence < 0.85 for each in diagnosis.findings if each.name == "image-pull")

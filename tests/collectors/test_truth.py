"""Spans from manifests and events, against the simulated platform's exact truth.

The platform runs in simulated time. Every object that its Kubernetes API would show is handed to the collectors as it
is rendered there: whole seconds, several versions, events beside them.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.model import Span
from harness.model.phases import RUNNING, SCHEDULING, STORING, UNSCHEDULABLE
from harness.simulator.cluster import Change, Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile
from harness.simulator.workflows.workflow import Workflow
from harness.store import RunFolder

ORIGIN_AT = 1_790_000_000 * 10**9
PIPELINE = Path(__file__).parents[2] / "harness" / "targets" / "training.yaml"


class Observed(KubernetesView):
    """The Kubernetes API with the collectors watching it, and the true pods."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(Calendar(ORIGIN_AT))
        self.truth: dict[str, Pod] = {}
        journal = Journal(folder.recorder(), now=lambda: self.calendar.ns(self._now))
        self.pods = Pods(journal, 0)
        self.events = Events(journal, self.pods.see_event, 0)
        self._told = self.store.version

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        super().pod_changed(pod, change, detail)
        if isinstance(pod.owner, Workflow) and change is not Change.REFUSED:
            self.truth[pod.name] = pod
        self._tell()

    def _tell(self) -> None:
        """Report the changes that a watch would have shown."""
        kinds = {each.plural: each for each in self.store.resources if each.group == "" and each.listing is None}
        for plural, see in (("pods", self.pods.see), ("events", self.events.see)):
            for change in self.store.changes(plural, self._told, 1000):
                see("DELETED" if change.deleted else "MODIFIED", change.after.manifest(kinds[plural]))
        self._told = self.store.version


@pytest.fixture(scope="module", params=["demo", "spot-pool"])
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Observed]:
    folder = RunFolder(tmp_path_factory.mktemp("truth"))
    view = Observed(folder)
    platform = Platform(replace(load_profile(request.param), caching=False), 7, view)
    view.follow(platform)
    pipeline = platform.server.catalogue.create_pipeline(PIPELINE.read_bytes())
    version = platform.server.catalogue.version(pipeline.id, "")
    for k in range(60):
        run = platform.server.prepare_run(f"run-{k}", "", version, {}, by_reference=True)
        platform.loop.at(k * 0.31, platform.server.start_run, run, lambda _: None)
    platform.loop.run(3600.0)
    view.events.release(every=True)
    return folder, view


def boundaries(spans: list[Span]) -> dict[str, tuple[Span, Span]]:
    """First and last span of each phase of one pod."""
    found: dict[str, tuple[Span, Span]] = {}
    for span in sorted(spans, key=lambda span: span.started_at):
        found[span.phase] = (found.get(span.phase, (span, span))[0], span)
    return found


def test_every_boundary_is_exact_to_the_resolution_of_its_stamp(
    observed: tuple[RunFolder, Observed],
) -> None:
    folder, view = observed
    last = {(span.step, span.phase, span.attempt): span for span in folder.records(Span)}
    of_pod: dict[str, list[Span]] = {}
    for span in last.values():
        if span.ended_at != span.started_at or span.phase in {SCHEDULING, RUNNING}:
            of_pod.setdefault(span.step, []).append(span)
    assert len(view.truth) >= 60 * 7
    assert set(of_pod) == set(view.truth)
    checked = 0
    for name, pod in view.truth.items():
        known = boundaries(of_pod[name])
        placing = known.get(UNSCHEDULABLE, known[SCHEDULING])[1]
        told: list[tuple[float | None, int | None, float]] = [
            (pod.created, known[SCHEDULING][0].started_at, 1.0),
            (pod.scheduled, placing.ended_at, 1e-5),
        ]
        if UNSCHEDULABLE in known:
            told.append((pod.unschedulable, known[UNSCHEDULABLE][0].started_at, 1e-5))
        if RUNNING in known and pod.main_ended is not None:
            told.append((pod.started, known[RUNNING][0].started_at, 1.0))
            told.append((pod.main_ended, known[RUNNING][1].ended_at, 1.0))
            told.append((pod.finished, known.get(STORING, known[RUNNING])[1].ended_at, 1.0))
        for truth, at, resolution_s in told:
            if truth is not None and at is not None:
                checked += 1
                assert abs(at - view.calendar.ns(truth)) / 1e9 <= resolution_s, (name, truth, of_pod[name])
    assert checked >= 5 * len(view.truth) * 0.9


def test_a_pods_phases_add_up_to_its_lifetime(observed: tuple[RunFolder, Observed]) -> None:
    folder, view = observed
    last = {(span.step, span.phase, span.attempt): span for span in folder.records(Span)}
    lengths: dict[str, float] = {}
    for span in last.values():
        assert span.ended_at is not None
        lengths[span.step] = lengths.get(span.step, 0.0) + (span.ended_at - span.started_at) / 1e9
    for name, pod in view.truth.items():
        over = pod.finished if pod.finished is not None else pod.leaves
        if over is not None:
            assert lengths[name] == pytest.approx(over - pod.created, abs=1.0), name

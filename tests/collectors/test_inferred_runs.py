"""Runs of which only pods are known."""

import pytest

from harness.collectors.inferred_runs import inferred_runs, runs_of_workflows
from harness.model import Event, Span
from harness.model.phases import FAILED, INFERRED, RUN, RUNNING, SUCCEEDED

S = 10**9


def pod(run: str, name: str, begun_s: int, ended_s: int | None, task: str = "train") -> Span:
    return Span(run, name, RUNNING, begun_s * S, ended_s and ended_s * S, task, resolution_s=30.0)


def failure(run: str, name: str, reason: str = "Error", namespace: str = "") -> Event:
    return Event(5 * S, "Pod", name, reason, "", "kubernetes", run, namespace=namespace)


def end_of(spans: list[Span], events: list[Event]) -> str:
    found = [each.reason for each in inferred_runs(spans, events) if isinstance(each, Event) and each.kind == "Run"]
    return found[0] if found else "going on"


@pytest.mark.parametrize(
    ("spans", "events", "end"),
    [
        ([pod("r", "a", 10, 20), pod("r", "b", 21, 60)], [], SUCCEEDED),
        ([pod("r", "a", 10, 20)], [failure("r", "a")], FAILED),
        ([pod("r", "a", 10, 20), pod("r", "b", 30, 60)], [failure("r", "a")], SUCCEEDED),  # tried again
        ([pod("r", "a", 10, 20), pod("r", "b", 30, 60, "other")], [failure("r", "a")], FAILED),
        ([pod("r", "a", 10, 20)], [failure("r", "a", "ImagePullBackOff")], SUCCEEDED),  # it came later
        ([pod("r", "a", 10, 20)], [failure("r", "a", "Unhealthy", "team-a")], SUCCEEDED),  # an event of the cluster
        ([pod("r", "a", 10, None)], [], "going on"),
    ],
)
def test_a_run_ends_as_its_pods_did(spans: list[Span], events: list[Event], end: str) -> None:
    assert end_of(spans, events) == end


def test_an_inferred_run_lasts_from_its_first_pod_to_its_last_and_is_said_to_be_inferred() -> None:
    listed = Span("known", "", RUN, 5 * S, 50 * S, source="kfp")
    spans = [listed, pod("known", "k", 6, 40), pod("wf-1", "a", 10, 20), pod("wf-1", "b", 21, 60)]
    run, end, note = inferred_runs(spans, [])
    assert isinstance(run, Span)
    assert (run.run, run.step, run.started_at, run.ended_at) == ("wf-1", "", 10 * S, 60 * S)
    assert (run.source, run.resolution_s) == ("inferred", 30.0)
    assert isinstance(end, Event)
    assert isinstance(note, Event)
    assert note.reason == INFERRED
    assert "1 run of 2" in note.message


def test_pods_of_other_workloads_are_no_runs() -> None:
    assert not list(inferred_runs([pod("team-b/nightly", "team-b/x", 10, 20)], []))


def test_a_workflow_is_the_run_whose_pod_an_api_still_shows() -> None:
    pods = {"wf-a-1": ("wf-a", "x-driver"), "wf-a-2": ("wf-a", "x"), "wf-b-1": ("wf-b", "x-driver")}
    spans = [pod("id-7", "wf-a-2", 10, 20), Span("id-7", "", RUN, 5 * S, 50 * S)]
    assert runs_of_workflows(pods, {"wf-a": 8 * S, "wf-b": 9 * S}, spans) == {"wf-a": "id-7"}


def test_workflows_without_such_a_pod_are_runs_in_the_order_of_their_times() -> None:
    pods = {name: (name[:4], "root-driver") for name in ("wf-a-1", "wf-b-1", "wf-c-1")}
    runs = [Span(f"id-{k}", "", RUN, at * S, (at + 30) * S) for k, at in enumerate((10, 20, 300))]
    found = runs_of_workflows(pods, {"wf-b": 21 * S, "wf-a": 11 * S, "wf-c": 900 * S}, runs)
    assert found == {"wf-a": "id-0", "wf-b": "id-1"}  # nothing ran when wf-c began


def test_an_argo_workflow_is_its_own_run() -> None:
    pods = {"etl-1-main-1": ("etl-1", "main")}
    assert runs_of_workflows(pods, {"etl-1": 11 * S}, [Span("etl-1", "", RUN, 10 * S, 30 * S)]) == {}

"""The observer as a process of its own: killed, cut off, without room, or shown another cluster."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.model import Event, Node, Span
from harness.model.phases import GAP, RUNNING, SUCCEEDED, TERMINAL_STATES, WRONG_CLUSTER
from harness.model.units import parse_duration
from harness.store import RunFolder
from tests.support.observers import (
    Simulator,
    all_over,
    assert_each_end_is_recorded_once,
    ends,
    last_spans,
    observing,
    prepared,
    serving,
    start,
    submitted,
)
from tests.support.servers import Proxy, Served, fill, kubeconfig, proxied, small_file_system, until


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with serving(str(Path(__file__).parents[1] / "e2e" / "quick.yaml")) as simulator:
        yield simulator


@pytest.mark.fault("none")
def test_restarted_after_a_kill_it_resumes_and_records_nothing_twice(simulator: Simulator, tmp_path: Path) -> None:
    folder, target = prepared(simulator, tmp_path, "killed")
    first = start(folder, simulator.kubeconfig)
    until(lambda: folder.read_live("observer"), "the first look")
    runs = submitted(simulator, target, folder, 3)
    until(lambda: any(span.phase == RUNNING for span in folder.records(Span)), "a pod that runs")
    first.kill()
    first.wait()
    with observing(folder, simulator.kubeconfig):
        until(lambda: set(ends(folder)) == set(runs), "three ends", 90)
        until(
            lambda: all_over(simulator, runs), "that the platform says so, too"
        )  # the cluster may have shown it before
    assert_each_end_is_recorded_once(folder, runs)
    cluster = [(e.kind, e.object, e.reason, e.at, e.message) for e in folder.records(Event) if e.source == "kubernetes"]
    assert len(cluster) == len(set(cluster))
    for spans in last_spans(folder).values():
        assert spans[-1].ended_at is not None


@pytest.mark.fault("none")
def test_constant_network_failures_lose_no_run_and_no_pod(simulator: Simulator, tmp_path: Path) -> None:
    port = urlsplit(simulator.url).port
    assert port is not None
    with proxied(port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        folder, target = prepared(simulator, tmp_path, "broken", host=address)
        with observing(folder, kubeconfig(tmp_path / "config", address)):
            runs = submitted(simulator, target, folder, 3)
            _torment(proxy, folder, len(runs))
    assert {ends(folder)[run] for run in runs} <= TERMINAL_STATES
    steps = last_spans(folder)
    for pod in simulator.get("/api/v1/pods")["items"]:
        if pod["metadata"].get("labels", {}).get("pipeline/runid") in runs:
            assert steps[pod["metadata"]["name"]][-1].ended_at is not None
    assert "Retry" in {event.reason for event in folder.records(Event) if event.kind == "Observer"}


@pytest.mark.fault("none of the ledger; the gap is recorded")
@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("silent_s", [25, 150])
def test_a_cluster_that_is_silent_for_seconds_or_minutes_leaves_a_gap_and_is_followed_again(
    simulator: Simulator, tmp_path: Path, silent_s: int
) -> None:
    port = urlsplit(simulator.url).port
    assert port is not None
    with proxied(port) as proxy:
        folder, _ = prepared(simulator, tmp_path, "silent")
        with observing(folder, kubeconfig(tmp_path / "config", f"http://127.0.0.1:{proxy.port}")):
            until(lambda: folder.records(Node), "the nodes", 60)
            proxy.flows.clear()
            time.sleep(silent_s)
            proxy.flows.set()
            until(lambda: gaps(folder), "the gap", 60)
    assert "kubernetes" in gaps(folder)
    assert all(5 < seconds < silent_s + 40 for seconds in gaps(folder).values())


def gaps(folder: RunFolder) -> dict[str, float]:
    """Seconds of each gap, by source."""
    found = [event for event in folder.records(Event) if event.kind == "Observer" and event.reason == GAP]
    return {
        event.object: parse_duration(re.match(r"unreachable for ([^:,]+)", event.message)[1].replace("min", "m"))
        for event in found
    }


def _torment(proxy: Proxy, folder: RunFolder, count: int) -> None:
    """Cut all connections twice a second, and refuse new ones every now and then, until the runs are over."""
    cuts = 0

    def over() -> bool:
        nonlocal cuts
        cuts += 1
        if cuts % 25 == 0:
            proxy.cut()
            proxy.refuses = cuts % 100 == 0
        return len(ends(folder)) == count

    until(over, "the ends", 120)
    proxy.refuses = False


def test_without_a_cluster_the_runs_are_recorded_and_the_rest_is_noted_as_unreachable(
    simulator: Simulator, tmp_path: Path
) -> None:
    folder, target = prepared(simulator, tmp_path, "blind")
    with observing(folder, str(tmp_path / "no-such-kubeconfig")):
        (run,) = submitted(simulator, target, folder, 1)
        until(lambda: ends(folder), "the end", 90)
    assert ends(folder) == {run: SUCCEEDED}
    said = {event.object: event.message for event in folder.records(Event) if event.reason == "NotReachable"}
    assert set(said) == {"kubernetes", "volumes", "metrics-server"}
    assert "there is no kubeconfig" in said["kubernetes"]
    assert Counter(event.object for event in folder.records(Event) if event.reason == "NotReachable")["kubernetes"] == 1


@pytest.mark.fault("none")
def test_a_temporarily_full_disk_loses_no_record_and_is_noted(simulator: Simulator, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk", "2m") as disk:
        folder, target = prepared(simulator, disk, "full")
        with observing(folder, simulator.kubeconfig):
            runs = submitted(simulator, target, folder, 3)
            until(lambda: any(span.phase == RUNNING for span in folder.records(Span)), "a pod that runs")
            filler = disk / "filler"
            fill(filler)
            until(lambda: all_over(simulator, runs), "the runs over", 90)
            assert not ends(folder)
            filler.unlink()
            until(lambda: set(ends(folder)) == set(runs), "three ends", 90)
        assert_each_end_is_recorded_once(folder, runs)
        for spans in last_spans(folder).values():
            assert spans[-1].ended_at is not None
        (gap,) = (event for event in folder.records(Event) if event.object == "run folder")
        assert gap.reason == GAP
        assert "every record was kept" in gap.message


def test_a_kubeconfig_of_another_cluster_is_detected(simulator: Simulator, tmp_path: Path) -> None:
    """Both APIs answer, but of different platforms."""
    folder, target = prepared(simulator, tmp_path, "elsewhere")
    nothing = {"metadata": {"resourceVersion": "1"}, "items": []}

    def answer(path: str, query: dict[str, str]) -> tuple[int, Any]:
        return (404, {}) if "argoproj" in path else (200, [] if "watch" in query else nothing)

    with (
        Served(answer) as other,
        observing(folder, kubeconfig(tmp_path / "config", other.url)),
    ):
        runs = submitted(simulator, target, folder, 1)
        until(lambda: set(ends(folder)) == set(runs), "the end", 90)
    (doubt,) = (event for event in folder.records(Event) if event.reason == WRONG_CLUSTER)
    assert doubt.message.startswith(f"1 of the runs at {simulator.url} succeeded, but no observed pod worked")

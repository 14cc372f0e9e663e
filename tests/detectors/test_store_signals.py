"""A slow and a full store by what a real platform shows: runs carry no error, and steps end with an exit code."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.analysis.waits.storing import logged_pods, storing
from harness.analysis.waits.waits import waits
from harness.detectors import diagnose
from harness.model import Event, Plan, Sample, Scenario, Span
from harness.model.phases import (
    POD_LOGS,
    RUNNING,
    STORE_PROBE_SECONDS,
    STORE_REQUEST_SECONDS,
    STORING,
    UPLOAD_SECONDS,
)
from harness.model.sampling import Sampling
from harness.reasons import builtin
from harness.simulator.fast import Arrival, recorder
from harness.simulator.faults import parse_fault
from harness.simulator.profile import ArtifactStore, Profile
from harness.simulator.profile.file import load_profile
from harness.simulator.profile.store_products import StoreProduct
from tests.support.injection.case import ORIGIN_AT, Case, profile_of, read_back, records
from tests.support.injection.case import simulated as injected
from tests.support.injection.cases import CASES
from tests.support.injection.packages import PACKAGE
from tests.support.injection.seen import seen
from tests.support.simulated import simulate

MI = 2.0**20
RUNS = 60


def blank(records: Iterable[Any]) -> Iterator[Any]:
    """As a real platform: no run has an error text."""
    for each in records:
        yield replace(each, message="") if isinstance(each, Event) and each.kind == "Run" else each


def simulated(
    profile: Profile, fault: str = "none", *more: Any, without: frozenset[str] = frozenset(), runs: int = RUNS
) -> Timeline:
    """A burst of runs on the platform, and the records `more`."""
    arrivals = [Arrival(5.0 + 0.5 * k, Scenario(str(k), "s", {}, {})) for k in range(runs)]
    plan = Plan("kfp", "simulated", {"name": "constant"}, runs, 1, simulated=True, started_at=ORIGIN_AT)
    injected = parse_fault(fault)
    records = simulate(
        profile, PACKAGE, arrivals, faults=[injected] if injected else [], seed=1, origin_at=ORIGIN_AT, drain_s=900.0
    )
    return read_back(plan, [*blank(seen(records, without=without, whole=True)), *more])


def filling(product: StoreProduct, megabytes: float) -> Profile:
    """A platform whose store has this much room, less than the runs need."""
    demo = load_profile("demo")
    return replace(demo, store=ArtifactStore(product, capacity=megabytes * MI, timeout_s=2.0))


@pytest.fixture
def no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No log of a pod may be read."""
    for kind in ("of_uploads", "of_failures"):
        monkeypatch.setattr(recorder, kind, lambda: Sampling(1, 0))


def named(timeline: Timeline) -> tuple[str, dict[str, str]]:
    diagnosis = diagnose(timeline)
    first = diagnosis.findings[0].name if diagnosis.findings else ""
    return first, {each.name: each.reason for each in diagnosis.not_judged}


@pytest.mark.parametrize("product", StoreProduct)
@pytest.mark.parametrize("without", [frozenset(), frozenset({"store"})])
def test_a_store_that_fills_up_is_named_first_from_the_logs_of_failed_steps(
    product: StoreProduct, without: frozenset[str]
) -> None:
    timeline = simulated(filling(product, 1500), without=without)
    failed = len(failures(timeline))
    assert 5 < failed < RUNS
    finding = diagnose(timeline).findings[0]
    assert finding.name == "store-full"
    assert "failed to upload output artifact" in finding.evidence[0].statement
    code = "XMinioStorageFull" if product is StoreProduct.MINIO else "StatusCode: 500, api error InternalError"
    assert code in finding.evidence[0].statement, "the cause, which comes last"
    assert f"{failed / RUNS:.0%} of the runs failed" in finding.title
    if not without or product is StoreProduct.MINIO:  # whose error says so; SeaweedFS only that it failed
        assert finding.confidence >= 0.9
    else:
        assert finding.confidence == pytest.approx(0.5)


@pytest.mark.usefixtures("no_logs")
def test_without_logs_a_full_volume_explains_the_exit_codes_that_follow_it() -> None:
    timeline = simulated(filling(StoreProduct.SEAWEEDFS, 1500))
    finding = diagnose(timeline).findings[0]
    assert finding.name == "store-full"
    assert finding.confidence > 0.9
    assert f"{len(failures(timeline)) / RUNS:.0%} of the runs failed because of it" in finding.title


@pytest.mark.usefixtures("no_logs")
def test_without_logs_and_volume_the_store_is_not_judged_and_the_missing_permission_is_named() -> None:
    _, silent = named(simulated(filling(StoreProduct.SEAWEEDFS, 1500), without=frozenset({"store"})))
    assert "pods/log" in silent["store-full"]
    assert "free space of the store's volume was not observed" in silent["store-full"]


def test_failed_runs_whose_logs_were_not_read_count_as_those_that_were(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = filling(StoreProduct.MINIO, 1500)
    whole = len(failures(simulated(profile)))
    monkeypatch.setattr(recorder, "of_failures", lambda: Sampling(1, 3))
    finding = diagnose(simulated(profile, without=frozenset({"store"}))).findings[0]
    assert finding.name == "store-full"
    assert f"3 of {whole} failed runs" in finding.evidence[0].statement
    assert finding.title.endswith(f"{whole / RUNS:.0%} of the runs failed because of it")


def test_a_full_store_that_cannot_even_take_logs_is_named_from_what_wait_reports() -> None:
    demo = load_profile("demo")
    full = replace(demo, store=ArtifactStore(StoreProduct.MINIO, capacity=MI, used=MI, timeout_s=1.0))
    finding = diagnose(simulated(full, runs=30, without=frozenset({"store"}))).findings[0]
    assert finding.name == "store-full"
    assert "failed to put file: Storage backend has reached its minimum free disk threshold" in (
        finding.evidence[0].statement
    )


@pytest.mark.parametrize(
    ("text", "says_nothing"),
    [
        ("container main ended with exit code 1", True),  # a pod
        ("main: Error (exit code 1)", True),  # an Argo node
        ("child 'train-three-tw9m9-1' failed", True),
        ("omitted: depends condition not met", True),
        ("main: Error (exit code 1): no such column", False),
        ("container wait ended with exit code 64", False),
        ("main: OOMKilled (exit code 137)", False),
        ("pod deleted", False),
    ],
)
def test_texts_without_a_reason_are_known(text: str, says_nothing: bool) -> None:
    row = builtin().search(text).row
    assert (row is not None and row.name == "step-failed") is says_nothing


def test_logs_of_other_peoples_runs_and_logs_read_twice_do_not_count() -> None:
    def read(pod: str) -> Sample:
        return Sample(UPLOAD_SECONDS, ORIGIN_AT + 10**10, 100.0, {"task": "train", "pod": pod})

    alone = simulated(load_profile("demo"), runs=30)
    again = alone.names[int(logged_pods(alone)[0])]
    theirs = Span("another-run", "another-pod", STORING, ORIGIN_AT, ORIGIN_AT + 10**11, task="train")
    crowded = simulated(load_profile("demo"), "none", read(again), read("another-pod"), theirs, runs=30)
    assert storing(crowded).total_s == storing(alone).total_s
    assert storing(crowded).share == storing(alone).share


def slow() -> Timeline:
    return simulated(load_profile("demo"), "store-slow:2")


def test_a_slow_store_is_named_first_from_a_sample_of_logs() -> None:
    timeline = slow()
    logged = timeline.metric(UPLOAD_SECONDS)
    assert 20 < len(logged) < 3 * RUNS, "a sample"
    finding = diagnose(timeline).findings[0]
    assert finding.name == "store-slow"
    assert f"{len(logged)} steps' logs show when they uploaded their outputs" in finding.evidence[1].statement
    assert storing(timeline).caveat.startswith(f"storing was separated from running in {len(logged)} pods")


def test_the_share_estimated_from_a_sample_is_near_that_of_all_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = storing(slow())
    monkeypatch.setattr(recorder, "of_uploads", lambda: Sampling(10**6, 10**6))
    whole = storing(slow())
    assert whole.share == pytest.approx(whole.seen, rel=0.02)
    assert sampled.seen < 0.8 * whole.seen
    assert sampled.share == pytest.approx(whole.share, rel=0.1)


def test_the_phases_add_up_whether_or_not_storing_was_seen() -> None:
    split = waits(slow())
    assert np.allclose(split.seconds.sum(axis=1), split.total, rtol=0, atol=1e-6)
    assert split.of(STORING).sum() > 0
    assert split.of(RUNNING).sum() > 0


@pytest.mark.usefixtures("no_logs")
@pytest.mark.parametrize(
    ("notes", "why"),
    [
        ((), "no log of a pod was read"),
        (("GET /log: 403 pods is forbidden",), "no permission to read logs of pods"),
        (("GET /log: 500 no preferred addresses found",), "the kubelets did not hand out logs of pods"),
    ],
)
def test_without_logs_metrics_and_probe_a_slow_store_is_not_judged(notes: tuple[str, ...], why: str) -> None:
    more = [Event(ORIGIN_AT, "Observer", POD_LOGS, "NotReachable", note) for note in notes]
    first, silent = named(simulated(load_profile("demo"), "store-slow:2", *more))
    assert first != "store-slow"
    assert silent["store-slow"].startswith(f"storing could not be separated from running: {why}")


@pytest.mark.usefixtures("no_logs")
@pytest.mark.parametrize(
    ("metric", "labels", "said"),
    [
        (STORE_PROBE_SECONDS, {"operation": "PUT", "bucket": "mlpipeline"}, "the observer's 4 KiB took 3 s to write"),
        (STORE_REQUEST_SECONDS, {"type": "PUT", "quantile": "0.5"}, "a write took 3 s by the store's own metrics"),
    ],
)
@pytest.mark.parametrize(("seconds", "found"), [(3.0, True), (0.2, False)])
def test_slow_requests_show_a_slow_store_where_logs_do_not(
    metric: str, labels: dict[str, str], said: str, seconds: float, found: bool
) -> None:
    more = [Sample(metric, ORIGIN_AT + k * 10**10, seconds, labels) for k in range(1, 6)]
    more += [Sample(metric, ORIGIN_AT + k * 10**10, 9.0, {**labels, "type": "GET", "operation": "GET"}) for k in (1, 2)]
    findings = {each.name: each for each in diagnose(simulated(load_profile("demo"), "none", *more, runs=30)).findings}
    assert ("store-slow" in findings) is found
    if found:
        assert said in findings["store-slow"].evidence[0].statement


def test_steps_that_write_much_wait_no_more_times_longer_than_others_so_sizes_can_not_replace_logs():
    """`train` writes 32 times as much as `evaluate`, and slows down no more, for a slow store as for a lack of CPU."""

    def running(case):
        timeline = injected(replace(case, without=frozenset({"step logs"})), 1.0, 1)
        pods = timeline.pods[timeline.of_runs(RUNNING)]
        length = floats(pods, "end_s") - floats(pods, "start_s")
        return pods.assign(length=length).groupby("task", observed=True)["length"].median()

    usual = running(Case())
    for fault in ("store-slow", "cpu-starved"):
        slower = running(CASES[fault]) / usual
        assert slower["evaluate"] > 2
        assert slower["train"] / slower["evaluate"] < 1.25


@pytest.mark.parametrize("name", ["none", "store-full", "store-slow"])
def test_drawn_tests_without_logs_are_what_is_recorded_where_none_is_read(name, request):
    case = CASES.get(name, Case())
    everything = list(records(case, 1.0, 1, profile_of(case)))
    request.getfixturevalue("no_logs")
    without = list(seen(everything, without=frozenset({"step logs"}), whole=False))
    assert without == list(records(case, 1.0, 1, profile_of(case)))
    assert without != everything

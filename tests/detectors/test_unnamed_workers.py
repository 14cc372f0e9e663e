"""Imbalance where no response names its worker: inferred from timing, and reported as such."""

from dataclasses import replace

import pandas as pd
import pytest

from harness.analysis.services.executions import executions
from harness.cli import main
from harness.detectors import diagnose
from harness.detectors.detector import CannotJudgeError
from harness.detectors.services import lb_imbalance
from harness.detectors.services.replicas import drain_tail
from harness.model.phases import COMPUTING, POD_CPU_CORES, QUEUED, REPLICA_WORKERS
from harness.planning.timelines import timeline_of
from tests.support.timelines import Story

_OF_REPLICAS = (POD_CPU_CORES, REPLICA_WORKERS)


def simulated(place, monkeypatch, profile, *schedule):
    """A simulated test whose responses name the replica, and no worker of it."""
    monkeypatch.chdir(place)
    assert (
        main(
            [
                "simulate",
                "run",
                "--profile",
                profile,
                "--runs",
                "400",
                *schedule,
                "--run-name",
                "r",
                "--quiet",
            ]
        )
        == 0
    )
    return timeline_of(place / "runs" / "r")


def unnamed(place, monkeypatch, profile, *schedule):
    """The same where they do not even name the replica, and Kubernetes is not observed."""
    timeline = shown(place, monkeypatch, profile, *schedule)
    return replace(timeline, samples=timeline.samples[~timeline.samples["metric"].isin(_OF_REPLICAS)])


def shown(place, monkeypatch, profile, *schedule):
    """The same where Kubernetes shows the replicas that the responses don't name."""
    timeline = simulated(place, monkeypatch, profile, *schedule)
    return replace(timeline, pods=timeline.pods.assign(node=pd.Categorical([""] * len(timeline.pods))))


def test_an_uneven_tail_is_inferred_from_timing_alone(tmp_path, monkeypatch):
    timeline = unnamed(tmp_path, monkeypatch, "hetida-pattern-1", "--schedule", "burst")
    (finding,) = lb_imbalance.detect(timeline)
    assert finding.title.startswith("The load seems unbalanced: most workers were idle in the last")
    assert "inferred from timing" in finding.evidence[0].statement
    assert drain_tail(timeline).tail_s > 6 * drain_tail(timeline).computing_s


@pytest.mark.parametrize(
    ("profile", "schedule", "inferred"),
    [
        ("hetida-pattern-1", ("--schedule", "burst"), True),
        ("hetida-least-connections", ("--schedule", "burst"), False),
        ("hetida-pattern-3", ("--schedule", "spread", "--over", "3m"), False),
    ],
)
def test_replicas_that_kubernetes_shows_to_be_even_leave_only_their_workers(
    profile, schedule, inferred, tmp_path, monkeypatch
):
    found = lb_imbalance.detect(shown(tmp_path, monkeypatch, profile, *schedule))
    assert ["in the last" in each.title for each in found] == [True] * inferred


def test_least_connections_balancing_leaves_no_tail(tmp_path, monkeypatch):
    timeline = unnamed(tmp_path, monkeypatch, "hetida-least-connections", "--schedule", "burst")
    (finding,) = lb_imbalance.detect(timeline)
    assert finding.title.startswith("The load may be unbalanced: executions waited, and nothing shows")
    assert drain_tail(timeline).level == pytest.approx(12, abs=2), "the workers that there are"


def test_idle_workers_show_no_imbalance(tmp_path, monkeypatch):
    timeline = unnamed(tmp_path, monkeypatch, "hetida-pattern-3", "--schedule", "spread", "--over", "3m")
    with pytest.raises(CannotJudgeError, match="no response names the replica"):
        lb_imbalance.detect(timeline)


def one_at_a_time():
    """Forty executions at once, of which one computes, for a second; no response names what computed it."""
    story = Story(intended=40, target="hetida")
    for seq in range(40):
        run = story.submit(seq, due=0.0, lag=0.0, service=seq + 1.0)
        story.pod(run, "anomaly", None, (QUEUED, 0.0, float(seq)), (COMPUTING, float(seq), seq + 1.0))
        story.run(run, 0.0, seq + 1.0)
    return story


def test_where_one_worker_did_everything_and_no_replica_shows_there_may_be_others(tmp_path):
    """A full runtime comes first: by default it has one replica."""
    full, uneven = diagnose(one_at_a_time().timeline(tmp_path)).findings[:2]
    assert (full.name, uneven.name) == ("runtime-saturated", "lb-imbalance")
    assert uneven.title.startswith("The load may be unbalanced")


def test_the_only_worker_of_the_only_replica_that_kubernetes_shows_is_not_favoured(tmp_path):
    story = one_at_a_time()
    story.sample(0.5, REPLICA_WORKERS, 1.0, pod="runtime-0")
    with pytest.raises(CannotJudgeError, match="no response names the replica"):
        lb_imbalance.detect(story.timeline(tmp_path))


@pytest.mark.parametrize(
    ("profile", "replicas", "inferred"),
    [("hetida-pattern-1", 3, True), ("hetida-pattern-2", 3, False), ("hetida-least-connections", 12, False)],
)
def test_uneven_workers_within_even_replicas_are_inferred_since_nothing_names_them(
    profile, replicas, inferred, tmp_path, monkeypatch
):
    timeline = simulated(tmp_path, monkeypatch, profile, "--schedule", "burst", "--seed", "1")
    assert executions(timeline).replicas == tuple(sorted(f"runtime-{k}" for k in range(replicas)))
    found = lb_imbalance.detect(timeline)
    assert ["nothing names the workers within them" in each.evidence[0].statement for each in found] == [
        True
    ] * inferred


def test_a_late_replica_is_no_imbalance_within_replicas(tmp_path, monkeypatch):
    timeline = simulated(tmp_path, monkeypatch, "hetida-pattern-2", "--schedule", "burst", "--fault", "slow-worker")
    assert lb_imbalance.detect(timeline) == []

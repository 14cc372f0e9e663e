"""Uneven load by timing alone: workers that must be idle while executions wait."""

from dataclasses import replace

import pytest

from harness.analysis.services.saturation import Saturation
from harness.analysis.services.service_replicas import ServiceReplicas
from harness.detectors.detector import CannotJudgeError
from harness.detectors.services.lb_imbalance import idle, in_one_replica, perhaps, unused, while_idle

# Executions wait for most of their time, which the first free of six workers would end, and one worker does it all.
_ONE_WORKS = Saturation(
    waiting=0.8, moving=0.1, computing=0.7, covered=1.0, workers=1, used=0.2, most=6, balanced=0.2, queued=0.5
)
_THREE = ServiceReplicas(("a", "b", "c"), (2, 2, 2))


@pytest.mark.parametrize(
    ("found", "shown", "unbalanced"),
    [
        (_ONE_WORKS, _THREE, True),
        (replace(_ONE_WORKS, workers=2), _THREE, True),
        (replace(_ONE_WORKS, workers=3), _THREE, False),  # more than a replica has
        (_ONE_WORKS, ServiceReplicas(("a",), (6,)), False),  # it is the only one
        (_ONE_WORKS, ServiceReplicas(("a", "b", "c")), False),  # how many workers there are is not known
        (replace(_ONE_WORKS, balanced=0.7), _THREE, False),  # they would wait anyway
        (replace(_ONE_WORKS, queued=0.1), _THREE, False),  # they hardly queued: their loads may be long
    ],
)
def test_no_more_work_at_once_than_one_of_several_replicas_can_do_is_uneven_load(found, shown, unbalanced):
    findings = in_one_replica(found, shown)
    assert bool(findings) is unbalanced
    if findings:
        assert findings[0].name == "lb-imbalance"
        assert "no more workers busy than one of 3 replicas has" in findings[0].title
        assert findings[0].severity == pytest.approx(0.6 / 2), "what even load would spare"
        computed, waited = findings[0].evidence
        assert computed.value == found.workers
        assert waited.value == 0.8


@pytest.mark.parametrize(
    ("found", "unbalanced"),
    [
        (replace(_ONE_WORKS, covered=0.4), True),
        (replace(_ONE_WORKS, covered=0.6), False),
        (replace(_ONE_WORKS, covered=0.6, enough=False), True),  # there never was work for all workers
        (replace(_ONE_WORKS, covered=0.4, waiting=0.1, balanced=0.0), False),
        (replace(_ONE_WORKS, covered=0.4, balanced=0.7), False),
        (replace(_ONE_WORKS, covered=0.4, queued=0.1), False),
    ],
)
def test_executions_that_waited_beside_idle_workers_show_uneven_load(found, unbalanced):
    assert bool(while_idle(found)) is unbalanced


def test_idle_workers_show_little_where_waits_are_only_inferred_from_long_loads():
    queued, inferred = idle(_ONE_WORKS, "here"), idle(replace(_ONE_WORKS, queued=0.1), "here")
    assert queued.confidence >= 0.85
    assert inferred.confidence < 0.5
    assert idle(replace(_ONE_WORKS, used=0.4), "here").confidence < queued.confidence, "chance may explain it"


@pytest.mark.parametrize(
    ("found", "unbalanced"),
    [
        (_ONE_WORKS, True),
        (replace(_ONE_WORKS, used=0.7), False),
        (replace(_ONE_WORKS, balanced=0.7), False),  # they would wait anyway
        (replace(_ONE_WORKS, queued=0.1), False),
    ],
)
def test_idle_workers_show_uneven_load_though_each_replica_got_its_share(found, unbalanced):
    findings = unused(found)
    assert bool(findings) is unbalanced
    if findings:
        assert "since each replica got about its share" in findings[0].evidence[0].statement
        assert findings[0].confidence >= 0.85


def test_waits_for_workers_that_nothing_names_leave_uneven_load_possible():
    found = perhaps(_ONE_WORKS, "nothing names them", one_replica=True)
    assert (found.name, found.severity) == ("lb-imbalance", pytest.approx(0.5 * 0.4))
    assert found.confidence < 0.5, "it does not make a full runtime less likely"
    assert [each.statement for each in found.evidence] == [
        "nothing names them", "executions spent 80% of their time waiting for a worker"
    ]  # fmt: skip


@pytest.mark.parametrize("changed", [{"waiting": 0.14, "balanced": 0.0}, {"queued": 0.1}, {"most": 1}])
def test_without_waits_or_with_a_single_worker_uneven_load_cannot_be_judged(changed):
    with pytest.raises(CannotJudgeError, match="nothing names them"):
        perhaps(replace(_ONE_WORKS, **changed), "nothing names them", one_replica=True)


def test_of_replicas_that_do_not_show_one_worker_is_less_likely_favoured_than_several():
    alone, several = (perhaps(replace(_ONE_WORKS, most=n), "unseen", one_replica=False) for n in (1, 2))
    assert alone.confidence < several.confidence

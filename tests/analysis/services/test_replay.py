"""Replayed services against simulations of the same executions with quick adapters, or with more replicas."""

from dataclasses import replace

import pytest

from harness.analysis.services import replay as replaying
from harness.analysis.services.contention import Contention
from harness.analysis.services.replay import replay
from harness.simulator.engine.distributions import fixed
from tests.support.injected.loads import executed
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.installations import Installation
from tests.support.injection.judging import SLOWED, gains

BURST = Case(runs=120, over_s=2.0, profile="hetida-least-connections", schedule="burst")


def installed(case, load_s, compute_s, **runtime):
    """An installation whose executions need the same work, on cores enough."""
    profile = profile_of(case)
    needs = tuple(
        replace(each, load=fixed(load_s), send=fixed(load_s), compute=fixed(compute_s))
        for each in profile.hetida.executions
    )
    settings = {"nodes": 8, "cores": 16.0, **runtime}
    hetida = replace(profile.hetida, executions=needs, runtime=replace(profile.hetida.runtime, **settings))
    return Installation(case, replace(profile, hetida=hetida), 1.0, 5)


def replayed(test):
    return replay(simulated(test.case, test.strength, test.seed, test.profile))


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize(
    ("load_s", "compute_s", "runtime"),
    [
        (0.4, 0.1, {"replicas": 3, "workers": 2}),
        (0.1, 0.4, {"replicas": 3, "workers": 2}),
        (0.2, 0.2, {"replicas": 6, "workers": 1}),
        (0.3, 0.3, {"replicas": 1, "workers": 4}),
    ],
)
def test_what_quick_adapters_and_more_replicas_save_is_what_simulations_with_them_save(
    load_s, compute_s, runtime, names
):
    test = installed(BURST, load_s, compute_s, **runtime, names_replicas=names)
    found, gain = replayed(test), gains(test)
    assert found.load_s == pytest.approx(load_s, rel=0.15)
    assert found.without_loads == pytest.approx(SLOWED * gain(["adapter-slow"]), abs=0.06)
    assert found.more_workers == pytest.approx(SLOWED * gain(["runtime-saturated"]), abs=0.06)


def test_long_sends_are_told_from_long_loads():
    """The loop is free while an execution sends: more workers would not help."""
    test = installed(BURST, 0.02, 0.02, replicas=6, workers=2)
    executions = tuple(replace(each, send=fixed(3.0)) for each in test.profile.hetida.executions)
    slow = replace(test, profile=replace(test.profile, hetida=replace(test.profile.hetida, executions=executions)))
    found = replayed(slow)
    assert found.load_s < 0.1
    assert found.without_loads == pytest.approx(SLOWED * gains(slow)(["adapter-slow"]), abs=0.06)
    assert found.more_workers < 0.1


def test_where_nobody_waits_more_workers_save_nothing():
    calm = replace(BURST, runs=30, over_s=60.0, schedule="spread")
    found = replayed(installed(calm, 0.1, 0.1, replicas=6, workers=2))
    assert found.more_workers < 0.02
    assert found.without_loads == pytest.approx(0.6, abs=0.1)


def test_workers_that_nothing_shows_can_not_be_replayed(tmp_path):
    assert replay(executed(60).timeline(tmp_path)) is None


@pytest.mark.parametrize(("fewest", "most"), [(121, 20_000), (10, 119)])
def test_too_few_or_too_many_executions_are_not_replayed(fewest, most, monkeypatch):
    test = installed(BURST, 0.2, 0.2, replicas=6, workers=1)
    monkeypatch.setattr(replaying, "_FEWEST", 120)
    monkeypatch.setattr(replaying, "_MOST", 120)
    assert replayed(test) is not None
    monkeypatch.setattr(replaying, "_FEWEST", fewest)
    monkeypatch.setattr(replaying, "_MOST", most)
    assert replayed(test) is None


def test_a_service_that_serves_otherwise_is_not_replayed(monkeypatch):
    """Here, the replay's own service would take twice as long."""
    monkeypatch.setattr(replaying, "durations", lambda work, workers, seed: work.came * 0 + 1e6)
    assert replayed(installed(BURST, 0.2, 0.2, replicas=6, workers=1)) is None


@pytest.mark.parametrize(("strength", "names"), [(1.0, True), (2.0, True), (2.0, False)])
def test_uneven_load_is_replayed_where_it_went(strength, names):
    """To one of four replicas go 7 of 10 executions, which are named; or all, as the number that compute at once says."""
    uneven = replace(BURST, faults=("lb-imbalance@0s",))
    test = installed(uneven, 0.2, 0.3, replicas=4, workers=2, names_replicas=names)
    found = replay(simulated(test.case, strength, test.seed, test.profile))
    assert found.load_s == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize(("p", "longer"), [(0.5, 0.0), (1e-9, 0.08)])
def test_more_replicas_bring_their_own_cores(p, longer, monkeypatch):
    """Executions that took twice as long because they shared cores take half as long then, unless that is chance."""
    test = installed(BURST, 0.05, 0.4, replicas=4, workers=2)
    plain = replayed(test)
    monkeypatch.setattr(replaying, "contention", lambda _: Contention(2.0, 0.5, p))
    assert replayed(test).more_workers == pytest.approx(plain.more_workers + longer, abs=0.02)

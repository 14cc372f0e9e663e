"""Fits what a test shows only by its effect: settings are changed until the simulation has the recorded means.

The durations of pods were measured on busy nodes and with a busy store, which are simulated as well: without a
correction they would count twice. Nothing shows the settings of the controller but how long runs waited for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from harness.model.phases import CONTROLLER, PUBLISHING, SUBMIT
from harness.planning.identify.recorded import RecordedTest
from harness.planning.identify.replay import replay
from harness.planning.identify.reproduction import NODES, Measures
from harness.planning.identify.setting import Setting
from harness.simulator.profile import Controller, Profile

FITTED = "fitted to the recorded waits"  # source of a setting
_ROUNDS = 5
_BISECTIONS = 10
_CLOSE_UPLOADS = 0.05
_UNHURRIED = 10.0  # streams at full speed at once: beyond that more bandwidth is of no use
_RELAXED = 0.6  # of a correction, after the first: less work frees cores, which shortens that of all others
_CLOSE = 0.02  # relative error of a mean that is not worth another round
_SLIGHT = 0.01  # of a run's time
_SHORTER, _NOTABLE = (0.3, 0.1), 0.05  # times the scheduler's usual back-off; of a run's time: else it explains nothing
_STEPS = (4.0, 2.0, 1.4, 1.2)  # factors by which the controller's settings are changed in search of a better fit
_MOST_PODS = 15_000  # simulated in a search

_KNOBS: dict[str, Callable[[Controller, float], Controller]] = {
    "requeue": lambda c, f: replace(c, requeue_s=c.requeue_s * f),
    "operation": lambda c, f: replace(c, operation_s=c.operation_s * f),
    "qps": lambda c, f: replace(c, qps=c.qps * f, burst=max(1, round(c.burst * f))),
    "settle": lambda c, f: replace(c, settle_s=c.settle_of_version_s * f),
}

Fit = tuple[Profile, Measures]


def fitted(first: Profile, test: RecordedTest, recorded: Measures) -> tuple[Profile, Measures, Sequence[Setting]]:
    """The profile whose simulation comes nearest to what was recorded, that simulation, and what was fitted."""
    profile, simulated = _with_means(first, test, recorded, replay(first, test))
    left = _MOST_PODS / max(recorded.pods * recorded.runs, 1)
    found = _with_controller(profile, test, recorded, simulated, left)
    if found is not None:
        profile, simulated = _with_means(found[0], test, recorded, found[1])
    profile, simulated = _with_backoff(profile, test, recorded, simulated)
    return profile, simulated, tuple(_settings(first, profile))


def error(recorded: Measures, simulated: Measures) -> float:
    """The sum of the errors of all phases, of mean and makespan, and of late reports, seconds."""
    phases = sum(abs(simulated.phases[name] - was) for name, was in recorded.phases.items())
    whole = abs(simulated.mean_s - recorded.mean_s) + abs(simulated.makespan_s - recorded.makespan_s)
    return phases + whole + abs(simulated.reported_s - recorded.reported_s)


def _settings(first: Profile, last: Profile) -> "list[Setting]":
    was, now = first.controller, last.controller
    found = [
        Setting(f"controller.{name}", f"{getattr(now, name):.3g}{unit}", FITTED)
        for name, unit in (("requeue_s", " s"), ("operation_s", " s"), ("qps", "/s"))
        if getattr(was, name) != getattr(now, name)
    ]
    if was.settle_of_version_s != now.settle_of_version_s:
        found.append(Setting("controller.settle_s", f"{now.settle_of_version_s:.3g} s", FITTED))
    if first.scheduler != last.scheduler:
        found.append(Setting("scheduler.backoff_max_s", f"{last.scheduler.backoff_max_s:.3g} s", FITTED))
    if first.store.bytes_per_s != last.store.bytes_per_s:
        found.append(
            Setting("store.bytes_per_s", f"{last.store.bytes_per_s:.3g} B/s", "fitted to the recorded uploads")
        )
    return found


def _with_backoff(profile: Profile, test: RecordedTest, recorded: Measures, simulated: Measures) -> Fit:
    """How long the scheduler leaves a pod alone that had no room: as usual, or shorter where that explains waits."""

    def off(simulated: Measures) -> float:
        return abs(simulated.phases[NODES] - recorded.phases[NODES])

    own, best, slight = profile.scheduler, (profile, simulated), _SLIGHT * recorded.mean_s
    for by in _SHORTER if own.backoff_max_s > _NOTABLE * recorded.mean_s and off(simulated) > slight else ():
        backoff = replace(own, backoff_s=by * own.backoff_s, backoff_max_s=by * own.backoff_max_s)
        tried = replace(profile, scheduler=backoff)
        found = tried, replay(tried, test)
        if off(best[1]) - off(found[1]) > slight:
            best = found
    return best


# --- means ------------------------------------------------------------------------------------------------------------


def _with_means(profile: Profile, test: RecordedTest, recorded: Measures, simulated: Measures) -> Fit:
    """Correct the means of uploads, work, submissions and reports, a few times: each moves the others."""
    rounds = min(_ROUNDS, max(1, int(_MOST_PODS / max(recorded.pods * recorded.runs, 1))))
    found = [(profile, simulated)]
    for turn in range(rounds):
        profile, simulated = _with_uploads(profile, test, recorded, simulated)
        found.append((profile, simulated))
        better = _corrected(profile, recorded, simulated, _RELAXED if turn else 1.0)
        if better is profile:
            break
        profile, simulated = better, replay(better, test)
    found.append((profile, simulated))
    return min(found, key=lambda each: error(recorded, each[1]))


def _corrected(profile: Profile, recorded: Measures, simulated: Measures, share: float) -> Profile:
    """Corrections of what is off; of pods' work, this share of it."""
    slight = _SLIGHT * recorded.mean_s
    better = profile
    for task, was in recorded.tasks.items():
        now = simulated.tasks.get(task)
        if now and abs(now - was) > max(_CLOSE * was, slight / 10):
            better = _with_work(better, task, now + share * (was - now), now)
    if abs(recorded.phases[SUBMIT] - simulated.phases[SUBMIT]) > slight and better.api.qps < 1e5:
        ratio = recorded.phases[SUBMIT] / max(simulated.phases[SUBMIT], 1e-9)
        better = replace(better, api=replace(better.api, qps=better.api.qps / min(max(ratio, 0.5), 2.0)))
    late = recorded.reported_s - simulated.reported_s
    if abs(late) > max(slight, _CLOSE * recorded.reported_s):
        lag_s = max(0.0, better.agent.lag_s + late)
        if lag_s != better.agent.lag_s:
            better = replace(better, agent=replace(better.agent, lag_s=lag_s))
    return better


def _with_uploads(profile: Profile, test: RecordedTest, recorded: Measures, simulated: Measures) -> Fit:
    """The store's bandwidth at which uploads take as long as recorded: bisected, as a busy one slows suddenly."""
    slow = fast = None
    factor = 4.0
    for _ in range(_BISECTIONS):
        ratio = _ratio(recorded, simulated, profile)
        if abs(ratio - 1) <= _CLOSE_UPLOADS:
            break
        now = profile.store.bytes_per_s
        if ratio > 1:
            fast = now
            tried = now / factor if slow is None else sqrt(slow * now)
        else:
            slow = now
            tried = now * factor if fast is None else sqrt(fast * now)
        profile = replace(profile, store=replace(profile.store, bytes_per_s=tried))
        simulated = replay(profile, test)
    return profile, simulated


def _ratio(recorded: Measures, simulated: Measures, profile: Profile) -> float:
    """Recorded by simulated uploads, over the tasks of both; 1 where another store would change nothing, or little."""
    both = [task for task in recorded.uploads if task in simulated.uploads]
    was, now = (sum(measures.uploads[task] for task in both) for measures in (recorded, simulated))
    quick = profile.store.bytes_per_s >= _UNHURRIED * profile.store.stream_bytes_per_s
    if not was or not now or (was < now and quick) or abs(was - now) < _SLIGHT * recorded.mean_s:
        return 1.0
    return was / now


def _with_work(profile: Profile, task: str, was: float, now: float) -> Profile:
    """The task's main container shorter or longer, so that its pods take as long as recorded: values stay positive."""
    measured = profile.measured.get(task)
    if measured is None:
        return profile
    mean = sum(measured.work) / len(measured.work)
    missing = was - now
    if missing > mean:  # reading inputs was thought to take nearly all of it: what is left of single pods means little
        work = tuple(value + missing for value in measured.work)
    else:
        factor = max(mean + missing, 0.05 * mean) / mean if mean else 1.0
        work = tuple(value * factor for value in measured.work)
    return replace(profile, measured={**profile.measured, task: replace(measured, work=work)})


# --- controller -------------------------------------------------------------------------------------------------------


def _with_controller(
    profile: Profile, test: RecordedTest, recorded: Measures, simulated: Measures, budget: float
) -> Fit | None:
    """The controller's settings that explain the waits for it best; none where they are explained already.

    One setting after the other is changed by smaller and smaller factors, as long as that helps.
    """
    best = profile, simulated
    error = _misfit(recorded, simulated)
    if error <= _CLOSE:
        return None
    for factor in _STEPS:
        improved = True
        while improved and budget > 0 and error > _CLOSE / 2:
            improved = False
            for turn in _KNOBS.values():
                for by in (factor, 1 / factor):
                    if budget <= 0:
                        break
                    tried = replace(best[0], controller=turn(best[0].controller, by))
                    outcome = replay(tried, test)
                    budget -= 1
                    off = _misfit(recorded, outcome)
                    if off < 0.97 * error:
                        best, error, improved = (tried, outcome), off, True
                        break
    return best if best[0] is not profile else None


def _misfit(recorded: Measures, simulated: Measures) -> float:
    """How far the waits for the controller are from the recorded ones, as a share of a run's time."""
    parts = [
        abs(recorded.before_s - simulated.before_s),
        abs((recorded.phases[CONTROLLER] - recorded.before_s) - (simulated.phases[CONTROLLER] - simulated.before_s)),
        abs(recorded.phases[PUBLISHING] - simulated.phases[PUBLISHING]),
    ]
    return float(np.sum(parts)) / recorded.mean_s

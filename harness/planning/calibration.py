"""Calibrates a simulated platform: sets the durations in its profile to those of a recorded test."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from harness.model.phases import PULLING, RUNNING, STARTING
from harness.simulator.engine.distributions import Amount, Fixed, Lognormal
from harness.simulator.profile import Profile, Step

if TYPE_CHECKING:
    from harness.analysis.timeline import Timeline

STEP = "step"  # prefix of the name of a calibrated step
_FEWEST = 5  # observations for a distribution
_WIDEST = 1000.0  # ratio of the 95th percentile to the median: beyond it, the tail dominates the mean
_DRIVER = "-driver"

_SCALED = re.compile(r"(\d+)->(\d+)")

Put = Callable[[Profile, Amount], Profile]


@dataclass(frozen=True, slots=True)
class Learned:
    """One calibrated duration: its name, the number of observations, and the fitted distribution."""

    what: str
    count: int
    amount: Amount

    def __str__(self) -> str:
        distribution = self.amount.distribution
        if isinstance(distribution, Lognormal):
            values = f"median {distribution.median:.3g} s, p95 {distribution.p95:.3g} s"
        else:
            values = f"{distribution.mean:.3g} s"
        return f"{self.what}: {values} (of {self.count:,})"


def calibrated(profile: Profile, timeline: "Timeline") -> tuple[Profile, list[Learned]]:
    """The profile with the durations of a recorded test, and what was calibrated.

    Calibrated are: each step's time in its main container (reading inputs included), the drivers' time, pod start,
    image pull, API latency, and node provisioning. Durations with too few observations keep the profile's value.
    """
    learned: list[Learned] = []
    for what, durations, put in _observed(timeline):
        if len(durations) >= _FEWEST:
            amount = fitted(durations)
            profile = put(profile, amount)
            learned.append(Learned(what, len(durations), amount))
    return profile, learned


def _observed(timeline: "Timeline") -> Iterator[tuple[str, Sequence[float], Put]]:
    """Per duration: its name, the observations in seconds, and how to put it into a profile."""
    ran, started = _durations(timeline, RUNNING), _durations(timeline, STARTING)
    for task in sorted(each for each in ran if not each.endswith(_DRIVER)):
        yield f"{STEP} {task}", ran[task], partial(_put_step, task)
    yield "driver", [s for task in ran if task.endswith(_DRIVER) for s in ran[task]], _put_driver
    yield "pod start", [s for each in started.values() for s in each], _put_start
    yield "image pull", _pulls(timeline, sum(map(len, ran.values()))), _put_pull
    yield "API latency", _latencies(timeline), _put_latency
    yield "node provisioning", _provisionings(timeline), _put_provisioning


def fitted(durations: Sequence[float]) -> Amount:
    """A lognormal through the median and the 95th percentile; a constant where the durations do not vary."""
    median, p95 = (float(each) for each in np.quantile(np.asarray(durations), (0.5, 0.95)))
    median = max(median, p95 / _WIDEST)
    return Amount(Lognormal(median, p95) if 0 < median < p95 else Fixed(max(0.0, median)))


# --- into the profile -------------------------------------------------------------------------------------------


def _put_step(task: str, profile: Profile, amount: Amount) -> Profile:
    """First, so that it takes precedence; outputs and usage are those of the step model that matched before."""
    model = next((each for each in profile.steps if fnmatchcase(task, each.match)), Step())
    return replace(profile, steps=(replace(model, match=task, duration=amount), *profile.steps))


def _put_driver(profile: Profile, amount: Amount) -> Profile:
    return replace(profile, controller=replace(profile.controller, driver=amount))


def _put_start(profile: Profile, amount: Amount) -> Profile:
    return replace(profile, kubelet=replace(profile.kubelet, start=amount))


def _put_pull(profile: Profile, amount: Amount) -> Profile:
    """The typical pull, as overhead; the image's size and the bandwidth add the rest when it is not on the node."""
    pull = amount.distribution
    usual_s = pull.median if isinstance(pull, Lognormal) else pull.mean
    return replace(profile, kubelet=replace(profile.kubelet, pull_overhead_s=usual_s))


def _put_latency(profile: Profile, amount: Amount) -> Profile:
    return replace(profile, api=replace(profile.api, latency=amount))


def _put_provisioning(profile: Profile, amount: Amount) -> Profile:
    scaler = profile.autoscaler
    return profile if scaler is None else replace(profile, autoscaler=replace(scaler, provisioning=amount))


# --- from the recorded test ------------------------------------------------------------------------------------------


def _durations(timeline: "Timeline", phase: str) -> dict[str, list[float]]:
    """Seconds that pods spent in a phase, by task; several stretches of one pod are added up.

    Of tasks with enough pods whose logs were read only these count: in the others storing is part of running.
    """
    from harness.analysis.waits.storing import logged_pods

    stretches = timeline.stretches(phase)
    logged = stretches["pod"].isin(logged_pods(timeline))
    known = stretches[logged].groupby("task", observed=True)["pod"].nunique()
    enough = known.index[known >= _FEWEST]
    stretches = stretches[logged | ~stretches["task"].isin(enough)]
    ended = stretches[stretches["end_s"].notna()]
    lengths = (ended["end_s"] - ended["start_s"]).groupby([ended["task"].astype(str), ended["pod"]]).sum()
    found: dict[str, list[float]] = {}
    tasks = lengths.index.get_level_values(0).tolist()
    for task, length in zip(tasks, lengths.tolist(), strict=True):
        if task:
            found.setdefault(task, []).append(length)
    return found


def _pulls(timeline: "Timeline", ran: int) -> list[float]:
    """Seconds that each of `ran` pods waited for its image: 0 where the image was on the node."""
    pulled = [s for each in _durations(timeline, PULLING).values() for s in each]
    return [0.0] * (ran - len(pulled)) + pulled


def _latencies(timeline: "Timeline") -> list[float]:
    """The faster half of the answers: the others may have waited for the rate limiter, which is simulated itself."""
    runs = timeline.runs
    answered = (runs["answered_s"] - runs["sent_s"]).dropna().sort_values().tolist()
    return [float(each) for each in answered[: (len(answered) + 1) // 2]]


def _provisionings(timeline: "Timeline") -> list[float]:
    """Seconds from the autoscaler's request until ready, for nodes added during the test.

    A scale-up event gives the number of requested nodes (``[{pool 2->5 (max: 12)}]``); requests are matched with the
    nodes that registered, in order.
    """
    events = timeline.events[timeline.events["reason"] == "TriggeredScaleUp"]
    requested: list[float] = []
    for at, message in sorted(set(zip(events["at_s"].tolist(), events["message"].tolist(), strict=True))):
        requested += [at] * sum(int(after) - int(before) for before, after in _SCALED.findall(message))
    nodes = timeline.machines[timeline.machines["ready_s"].notna()].sort_values("created_s")
    added = [(c, r) for c, r in zip(nodes["created_s"].tolist(), nodes["ready_s"].tolist(), strict=True) if c > 0]
    return [float(ready - at) for at, (created, ready) in zip(requested, added, strict=False) if created >= at]

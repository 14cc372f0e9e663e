"""The simulated platform, identified from a recorded test, as a model of capacity.

How well it reproduces that test widens the interval of its answers.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, exp, log

import numpy as np

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Question
from harness.planning import simulated_burst
from harness.planning.identify.reproduction import NOISE
from harness.planning.search import largest_passing
from harness.planning.sweeps import DaskWorkers, Sweep, Workers
from harness.simulator.profile import Profile

_SEEDS = 11
_PROBES = 8  # sizes that a search simulates, about
_MOST_NODES, _MOST_RUNS = 400, 5_000


@dataclass(frozen=True, slots=True)
class CalibratedSimulator:
    """An identified platform.

    Attributes:
        profile: its settings.
        pipeline: what its runs execute.
        within: the error with which it reproduces the recorded test, as a share.
        workers: what simulates.
        simulated: what `durations` has found so far, by runs and nodes: answers of a grid ask for the same sizes.
    """

    profile: Profile
    pipeline: bytes
    within: float
    workers: Workers | DaskWorkers
    simulated: dict[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict, compare=False)

    def ask(self, question: Question) -> tuple[float | None, float | None, float | None]:
        """The answer with its 90 % interval: low, value, high, in the asked quantity's unit."""
        expected, before = 1 if question.asked == WITHIN else _PROBES, len(self.simulated)
        self.workers.progress.expect(_SEEDS * expected)
        answer = self._answer(question)
        self.workers.progress.expect(_SEEDS * (len(self.simulated) - before - expected))
        return answer

    def _answer(self, question: Question) -> tuple[float | None, float | None, float | None]:
        def in_time(level: int, runs: int, nodes: int) -> bool:
            return self.durations(runs, nodes)[level] <= (question.within_s or 0.0)

        if question.asked == NODES:
            assert question.runs is not None
            runs = round(question.runs)
            candidates = range(_MOST_NODES, 0, -1)
            # The time on one node divided by the time limit is a first guess at the number of nodes.
            share = self.durations(runs, 1)[1] / max(question.within_s or 0.0, 1e-9)
            guess = _MOST_NODES - min(ceil(share), _MOST_NODES)
            fewest = [largest_passing(candidates, partial(in_time, level, runs), guess=guess) for level in range(3)]
            return fewest[0], fewest[1], fewest[2]
        assert question.nodes is not None
        nodes = round(question.nodes)
        if question.asked == RUNS:
            passes = [partial(in_time, level, nodes=nodes) for level in (2, 1, 0)]
            most = [largest_passing(range(1, _MOST_RUNS), each, guess=99) or 0 for each in passes]
            return most[0], most[1], most[2]
        assert question.runs is not None
        return self.durations(round(question.runs), nodes)

    def durations(self, runs: int, nodes: int) -> tuple[float, float, float]:
        """The 5 %, 50 % and 95 % quantiles of the next test's duration, in seconds; simulated once."""
        known = self.simulated.get((runs, nodes))
        if known is None:
            known = self.simulated[runs, nodes] = self._simulate(runs, nodes)
        return known

    def _simulate(self, runs: int, nodes: int) -> tuple[float, float, float]:
        profile = simulated_burst.with_nodes(replace(self.profile, resampled=True), nodes, self.pipeline)
        sweep = Sweep(partial(_duration_s, profile, self.pipeline, runs), self.workers)
        logs = np.log(sweep.map(range(_SEEDS)))
        spread = float(np.sqrt(logs.var(ddof=1) + NOISE**2 + log(1 + self.within) ** 2))
        centre = float(np.median(logs))
        low, middle, high = (exp(centre + spread * z) for z in (-1.645, 0.0, 1.645))
        return low, middle, high


def _duration_s(profile: Profile, pipeline: bytes, runs: int, seed: int) -> float:
    return simulated_burst.burst(profile, pipeline, runs, seed).duration_s

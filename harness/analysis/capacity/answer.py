"""The three questions: how many nodes for N runs in T, how long for N runs on M nodes, how many runs in T on M nodes.

Each answer comes from the distribution of the next test's duration: its value from the median, its 90 % interval from
the 5 % and 95 % quantiles. So the upper end of "how many nodes" suffices with a probability of 95 %, and the lower end
of "how many runs" is done in time with a probability of 95 %.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.fit import Check
from harness.analysis.capacity.model import TERMS, CapacityModel, Observation
from harness.analysis.capacity.next_test import NextTest
from harness.analysis.timeline import Floats
from harness.model.units import counted, format_count, format_duration

RUNS, NODES, WITHIN = "runs", "nodes", "within_s"
QUANTITIES = (RUNS, NODES, WITHIN)
_LEVELS = (0.05, 0.5, 0.95)
_MOST_NODES = 20_000
_MOST_RUNS = 10**9
_EXTRAPOLATED = 2.0
_TIMES_THE_RUNS = 10  # times the runs: room for more is not worth mentioning
_EPSILON = 1e-9  # for rounding, where a duration equals the time exactly


@dataclass(frozen=True, slots=True)
class Question:
    """Two of the three are given; the one that is none is asked for."""

    runs: float | None = None
    nodes: float | None = None
    within_s: float | None = None

    @property
    def asked(self) -> str:
        """The one of QUANTITIES that is asked for."""
        missing = [name for name in QUANTITIES if getattr(self, name) is None]
        if len(missing) != 1:
            raise ValueError("give exactly two of runs, nodes and time")
        return missing[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """All three quantities, the asked one filled in; none where no value suffices.

    Attributes:
        asked: the one of QUANTITIES that was asked for.
        value: the answer in its unit: runs, nodes, or seconds.
        low: lower end of the 90 % interval.
        high: upper end; none when the data do not bound it.
        binding: the term that takes most of the time at this size, one of TERMS, or the part of a cap that binds.
        warnings: the limits of the answer, as text.
        unit: what `nodes` counts.
    """

    runs: float | None
    nodes: float | None
    within_s: float | None
    asked: str
    value: float | None
    low: float | None
    high: float | None
    binding: str
    warnings: tuple[str, ...]
    unit: str = "node"


Interval = tuple[float | None, float | None, float | None]  # low, value, high
Ask = Callable[[Question], Interval]


def answer(model: CapacityModel, question: Question, ask: Ask | None = None) -> Answer:
    """Answer one question by the model, or by `ask` where that is given, such as a simulation.

    Raises:
        ValueError: not exactly two of the three quantities are given, or one of them is not above 0.
    """
    asked = question.asked
    if any(value is not None and value <= 0 for value in (question.runs, question.nodes, question.within_s)):
        raise ValueError("runs, nodes and time must be above 0")
    low, value, high = ask(question) if ask else _ASK[asked](model, question)
    known = {name: getattr(question, name) for name in QUANTITIES} | {asked: value}
    return Answer(
        known[RUNS],
        known[NODES],
        known[WITHIN],
        asked,
        value,
        low,
        high,
        _binding(model, question, known, modelled=ask is None),
        (*_warnings(model, known, low, high), *(_caps(model, known) if ask is None else ())),
        model.fitted_on.unit,
    )


def _binding(model: CapacityModel, question: Question, known: dict[str, float | None], *, modelled: bool) -> str:
    runs, nodes = known[RUNS], known[NODES]
    if modelled and (cap := model.binding_cap(runs or 1.0, nodes or _MOST_NODES)):
        return cap.part
    if not (runs and nodes):
        return _unreachable(model, question)
    shares = model.shares(runs, nodes)
    return max(TERMS, key=lambda name: shares[name])


def _caps(model: CapacityModel, known: dict[str, float | None]) -> list[str]:
    """From which number of runs on which cap decides, which nodes are not available, and for how many runs is room."""
    nodes = known[NODES]
    found = [
        f"{counted(nodes, model.fitted_on.unit)} aren't available: {cap.name} ({cap.how})"
        for cap in model.caps
        if nodes and nodes > cap.nodes
    ]
    found += [
        f"above {counted(cap.runs, 'run')} {cap.name} is full unless something is removed: {cap.how}"
        for cap in model.caps
        if cap.runs < _TIMES_THE_RUNS * (known[RUNS] or np.inf)
    ]
    at = nodes or float(_MOST_NODES)
    low, high = 0, 1
    while high < _MOST_RUNS and model.binding_cap(float(high), at) is None:
        low, high = high, 2 * high
    cap = model.binding_cap(float(high), at)
    if cap is None:
        return found
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if model.binding_cap(float(middle), at) is None else (low, middle)
    where = f" on {counted(nodes, model.fitted_on.unit)}" if nodes else ", on any number of nodes,"
    return [*found, f"above {counted(float(low), 'run')}{where} {cap.name} binds: {cap.how}"]


def _within(model: CapacityModel, question: Question) -> tuple[float, float, float]:
    assert question.runs is not None
    assert question.nodes is not None
    low, value, high = model.durations(question.runs, question.nodes, _LEVELS)[:, 0].tolist()
    return low, value, high


def _runs(model: CapacityModel, question: Question) -> tuple[float, float, float]:
    """Durations never fall with the number of runs: bisect."""
    assert question.nodes is not None
    assert question.within_s is not None
    nodes, limit = question.nodes, question.within_s * (1 + _EPSILON)

    def most(level: float) -> float:
        def fits(runs: int) -> bool:
            return bool(model.durations(float(runs), nodes, (level,))[0, 0] <= limit)

        low, high = 0, 1
        while high < _MOST_RUNS and fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return float(low)

    return most(0.95), most(0.5), most(0.05)


def _nodes(model: CapacityModel, question: Question) -> tuple[float | None, float | None, float | None]:
    """Durations may rise again beyond an optimum: try all numbers of nodes, large ones coarsely first, then exactly."""
    assert question.runs is not None
    assert question.within_s is not None
    runs, limit = question.runs, question.within_s * (1 + _EPSILON)
    first: list[float | None] = [None, None, None]
    start = 1.0
    while start <= _MOST_NODES and None in first:
        block = np.arange(start, 2 * start)
        if block.size > 64:
            block = np.unique(np.round(np.geomspace(start, 2 * start - 1, 64)))
        short = model.durations(runs, block, _LEVELS) <= limit
        for k in range(3):
            if first[k] is None and short[k].any():
                first[k] = _closely(model, runs, limit, block, int(np.argmax(short[k])), k)
        start *= 2
    return first[0], first[1], first[2]


def _closely(model: CapacityModel, runs: float, limit: float, block: Floats, at: int, k: int) -> float:
    """The smallest sufficient number of nodes between two tried ones."""
    if at == 0:
        return float(block[0])
    between = np.arange(block[at - 1] + 1, block[at] + 1)
    return float(between[int(np.argmax(model.durations(runs, between, (_LEVELS[k],))[0] <= limit))])


_ASK: dict[str, Callable[[CapacityModel, Question], Interval]] = {RUNS: _runs, NODES: _nodes, WITHIN: _within}


def _unreachable(model: CapacityModel, question: Question) -> str:
    """What prevents an answer: the largest term that more nodes do not shorten."""
    shares = model.shares(question.runs or model.fitted_on.runs[0], question.nodes or 10 * model.fitted_on.nodes[1])
    return max((name for name in TERMS if name != "nodes"), key=lambda name: shares[name])


def _warnings(
    model: CapacityModel, known: dict[str, float | None], low: float | None, high: float | None
) -> tuple[str, ...]:
    seen = model.fitted_on
    found = []
    for name, value, (least, most) in (("run", known[RUNS], seen.runs), (seen.unit, known[NODES], seen.nodes)):
        if value and value > _EXTRAPOLATED * most:
            times = f"{value / most:,.0f}" if value > 10 * most else f"{value / most:.1f}"
            found.append(
                f"extrapolated: {counted(value, name)}, {times} times the observed maximum ({format_count(most)})"
            )
        elif value and value * _EXTRAPOLATED < least:
            found.append(
                f"extrapolated: {counted(value, name)}, less than half the observed minimum ({format_count(least)})"
            )
    if known[NODES] is None:
        found.append("no number of nodes suffices: the time that more nodes do not shorten is already too long")
    elif high is None or low is None:
        found.append("the interval has no upper end: possibly no number of nodes suffices")
    if known[RUNS] == 0:
        found.append("not even one run ends in this time")
    if seen.observations < 4:
        found.append(
            f"fitted on {counted(seen.observations, 'observation')}: the interval assumes the usual variation between "
            "tests (10%); test more sizes, and repeat a size, to narrow it"
        )
    if seen.one_load and known[RUNS] and known[RUNS] != seen.runs[0]:
        found.append(
            f"all observations have {counted(seen.runs[0], 'run')}: whether more runs take longer at what all "
            f"{seen.unit}s share is unknown, and the interval holds both; --next names the test that tells"
        )
    if seen.nodes[0] == seen.nodes[1] and known[NODES] != seen.nodes[0]:
        found.append(f"all observations are on {counted(seen.nodes[0], seen.unit)}: the effect of more is a guess")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with its answer.

    Attributes:
        model: fitted on the observations.
        name: of what answered: the likeliest law, or the simulator.
        first: the answer to the question itself.
        grid: the answers around it; empty when none were asked for.
        observations: the tests that the model was fitted on.
        lacks: the resource that nodes lacked most often; "" when unknown.
        warnings: doubts in addition to those of the answers.
        price: of one node, per hour; none when unknown.
        check: leave-one-out check of the model; none with a single size, or for a simulator.
        ask: what answers instead of the model; none is the model itself.
        next_test: the test to run next; none when it was not asked for.
        workers_each: worker processes of each replica; 0 where they are not known, or nodes are counted.
    """

    model: CapacityModel
    name: str
    first: Answer
    grid: tuple[Answer, ...]
    observations: tuple[Observation, ...]
    lacks: str
    warnings: tuple[str, ...]
    price: float | None
    check: Check | None
    ask: Ask | None = None
    next_test: NextTest | None = None
    workers_each: int = 0

    def workers(self, found: Answer) -> int | None:
        """Worker processes of the answer's replicas; none where they are not known."""
        return round(found.nodes) * self.workers_each if found.nodes and self.workers_each else None

    def cost(self, found: Answer) -> float | None:
        """Nodes × hours × price; none when one of them is unknown, or replicas are counted: nodes have a price."""
        if self.price is None or found.nodes is None or found.within_s is None or found.unit != "node":
            return None
        return found.nodes * found.within_s / 3600 * self.price

    def binding(self, found: Answer) -> str:
        """What takes most of the time, with the resource that nodes lack: ``nodes (cpu)``."""
        if found.binding != "nodes":
            return found.binding
        return f"{found.unit}s ({self.lacks})" if self.lacks else f"{found.unit}s"


def sentence(found: Answer) -> str:
    """Question and answer: ``400 runs in 15 min: 12 nodes.``."""
    runs, nodes = counted(found.runs or 0, "run"), counted(found.nodes or 0, found.unit)
    took = format_duration(found.within_s or 0)
    if found.value is None:
        return f"{runs} in {took}: no number of {found.unit}s is enough."
    match found.asked:
        case "nodes":
            return f"{runs} in {took}: {nodes}."
        case "runs":
            return f"{nodes} for {took}: {runs}."
        case _:
            return f"{runs} on {nodes}: {took}."


def proposal(test: NextTest, unit: str) -> str:
    """The test to run next, also as the lines of an experiment."""
    size = f"{counted(test.runs, 'run')} on {counted(test.nodes, unit)}"
    return (
        f"{size}, about {format_duration(test.takes_s)}: the answer would be known to {test.then:.0%} instead of "
        f"{test.now:.0%} (one standard deviation); as an experiment: loads: [{test.runs}], nodes: [{test.nodes}]"
    )


def amount(quantity: str, value: float | None) -> str:
    """A quantity for people; "" for none."""
    if value is None:
        return ""
    return format_duration(value) if quantity == WITHIN else f"{value:,.0f}"


def interval(found: Answer) -> str:
    """The answer's interval for people; "" where no value is enough."""
    low, high = (amount(found.asked, end) for end in (found.low, found.high))
    if not high:
        return f"{low} or more" if low else ""
    return low if low == high else f"{low} to {high}"

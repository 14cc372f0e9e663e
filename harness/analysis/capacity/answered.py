"""A capacity question with its answer, the grid around it, and what the answer rests on."""

from dataclasses import dataclass

from harness.analysis.capacity.answer import WITHIN, Answer, Ask
from harness.analysis.capacity.check import Check
from harness.analysis.capacity.model import CapacityModel, Observation
from harness.analysis.capacity.next_test import NextTest
from harness.model.units import counted, format_duration


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

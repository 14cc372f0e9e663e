"""Goodput of spot and on-demand nodes: useful work per node-hour and per unit of money."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.cost import node_hours
from harness.analysis.timeline import Timeline, floats, looked_up, summed
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import RUNNING, SERVING, SUCCEEDED


@dataclass(frozen=True, slots=True)
class Goodput:
    """Goodput of the spot or of the on-demand nodes that can run the runs' pods.

    Attributes:
        spot: spot nodes, else on-demand ones.
        nodes: their number.
        node_hours: from their creation to their end, within the test.
        cost: node-hours times price; none when a price is unknown.
        lost: pods that failed there, were evicted, or were lost with their node.
        lost_s: seconds that those had run.
        worked_s: seconds that all pods ran there.
        runs: succeeded runs, each counted by the share of its useful seconds that ran here.
    """

    spot: bool
    nodes: int
    node_hours: float
    cost: float | None
    lost: int
    lost_s: float
    worked_s: float
    runs: float

    @property
    def per_node_hour(self) -> float | None:
        """Succeeded runs per node-hour."""
        return self.runs / self.node_hours if self.node_hours else None

    @property
    def per_money(self) -> float | None:
        """Succeeded runs per unit of money."""
        return self.runs / self.cost if self.cost else None


def goodput(timeline: Timeline) -> tuple[Goodput, ...]:
    """Spot nodes first; a kind without nodes is left out."""
    nodes, pods = timeline.run_nodes, timeline.pods
    is_spot, hours, price = nodes["spot"].to_numpy(dtype=bool), node_hours(timeline), floats(nodes, "price")
    working = timeline.of_runs(RUNNING, SERVING) & ~timeline.drives_elsewhere
    pod, run = (pods[name].to_numpy()[working] for name in ("pod", "row"))
    length = timeline.seconds_of(working)
    lost = np.isin(pod, np.concatenate(lost_pods(timeline)))
    good = ~lost & looked_up((timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool), run)
    whole = summed(run, length, good, len(timeline.runs))
    homes = pods["node"].cat
    code = homes.codes.to_numpy()[working]
    found = []
    for spot in (True, False):
        kind = is_spot == spot
        if not kind.any():
            continue
        here = looked_up(np.asarray(homes.categories.isin(nodes["name"][kind])), code)
        useful = summed(run, length, here & good, len(timeline.runs))
        cost = float((hours * price)[kind].sum())
        found.append(
            Goodput(
                spot, int(kind.sum()), float(hours[kind].sum()), cost if np.isfinite(cost) else None,
                int(np.unique(pod[here & lost]).size), float(length.sum(where=here & lost)),
                float(length.sum(where=here)),
                float(np.divide(useful, whole, out=np.zeros(whole.size), where=whole > 0).sum()),
            )
        )  # fmt: skip
    return tuple(found)

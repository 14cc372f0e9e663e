"""Failures that happened on one node, in one pool or to one tenant, by an exact test against where all runs were."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures

MIN_SHARE = 0.8  # of the failures in one place, and at most of all runs there: less is no place to look at first
MAX_CHANCE = 0.001  # that runs which fail anywhere fail so unevenly
MIN_FAILED = 3


@dataclass(frozen=True, slots=True)
class Concentration:
    """`there` of `failed` failures were in the place `name` of this `kind`, as were `runs` of `all_runs` runs."""

    kind: str
    name: str
    there: int
    failed: int
    runs: int
    all_runs: int
    chance: float

    @property
    def sentence(self) -> str:
        """As an evidence says it."""
        part = "all" if self.there == self.failed else f"{self.there:,} of"
        return (
            f"{part} {self.failed:,} failures are of the {self.kind} {self.name}, where {self.runs:,} of "
            f"{self.all_runs:,} runs were"
        )


def concentration(timeline: Timeline, failed: Collection[int]) -> Concentration | None:
    """Where these runs (rows of `Timeline.runs`) failed; none if that may be chance, or is where all runs were.

    The test is hypergeometric: of all runs that ended, each with the places that its pods were in, as many as failed
    are drawn at random (Fisher's exact test, one-sided; Bonferroni's correction for the number of places).
    """
    over = np.flatnonzero(timeline.is_over)
    rows = np.array(sorted(set(failed)), dtype=np.int64)
    if rows.size < MIN_FAILED or over.size <= rows.size:
        return None
    concentrations = [
        each
        for kind, places in _places(timeline)
        if (each := _tested(kind, places[places["row"].isin(over)], rows)) is not None
    ]
    return min(concentrations, key=lambda each: each.chance, default=None)


def _places(timeline: Timeline) -> list[tuple[str, pd.DataFrame]]:
    """By kind of place: the rows of runs and where they were; of a failed run only where its failed pod was."""
    pods = timeline.pods
    own = pods[(pods["row"].to_numpy() >= 0) & (pods["node"].astype(str) != "").to_numpy(dtype=bool)]
    nodes = pd.DataFrame({"row": own["row"].to_numpy(), "place": own["node"].astype(str).to_numpy()}).drop_duplicates()
    known = {failure.row: failure.nodes for failure in failures(timeline) if failure.nodes}
    exact = pd.DataFrame([(row, node) for row, names in known.items() for node in names], columns=["row", "place"])
    nodes = pd.concat([nodes[~nodes["row"].isin(list(known))], exact], ignore_index=True)
    pool_of = dict(zip(timeline.nodes["name"], timeline.nodes["pool"], strict=True))
    pools = nodes.assign(place=nodes["place"].map(pool_of)).dropna().drop_duplicates()
    tenants = pd.DataFrame({"row": np.arange(len(timeline.runs)), "place": timeline.runs["tenant"].astype(str)})
    return [("node", nodes), ("pool", pools), ("tenant", tenants[tenants["place"] != ""])]


def _tested(
    kind: str, places: pd.DataFrame, failed: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> Concentration | None:
    if places["place"].nunique() < 2:
        return None
    bad = places[places["row"].isin(failed)]
    if not len(bad):
        return None
    name, there = str(bad["place"].mode().iat[0]), int((bad["place"] == bad["place"].mode().iat[0]).sum())
    runs = int((places["place"] == name).sum())
    if there < MIN_SHARE * len(bad) or runs > MIN_SHARE * len(places):
        return None
    from scipy.stats import hypergeom  # takes a second, which few tests need

    chance = float(hypergeom.sf(there - 1, len(places), runs, len(bad))) * places["place"].nunique()
    return Concentration(kind, name, there, len(bad), runs, len(places), chance) if chance <= MAX_CHANCE else None

"""What the platform's database could carry, by the operational laws, from what its exporter tells.

By Little's law a query takes (threads at work) / (queries per second). While the database has room that stays, however
many ask; at its limit more threads at work mean longer queries, not more of them (Denning and Buzen 1978). The rate
that was reached then is the most it can do of these queries. Connections are places: there are so many, and not more.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.phases import MYSQL_CONNECTIONS, MYSQL_MOST_CONNECTIONS, MYSQL_QUERIES, MYSQL_THREADS

_OWN = 1.0  # the exporter's question is one of the threads at work
_BLOCKS = 12
_LEAST = 4  # measurements a block
_CROWD = 5.0  # threads at work
_COUNTED = 10.0  # threads, over all measurements of a quieter time: with fewer, chance says how long a query takes
_BUSIER = 1.3
_SLOWER = 2.0
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Work:
    """The database when many asked it, beside when few did.

    Attributes:
        most: queries per second while most threads were at work.
        mean: queries per second over the whole of the measurements, which took `length_s`.
        threads: at work on average when there were most.
        alone_s: a query, while few were at work.
        crowded_s: a query, while most were.
        length_s: from the first measurement to the last.
    """

    most: float
    mean: float
    threads: float
    alone_s: float
    crowded_s: float
    length_s: float

    @property
    def at_limit(self) -> bool:
        """More threads at work made queries longer."""
        return self.crowded_s >= _SLOWER * self.alone_s


def database_work(timeline: Timeline) -> Work | str:
    """Fold the measurements; or why they don't tell whether the database was at its limit."""
    running, asked = timeline.metric(MYSQL_THREADS), timeline.metric(MYSQL_QUERIES)
    if not len(running) or not len(asked):
        return "its threads and queries were not recorded: that needs a mysqld_exporter that is scraped"
    if min(len(running), len(asked)) < _BLOCKS * _LEAST:
        return f"its threads and queries were measured fewer than {_BLOCKS * _LEAST} times"
    edges = np.linspace(float(floats(asked, "at_s").min()), float(floats(asked, "at_s").max()) + 1e-6, _BLOCKS + 1)
    threads = _means(edges, floats(running, "at_s"), np.maximum(floats(running, "value") - _OWN, 0.0))
    queries = _means(edges, floats(asked, "at_s"), floats(asked, "value"))
    known = np.isfinite(threads) & np.isfinite(queries)
    threads, queries = threads[known], queries[known]
    crowd = threads >= np.quantile(threads, 0.75)
    most = float(queries[crowd].mean())
    quiet = (threads <= threads[crowd].mean() / 2) & (queries <= most / _BUSIER)
    counted = float(threads[quiet].sum()) * len(running) / _BLOCKS
    if threads[crowd].mean() < _CROWD or counted < _COUNTED or not queries[quiet].any():
        return "its load was never small for a while and large for another, so that a limit would not show"
    alone, crowded = (float(threads[of].sum() / queries[of].sum()) for of in (quiet, crowd))
    return Work(most, float(queries.mean()), float(threads[crowd].mean()), alone, crowded, float(np.ptp(edges)))


def connection_seconds(timeline: Timeline) -> tuple[float, float] | None:
    """How many connections the database takes, and the seconds of them that were used; none where it had some left."""
    most, used = timeline.metric(MYSQL_MOST_CONNECTIONS), timeline.metric(MYSQL_CONNECTIONS)
    if not len(most) or len(used) < 2:
        return None
    limit, at, held = float(most["value"].max()), floats(used, "at_s"), floats(used, "value")
    if limit <= 0 or float(np.quantile(held, 0.95)) < _NEARLY_ALL * limit:
        return None
    return limit, float(np.trapezoid(held, at))


def _means(edges: Floats, at: Floats, values: Floats) -> Floats:
    """Of the values in each stretch; NaN where there is none."""
    place = np.searchsorted(edges, at, side="right") - 1
    inside = (place >= 0) & (place < edges.size - 1)
    counts = np.bincount(place[inside], minlength=edges.size - 1)
    sums = np.bincount(place[inside], values[inside], edges.size - 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

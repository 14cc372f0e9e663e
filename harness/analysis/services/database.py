"""The capacity of the platform's database, by the operational laws, from its exporter's metrics.

By Little's law a query takes (busy threads) / (queries per second). Below saturation that is constant; at saturation
more busy threads mean longer queries, not more of them (Denning and Buzen 1978). The rate reached then is the capacity
for these queries. Connections are a fixed number of slots.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.phases import MYSQL_CONNECTIONS, MYSQL_ERRORS, MYSQL_MOST_CONNECTIONS, MYSQL_QUERIES, MYSQL_THREADS

_OWN_THREADS = 1.0  # the exporter's own query is one of the busy threads
_BLOCKS = 12
_MIN_PER_BLOCK = 4  # measurements per block
_MIN_BUSY_THREADS = 5.0  # busy threads
_MIN_THREADS_COUNTED = 10.0  # busy threads, summed over a quiet time's measurements: with fewer, query times are chance
_MIN_BUSIER = 1.3
_MIN_SLOWER = 2.0
_MIN_SHARE_CONNECTED = 0.9
_NONE_FREE = "max_connections"  # the error that mysqld_exporter counts


@dataclass(frozen=True, slots=True)
class Work:
    """The database under high and under low load.

    Attributes:
        most: queries per second while most threads were busy.
        mean: queries per second over all measurements, which span `length_s`.
        threads: mean number of busy threads under high load.
        alone_s: seconds per query under low load.
        crowded_s: seconds per query under high load.
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
        """Queries took longer with more busy threads."""
        return self.crowded_s >= _MIN_SLOWER * self.alone_s


def database_work(timeline: Timeline) -> Work | str:
    """The database's load; or, as text, why the measurements don't show whether it was saturated."""
    running, asked = timeline.metric(MYSQL_THREADS), timeline.metric(MYSQL_QUERIES)
    if not len(running) or not len(asked):
        return "threads and queries were not recorded: that needs a mysqld_exporter"
    if min(len(running), len(asked)) < _BLOCKS * _MIN_PER_BLOCK:
        return f"threads and queries were measured fewer than {_BLOCKS * _MIN_PER_BLOCK} times"
    edges = np.linspace(float(floats(asked, "at_s").min()), float(floats(asked, "at_s").max()) + 1e-6, _BLOCKS + 1)
    threads = _means(edges, floats(running, "at_s"), np.maximum(floats(running, "value") - _OWN_THREADS, 0.0))
    queries = _means(edges, floats(asked, "at_s"), floats(asked, "value"))
    known = np.isfinite(threads) & np.isfinite(queries)
    threads, queries = threads[known], queries[known]
    crowd = threads >= np.quantile(threads, 0.75)
    most = float(queries[crowd].mean())
    quiet = (threads <= threads[crowd].mean() / 2) & (queries <= most / _MIN_BUSIER)
    counted = float(threads[quiet].sum()) * len(running) / _BLOCKS
    if threads[crowd].mean() < _MIN_BUSY_THREADS or counted < _MIN_THREADS_COUNTED or not queries[quiet].any():
        return "its load did not vary enough to show a limit"
    alone, crowded = (float(threads[of].sum() / queries[of].sum()) for of in (quiet, crowd))
    return Work(most, float(queries.mean()), float(threads[crowd].mean()), alone, crowded, float(np.ptp(edges)))


def connection_seconds(timeline: Timeline) -> tuple[float, float] | None:
    """The maximum number of connections, and the connection-seconds used; none where the maximum was not reached."""
    most, used = timeline.metric(MYSQL_MOST_CONNECTIONS), timeline.metric(MYSQL_CONNECTIONS)
    if not len(most) or len(used) < 2:
        return None
    limit, at, held = float(most["value"].max()), floats(used, "at_s"), floats(used, "value")
    if limit <= 0 or float(np.quantile(held, 0.95)) < _MIN_SHARE_CONNECTED * limit:
        return None
    return limit, float(np.trapezoid(held, at))


@dataclass(frozen=True, slots=True, eq=False)
class Refusals:
    """Connections that databases refused because all were in use, by their own counters.

    Attributes:
        at_s: of the samples that show some, shape (n,).
        per_s: refused per second, shape (n,).
        databases: that refused them, as the exporters are called; "" where that was not recorded.
        measured: databases that are measured.
    """

    at_s: Floats
    per_s: Floats
    databases: tuple[str, ...]
    measured: int


def refusals(timeline: Timeline) -> Refusals:
    """Those of the observed time."""
    samples = timeline.labelled(MYSQL_ERRORS, "error", "instance")
    refused = samples[(samples["error"] == _NONE_FREE) & (samples["value"] > 0)]
    databases = tuple(sorted(set(refused["instance"])))
    return Refusals(floats(refused, "at_s"), floats(refused, "value"), databases, samples["instance"].nunique())


def _means(edges: Floats, at: Floats, values: Floats) -> Floats:
    """The mean of the values between each two edges; NaN without values."""
    place = np.searchsorted(edges, at, side="right") - 1
    inside = (place >= 0) & (place < edges.size - 1)
    counts = np.bincount(place[inside], minlength=edges.size - 1)
    sums = np.bincount(place[inside], values[inside], edges.size - 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

"""What comparisons and capacity answers need of a test, computed once for each test."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

from harness.analysis.capacity.recorded import Recorded, recorded
from harness.analysis.stats.measures import measured
from harness.analysis.timeline import Timeline, floats, peak
from harness.analysis.validity import validity
from harness.model.phases import PLATFORM, VERSION
from harness.model.text.typed import from_plain
from harness.model.units import format_bytes
from harness.planning.timelines import timeline_in
from harness.store.folder import RunFolder
from harness.store.summaries import keep_summary, kept_summary, key_of

# Whose code a summary follows from.
_PACKAGES = ("harness.model", "harness.store", "harness.analysis", "harness.planning")


@dataclass(frozen=True, slots=True)
class Summary:
    """A test in figures.

    Attributes:
        start_at: t0 as UTC ns.
        measures: one figure per metric.
        invalid: why the test is invalid; empty where it is not.
        components: versions that the platform and its cluster named, by component.
        nodes: the most nodes that there were at a time, by pool and machine; "" where none were observed.
        capacity: what it shows about capacity.
    """

    start_at: int
    measures: Mapping[str, float]
    invalid: tuple[str, ...]
    components: Mapping[str, str]
    nodes: str
    capacity: Recorded


def summary_of(path: Path) -> Summary:
    """The summary of a run folder: as it was kept, or computed and then kept in it.

    Raises:
        ConfigError: there is no run at `path`, or its records are damaged.
    """
    folder = RunFolder.open(path)
    key = key_of(folder, _code())
    kept = kept_summary(folder, key)
    if kept is not None:
        try:
            return from_plain(Summary, json.loads(kept))
        except (ValueError, TypeError, RecursionError):
            pass  # damaged
    summary = summarized(timeline_in(folder))
    _keep(folder, key, summary)
    return summary


def keep(folder: RunFolder, timeline: Timeline) -> None:
    """Keep the summary of a sealed run in its folder."""
    _keep(folder, key_of(folder, _code()), summarized(timeline))


def summarized(timeline: Timeline) -> Summary:
    """Compute the summary of a test."""
    named = timeline.events_of(PLATFORM, VERSION)
    return Summary(
        timeline.start_at,
        measured(timeline),
        validity(timeline).reasons,
        dict(zip(named["object"].astype(str), named["message"].astype(str), strict=True)),
        _nodes(timeline),
        recorded(timeline),
    )


def _keep(folder: RunFolder, key: str, summary: Summary) -> None:
    keep_summary(folder, key, json.dumps(asdict(summary)).encode())


def _nodes(timeline: Timeline) -> str:

    kinds = []
    for _, group in timeline.nodes.groupby(["pool", "machine", "cpu", "memory", "gpu"], dropna=False):
        cpu, memory, gpu = (float(floats(group, name)[0]) for name in ("cpu", "memory", "gpu"))
        size = f"{cpu:g} cores, {format_bytes(memory)}" if isfinite(cpu + memory) else "unknown size"
        parts = filter(None, (group["machine"].iloc[0], size, f"{gpu:g} GPU" if gpu > 0 else ""))
        most = peak(floats(group, "ready_s"), floats(group, "gone_s"))
        kinds.append(f"{most} × {group['pool'].iloc[0] or 'node'} ({', '.join(parts)})")
    return ", ".join(kinds)


@cache
def _code() -> str:
    """A digest of the code that computes summaries, however it was installed."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for file in sorted(Path(place).rglob("*")):
                if file.suffix in {".py", ".so", ".pyd"}:
                    digest.update(file.read_bytes())
    return digest.hexdigest()

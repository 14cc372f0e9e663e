"""``index.html`` of a folder of runs: what was tested when, how it ended, and trends from run to run."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

import orjson

from harness.model import ExitCode, Plan
from harness.model.text.typed import from_plain
from reports.figures.figure import FEW, Figure, axis, figure, unit_of
from reports.figures.figure import line as drawn
from reports.page import offline_page, when
from reports.tables import seconds_text

# Counts of the report's ledger that are not success, in flight or answered from the cache.
_LOST = ("failed", "canceled", "rejected", "missed", "unaccounted")

_LINE, _FOLDER = 100, 40  # characters


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of the index; figures are none where the run has no report or did not measure them."""

    folder: str
    name: str
    started_at: int
    verdict: str
    headline: str
    intended: int | None = None
    failed: int | None = None
    per_hour: float | None = None
    p95_s: float | None = None
    nodes: int | None = None
    exit_code: int | None = None
    failed_slos: tuple[str, ...] = ()  # objectives that were not met

    @property
    def tone(self) -> str:
        """The verdict's colour: plain, good, warn or bad."""
        if self.exit_code is None:
            return "plain"
        return {int(ExitCode.OK): "good", int(ExitCode.SLO_FAILED): "bad"}.get(self.exit_code, "warn")

    @property
    def status(self) -> str:
        """The verdict on the test, or that a valid one missed an objective."""
        return "SLO missed" if self.exit_code == ExitCode.SLO_FAILED else self.verdict

    @property
    def cells(self) -> tuple[str, ...]:
        """The figures as text: runs, failed, throughput, p95, nodes."""
        return (
            _text(self.intended), _text(self.failed), "" if self.per_hour is None else f"{self.per_hour:,.0f}/h",
            seconds_text(self.p95_s), _text(self.nodes),
        )  # fmt: skip


def entry(folder: str, report: bytes, plan: Plan | None) -> Entry:
    """A run from its ``report.json``, or from its plan where the report is missing or of another version.

    Args:
        folder: its name.
        report: the content of ``report.json``; empty when there is none.
        plan: from its manifest; none when that can't be read.
    """
    try:
        document: dict[str, Any] = orjson.loads(report)
        ledger = document["ledger"]
        found = {
            "folder": folder,
            "name": document["name"],
            "started_at": document["started_at"],
            "verdict": document["validity"]["verdict"],
            "headline": document["headline"],
            "intended": ledger["intended"],
            "failed": sum(ledger[name] for name in _LOST),
            "per_hour": document["throughput"]["succeeded_per_hour"],
            "p95_s": document["latencies"]["duration_s"]["quantiles"]["p95"]["value"],
            "nodes": document["throughput"]["peak_nodes"],
            "exit_code": document["exit_code"],
            "failed_slos": [slo["text"] for slo in document["slos"] if slo["met"] is not True],
        }
        return from_plain(Entry, found)
    except (ValueError, KeyError, TypeError, AttributeError):
        if plan is None:
            return Entry(folder, folder, 0, "unreadable", "its manifest can't be read")
        return Entry(folder, folder, plan.started_at, "no report", f"pipeswarm report {folder}", plan.intended)


def render(runs: list[Entry]) -> bytes:
    """The page as UTF-8, one offline file."""
    return offline_page("index.html.j2", trends(runs), runs=runs, when=when)


def line(entry: Entry) -> str:
    """A run in one line for the terminal: what it failed first, and nothing beyond 100 characters."""
    what = "; ".join((*(f"not met: {text}" for text in entry.failed_slos), entry.headline))
    return _cut(f"{_cut(entry.folder, _FOLDER):{_FOLDER}} {entry.status:10} {what}", _LINE)


def document(runs: list[Entry]) -> bytes:
    """The list as one JSON object: ``schema_version`` and ``runs``, whose members are those of `Entry`."""
    return orjson.dumps(
        {"schema_version": "1.0", "runs": [asdict(entry) for entry in runs]}, option=orjson.OPT_INDENT_2
    )


def alike(runs: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Valid runs by target, schedule and size, oldest first; only where there are two or more."""
    groups: dict[str, list[Entry]] = {}
    for run in sorted(runs, key=lambda run: (run.started_at, run.folder)):
        if run.per_hour is not None and run.verdict == "VALID":
            groups.setdefault(run.name.partition("-")[2], []).append(run)
    return {name: members for name, members in groups.items() if len(members) > 1}


def trends(runs: Iterable[Entry]) -> dict[str, Figure]:
    """Throughput and p95 from run to run, a line for each target, schedule and size; invalid runs are left out."""
    groups = alike(runs)
    if not groups:
        return {}
    colors = ("--accent", "--good", "--warn", "--quiet", "--bad")
    traces, unit = [], unit_of(max((e.p95_s or 0.0 for members in groups.values() for e in members), default=0.0))
    for k, (name, members) in enumerate(sorted(groups.items())):
        place = range(1, len(members) + 1)
        values = [run.per_hour or 0.0 for run in members]
        p95 = [nan if run.p95_s is None else run.p95_s / unit.seconds for run in members]
        traces += [
            drawn(name, place, values, colors[k % len(colors)], mode="lines+markers"),
            drawn(name, place, p95, colors[k % len(colors)], yaxis="y2", mode="lines+markers"),
        ]
    most = max(len(members) for members in groups.values())
    few = {"dtick": 1} if most < FEW else {}
    layout = {
        "xaxis": axis("valid runs, oldest first", anchor="y2", range=[0.5, most + 0.5], **few),
        "yaxis": axis("succeeded runs per hour", domain=[0.55, 1.0], rangemode="tozero"),
        "yaxis2": axis(f"run duration p95 in {unit.name}", domain=[0.0, 0.45], rangemode="tozero"),
    }
    caption = "Runs of the same target, schedule and size, by start."
    return {"trends": figure("trends", "Trends", caption, traces, layout, height=440)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _text(count: int | None) -> str:
    return "" if count is None else f"{count:,}"

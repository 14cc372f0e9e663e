"""``index.html`` of a folder of runs: what was tested when, how it ended, and how the figures move from run to run."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from harness.model.errors import ConfigError, ExitCode
from harness.store.folder import RunFolder
from reports.figures.figure import FEW, Figure, axis, figure, unit_of
from reports.figures.figure import line as drawn
from reports.page import offline_page, when
from reports.tables import seconds_text

INDEX = "index.html"
# What became of runs that did not do what was asked: of the report's ledger.
_LOST = ("failed", "canceled", "rejected", "missed", "unaccounted")


@dataclass(frozen=True, slots=True)
class Entry:
    """One run as the index shows it; figures are none where the run has no report or did not measure them."""

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

    @property
    def tone(self) -> str:
        """Which colour the verdict has."""
        if self.exit_code is None:
            return "plain"
        return {int(ExitCode.OK): "good", int(ExitCode.SLO_FAILED): "warn"}.get(self.exit_code, "bad")

    @property
    def cells(self) -> tuple[str, ...]:
        """The figures as text: runs, failed, throughput, p95, nodes."""
        return (
            _text(self.intended), _text(self.failed), "" if self.per_hour is None else f"{self.per_hour:,.0f}/h",
            seconds_text(self.p95_s), _text(self.nodes),
        )  # fmt: skip


def write_index(runs_dir: Path) -> Path:
    """Write the page of all runs below `runs_dir` and return its path.

    Raises:
        ConfigError: `runs_dir` is no folder, or can't be written.
    """
    if not runs_dir.is_dir():
        raise ConfigError(f"there is no folder {runs_dir}", "name the folder that holds the runs, as in runs/")
    try:
        return RunFolder(runs_dir).replace(INDEX, render(entries(runs_dir)))
    except OSError as error:
        raise ConfigError(f"{runs_dir / INDEX} can't be written: {error.strerror}", "check its permissions") from error


def entries(runs_dir: Path) -> list[Entry]:
    """The runs below a folder, the newest first; what can't be read is listed as such."""
    found = [_entry(path) for path in sorted(runs_dir.iterdir()) if (path / "manifest.json").is_file()]
    return sorted(found, key=lambda entry: (-entry.started_at, entry.folder))


def render(runs: list[Entry]) -> bytes:
    """The page as UTF-8, one offline file."""
    return offline_page("index.html.j2", trends(runs), runs=runs, when=when)


def line(entry: Entry) -> str:
    """A run in one line for a terminal: its folder, its verdict, what was found."""
    return f"{entry.folder:44} {entry.verdict:10} {entry.headline}"


def document(runs: list[Entry]) -> bytes:
    """The list as one JSON object: ``schema_version`` and ``runs``, whose members are those of `Entry`."""
    return orjson.dumps(
        {"schema_version": "1.0", "runs": [asdict(entry) for entry in runs]}, option=orjson.OPT_INDENT_2
    )


def trends(runs: Iterable[Entry]) -> dict[str, Figure]:
    """Throughput and p95 over the runs that have them, by target and size: unlike runs are not joined by a line."""
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(runs, key=lambda e: (e.started_at, e.folder)):
        if entry.per_hour is not None and entry.verdict == "VALID":
            groups.setdefault(entry.name.partition("-")[2], []).append(entry)
    alike = {name: members for name, members in groups.items() if len(members) > 1}
    if not alike:
        return {}
    colors = ("--accent", "--good", "--warn", "--quiet", "--bad")
    traces, unit = [], unit_of(max((e.p95_s or 0.0 for members in alike.values() for e in members), default=0.0))
    for k, (name, members) in enumerate(sorted(alike.items())):
        place = np.arange(1.0, len(members) + 1)
        values = np.array([entry.per_hour or 0.0 for entry in members])
        p95 = np.array([np.nan if entry.p95_s is None else entry.p95_s / unit.seconds for entry in members])
        traces += [
            drawn(name, place, values, colors[k % len(colors)], mode="lines+markers"),
            drawn(name, place, p95, colors[k % len(colors)], yaxis="y2", mode="lines+markers"),
        ]
    most = max(len(members) for members in alike.values())
    few = {"dtick": 1} if most < FEW else {}
    layout = {
        "xaxis": axis("valid runs, the oldest first", anchor="y2", range=[0.5, most + 0.5], **few),
        "yaxis": axis("succeeded per hour", domain=[0.55, 1.0], rangemode="tozero"),
        "yaxis2": axis(f"run p95 in {unit.name}", domain=[0.0, 0.45], rangemode="tozero"),
    }
    caption = "Runs of the same target, schedule and size, in the order in which they were made."
    return {"trends": figure("trends", "From run to run", caption, traces, layout, height=440)}


def _entry(path: Path) -> Entry:
    try:
        report: dict[str, Any] = orjson.loads((path / "report.json").read_bytes())
        ledger = report["ledger"]
        return Entry(
            path.name,
            report["name"],
            report["started_at"],
            report["validity"]["verdict"],
            report["headline"],
            ledger["intended"],
            sum(ledger[name] for name in _LOST),
            report["throughput"]["succeeded_per_hour"],
            report["latencies"]["duration_s"]["quantiles"]["p95"]["value"],
            report["throughput"]["peak_nodes"],
            report["exit_code"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return _unreported(path)


def _unreported(path: Path) -> Entry:
    """A run that has no report yet, or one of another version."""
    try:
        plan = RunFolder(path).read_plan()
    except ConfigError:
        return Entry(path.name, path.name, 0, "unreadable", "its manifest can't be read")
    return Entry(path.name, path.name, plan.started_at, "no report", f"pipeswarm report {path.name}", plan.intended)


def _text(count: int | None) -> str:
    return "" if count is None else f"{count:,}"

"""Reads the scenarios and the arrivals of a recorded run."""

from dataclasses import dataclass
from pathlib import Path

from generators.inference.draft import Draft
from generators.inference.sample import read_sample
from harness.model import ConfigError, Submission
from harness.store.folder import SCENARIOS, RunFolder


@dataclass(frozen=True, slots=True)
class Arrival:
    """A run's due time, in seconds after the first one, and its scenario."""

    due_s: float
    scenario_id: str


def read_arrivals(path: Path) -> list[Arrival]:
    """The arrivals of a run, by due time.

    Raises:
        ConfigError: `path` is not a run folder, or has no recorded arrivals.
    """
    submissions = {record.seq: record for record in RunFolder.open(path).records(Submission)}
    if not submissions:
        raise ConfigError(f"{path} has no recorded arrivals", "give the folder of a run that was started")
    due = sorted(submissions.values(), key=lambda record: (record.due_at, record.seq))
    return [Arrival((record.due_at - due[0].due_at) / 1e9, record.scenario_id) for record in due]


def scenarios_of(path: Path) -> Path:
    """The path of a run's scenarios."""
    return path / SCENARIOS


def read_recorded(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of the scenarios that arrived in a run, each once, by first arrival.

    Raises:
        ConfigError: the run folder has no scenarios.
    """
    arrivals = read_arrivals(path)
    file = scenarios_of(path)
    if not file.is_file():
        raise ConfigError(f"{path} has no {SCENARIOS}", "the run was recorded without its scenarios")
    header, rows = read_sample(file, most=None)
    by_id = {row["id"]: row for row in rows} if "id" in header else {}
    wanted = dict.fromkeys(arrival.scenario_id for arrival in arrivals)
    found = [by_id[key] for key in wanted if key in by_id]
    if not found:
        raise ConfigError(f"none of the run's scenarios is in {file}", "the folder's files belong to different runs")
    return header, found


def replayed(run: Path, header: list[str], recorded: int, rows: int) -> Draft:
    """A draft that writes the recorded rows in order; if more are needed, rows are repeated at random.

    In that case ids are renumbered, so that no id is used twice.
    """
    draft, path = Draft(reserved=frozenset(header)), scenarios_of(run)
    if hidden := [name for name in RunFolder.open(run).read_plan().redact if name in header]:
        draft.notes.append(f"the run was recorded without the values of {', '.join(hidden)}: define them with --spec")
    more = rows > recorded
    how = "in_order_then_random" if more else "in_order"
    for name in header:
        draft.columns[name] = {"from_file": str(path), "column": name, "draw": how}
    if more:
        draft.columns["id"] = {"kind": "sequence"}
        draft.notes.append(f"the run had {recorded:,} scenarios: further rows repeat them under new ids")
    return draft

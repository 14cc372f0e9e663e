"""An experiment's folder: each result is kept as soon as it is known, so that an interrupted experiment continues."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from harness import reading
from harness.model.errors import ConfigError
from harness.model.experiment import Experiment, Result
from harness.model.text.typed import from_plain
from harness.planning.experiment import likely_points
from harness.planning.experiment_file import ExperimentFile
from harness.planning.experiment_tests import Tester

MAKESPAN = "makespan (s)"
_AGAIN = "give another --folder"
RESULTS, _DIGEST = "results.jsonl", "experiment.sha256"


def carry_out(plan: ExperimentFile, folder: Path, test: Tester, report: Callable[[Result, int], None]) -> list[Result]:
    """Test point after point until the question is answered; `report` gets each result and how many there are.

    Raises:
        ConfigError: the folder can't be written, is damaged, or holds another experiment.
    """
    fresh, results = not folder.exists(), _resume(folder, plan.digest)
    while points := likely_points(plan.experiment, results, test.width):
        try:
            result = test.first(points)
        except ConfigError:
            if fresh and not results:
                shutil.rmtree(folder)
            raise
        with (folder / RESULTS).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(result)) + "\n")
        results.append(result)
        report(result, len(results))
    return results


def _resume(folder: Path, digest: str) -> list[Result]:
    """The results of an interrupted call; an incomplete last line is dropped."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = reading.read_bytes(folder / RESULTS) if (folder / RESULTS).exists() else b""
        whole = kept[: kept.rfind(b"\n") + 1]
        if whole and reading.read_text(folder / _DIGEST) != digest:
            raise ConfigError(
                f"{folder} holds the results of another plan", "give another --folder, or restore the plan"
            )
        (folder / _DIGEST).write_text(digest)
        if whole != kept:
            (folder / RESULTS).write_bytes(whole)
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror}", "give another --folder") from error
    results = []
    for number, line in enumerate(whole.splitlines(), 1):
        where = f"{folder / RESULTS}, line {number}"
        try:
            results.append(from_plain(Result, reading.parse_json(line, where, _AGAIN)))
        except TypeError as error:
            raise ConfigError(f"{where}: {error}", _AGAIN) from error
    return results


def write_observations(folder: Path, experiment: Experiment, results: list[Result]) -> None:
    """Write a table per variant, ``observations-VARIANT.csv``, for ``pipeswarm capacity --from``."""
    for variant in experiment.variants:
        tests = [r for r in results if r.point.variant == variant]
        if not tests:
            continue
        rows = [f"runs,{experiment.unit}s,duration,repetition"]
        rows += [
            f"{r.point.load},{r.point.nodes},{r.values[MAKESPAN]:.3f},{r.point.repetition + 1}"
            for r in tests
            if r.values.get(MAKESPAN)
        ]
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in variant)
        (folder / f"observations-{safe}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

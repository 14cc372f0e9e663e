"""An experiment's folder: each result is kept as soon as it is known, so that an interrupted experiment continues."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from harness.model.errors import ConfigError
from harness.model.experiment import Experiment, Point, Result
from harness.planning.experiment import next_point
from harness.planning.experiment_file import ExperimentFile

MAKESPAN = "makespan (s)"
RESULTS, _DIGEST = "results.jsonl", "experiment.sha256"


def carry_out(
    plan: ExperimentFile, folder: Path, test: Callable[[Point], Result], report: Callable[[Result, int], None]
) -> list[Result]:
    """Test point after point until the question is answered; `report` gets each result and how many there are.

    Raises:
        ConfigError: the folder can't be written, or holds another experiment.
    """
    results = _resume(folder, plan.digest)
    while (point := next_point(plan.experiment, results)) is not None:
        result = test(point)
        with (folder / RESULTS).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(result)) + "\n")
        results.append(result)
        report(result, len(results))
    return results


def _resume(folder: Path, digest: str) -> list[Result]:
    """The results of an interrupted call; an incomplete last line is dropped."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = (folder / RESULTS).read_bytes() if (folder / RESULTS).exists() else b""
        whole = kept[: kept.rfind(b"\n") + 1]
        if whole and (folder / _DIGEST).read_text() != digest:
            raise ConfigError(
                f"{folder} holds the results of another plan", "give another --folder, or restore the plan"
            )
        (folder / _DIGEST).write_text(digest)
        if whole != kept:
            (folder / RESULTS).write_bytes(whole)
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror}", "give another --folder") from error
    rows = [json.loads(line) for line in whole.splitlines()]
    return [Result(Point(**row["point"]), row["met"], row["values"], row.get("run", "")) for row in rows]


def write_observations(folder: Path, experiment: Experiment, results: list[Result]) -> None:
    """Write a table per variant, ``observations-VARIANT.csv``, for ``pipeswarm capacity --from``."""
    for variant in experiment.variants:
        tests = [r for r in results if r.point.variant == variant]
        if not tests:
            continue
        rows = ["runs,nodes,duration,repetition"]
        rows += [
            f"{r.point.load},{r.point.nodes},{r.values[MAKESPAN]:.3f},{r.point.repetition + 1}"
            for r in tests
            if r.values.get(MAKESPAN)
        ]
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in variant)
        (folder / f"observations-{safe}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

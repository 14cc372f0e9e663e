"""``pipeswarm experiment plan.yaml``: many tests, chosen one after the other, resumable, one report."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from harness.cli import printing
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import counted, format_duration
from harness.planning.experiment_file import ExperimentFile, read_experiment
from harness.planning.experiment_tests import tester
from harness.planning.plan import Found, Point, Question, Result, answers, next_point

_RESULTS, _PLAN = "results.jsonl", "experiment.sha256"
_DURATION = "makespan (s)"


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("plan", type=Path, help="the experiment's YAML: question, loads, nodes, variants, slos, hooks")
    parser.add_argument(
        "--folder", type=Path, help="where results go (default: runs/experiment-NAME); continued if there"
    )
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Test point after point until the question is answered; then report."""
    plan = read_experiment(arguments.plan)
    folder = arguments.folder or Path("runs") / f"experiment-{plan.name}"
    test = tester(plan, folder)
    results = _resume(folder, plan)
    while (point := next_point(plan.experiment, results)) is not None:
        result = test(point)
        with (folder / _RESULTS).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(result)) + "\n")
        results.append(result)
        print(_progress(plan, result, len(results)), file=sys.stderr, flush=True)
    document, text = _document(plan, results), _text(plan, results, folder)
    (folder / "experiment.json").write_text(document + "\n", encoding="utf-8")
    (folder / "experiment.md").write_text(text + "\n", encoding="utf-8")
    (folder / "experiment.html").write_bytes(_page(plan, results))
    _write_observations(folder, results)
    printing.show(arguments, lambda: text, lambda: document)
    return ExitCode.OK


def _resume(folder: Path, plan: ExperimentFile) -> list[Result]:
    """The results of an earlier, interrupted call; a last line without its end is dropped.

    Raises:
        ConfigError: the folder can't be written, or holds another experiment.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / _PLAN
        kept = (folder / _RESULTS).read_bytes() if (folder / _RESULTS).exists() else b""
        whole = kept[: kept.rfind(b"\n") + 1]
        if whole and mark.read_text() != plan.digest:
            raise ConfigError(
                f"{folder} holds the results of another plan", "give another --folder, or put the plan back as it was"
            )
        mark.write_text(plan.digest)
        if whole != kept:
            (folder / _RESULTS).write_bytes(whole)
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror}", "give another --folder") from error
    rows = [json.loads(line) for line in whole.splitlines()]
    return [Result(Point(**row["point"]), row["met"], row["values"], row.get("run", "")) for row in rows]


def _progress(plan: ExperimentFile, result: Result, done: int) -> str:
    p = result.point
    met = "" if not plan.slos else ", objectives met" if result.met else ", objectives missed"
    took = format_duration(result.values[_DURATION]) if _DURATION in result.values else ""
    return f"{done}: {_named(p.variant)}{p.size}: {took}{met}"


def _named(variant: str) -> str:
    return "" if variant == "default" else f"{variant}, "


def _means(results: list[Result]) -> list[tuple[tuple[str, int, int], list[Result]]]:
    """Results by (variant, load, nodes)."""
    cells: dict[tuple[str, int, int], list[Result]] = {}
    for result in results:
        cells.setdefault((result.point.variant, result.point.load, result.point.nodes), []).append(result)
    return sorted(cells.items())


def _page(plan: ExperimentFile, results: list[Result]) -> bytes:
    from reports.experiment_page import Conduct, render

    links = {place: f"runs/{result.run}/report.html" for place, result in enumerate(results, 1) if result.run}
    sentences = tuple(_sentences(plan, results))
    return render(Conduct(plan.name, plan.experiment, plan.slos, tuple(results), _DURATION, links, sentences))


def _sentences(plan: ExperimentFile, results: list[Result]) -> list[str]:
    """The answers of the searches, then how variants compare."""
    told = [_answer(found) for found in answers(plan.experiment, results)]
    return told + [str(comparison["sentence"]) for comparison in _comparisons(plan, results)]


def _answer(found: Found) -> str:
    series = found.series
    if series.searched == "nodes":
        of, searched = counted(series.fixed, "run"), "node"
        told, told_none = "need", "are not done in time by"
    else:
        of, searched = counted(series.fixed, "node"), "run"
        told, told_none = "bear", "do not bear"
    least = counted(series.candidates[0], searched)
    told = f"{told} {counted(found.value, searched)}" if found.value else f"{told_none} {least}"
    low, high = found.interval
    fewest, most = "fewer" if low is None else low, "more" if high is None else high
    left = f", which leave {fewest} to {most} possible" if found.value and low != high else ""
    doubt = f"; those at {', '.join(map(str, found.contradictions))} speak against it" if found.contradictions else ""
    return f"{_named(series.variant)}{of} {told} ({counted(found.tests, 'test')}{left}{doubt})."


def _document(plan: ExperimentFile, results: list[Result]) -> str:
    found = answers(plan.experiment, results)
    document = {
        "name": plan.name,
        "question": plan.experiment.question,
        "slos": list(plan.slos),
        "answers": [
            {
                "variant": f.series.variant,
                "load" if f.series.searched == "nodes" else "nodes": f.series.fixed,
                "answer": f.value,
                "interval": list(f.interval),
                "tests": f.tests,
                "contradictions": list(f.contradictions),
            }
            for f in found
        ],
        "comparisons": _comparisons(plan, results),
        "results": [asdict(result) for result in results],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _comparisons(plan: ExperimentFile, results: list[Result]) -> list[Mapping[str, object]]:
    """Variants against the first, where a grid has several."""
    if plan.experiment.question is not Question.GRID or len(plan.experiment.variants) < 2:
        return []
    import numpy as np

    from harness.analysis.stats.compare import Measurement, compare

    rows = [
        Measurement(r.point.variant, r.point.size, str(r.point.repetition), name, value)
        for variant in plan.experiment.variants
        for r in results
        if r.point.variant == variant
        for name, value in r.values.items()
    ]
    found = compare(rows, np.random.default_rng(plan.experiment.seed), paired=True)
    return [asdict(c) | {"significant": c.significant, "sentence": c.sentence} for c in found]


def _text(plan: ExperimentFile, results: list[Result], folder: Path) -> str:
    lines = [f"# {plan.name}", ""]
    if plan.slos:
        lines += [f"Objectives: {'; '.join(plan.slos)}", ""]
    lines += [f"- {sentence}" for sentence in _sentences(plan, results)]
    lines += ["", "| variant | runs | nodes | tests | met | mean time |", "|---|---:|---:|---:|---:|---:|"]
    for (variant, load, nodes), cell in _means(results):
        times = [r.values[_DURATION] for r in cell if _DURATION in r.values]
        mean = format_duration(sum(times) / len(times)) if times else ""
        met = f"{sum(r.met for r in cell)}" if plan.slos else ""
        lines.append(f"| {variant} | {load} | {nodes} | {len(cell)} | {met} | {mean} |")
    lines += ["", f"Report: {folder / 'experiment.html'}; results: {folder / _RESULTS};"]
    lines += [f"for `pipeswarm capacity --from`: {folder}/observations-*.csv"]
    return "\n".join(lines)


def _write_observations(folder: Path, results: list[Result]) -> None:
    """A table a variant, as `pipeswarm capacity` reads it."""
    for variant in {result.point.variant for result in results}:
        rows = ["runs,nodes,duration,repetition"]
        rows += [
            f"{r.point.load},{r.point.nodes},{r.values[_DURATION]:.3f},{r.point.repetition + 1}"
            for r in results
            if r.point.variant == variant and r.values.get(_DURATION)
        ]
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in variant)
        (folder / f"observations-{safe}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

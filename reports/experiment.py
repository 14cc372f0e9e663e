"""A completed experiment: its answers in sentences, as Markdown and as one JSON object."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby

from harness.analysis.stats.compare import Comparison
from harness.model.experiment import Answer, Experiment, Result
from harness.model.units import format_duration

SINGLE_TESTS = "Single tests can't show significance: repeat them."  # a footnote of comparisons


@dataclass(frozen=True, slots=True)
class CompletedExperiment:
    """An experiment with its results.

    Attributes:
        name: of the experiment.
        experiment: question and axes.
        slos: objectives, as texts.
        results: in the order of the tests.
        duration: the metric that is the whole test's seconds.
        answers: of the searches; empty for a grid.
        comparisons: of variants with the first one; empty for a search.
    """

    name: str
    experiment: Experiment
    slos: tuple[str, ...]
    results: tuple[Result, ...]
    duration: str
    answers: tuple[Answer, ...]
    comparisons: tuple[Comparison, ...] = ()

    @property
    def links(self) -> Mapping[int, str]:
        """Each test's report, by its number from 1, relative to the experiment's folder; none of simulated tests."""
        return {place: f"runs/{r.run}/report.html" for place, r in enumerate(self.results, 1) if r.run}


def judged_by(metric: str) -> str:
    """Why the p values of one metric are smaller than those of the others."""
    return f"Judged by: {metric}, named in advance. The p values of the others are corrected among themselves."


def sentences(completed: CompletedExperiment) -> list[str]:
    """The answers of the searches, then how variants compare, for people."""
    note = [SINGLE_TESTS] if any(min(c.counts) < 2 for c in completed.comparisons) else []
    judged = dict.fromkeys(judged_by(c.metric) for c in completed.comparisons if c.primary and min(c.counts) > 1)
    return [*(a.sentence for a in completed.answers), *judged, *(c.sentence for c in completed.comparisons), *note]


def as_json(completed: CompletedExperiment) -> str:
    """The experiment as a JSON text, as `experiment.json` holds it and ``--json`` prints it."""
    document = {
        "name": completed.name,
        "question": completed.experiment.question,
        "unit": completed.experiment.unit,
        "slos": list(completed.slos),
        "answers": [
            {
                "variant": a.series.variant,
                "load" if a.series.searched == "nodes" else "nodes": a.series.fixed,
                "answer": a.value,
                "interval": list(a.interval),
                "tests": a.tests,
                "contradictions": list(a.contradictions),
            }
            for a in completed.answers
        ],
        "comparisons": [
            asdict(c) | {"significant": c.significant, "sentence": c.sentence} for c in completed.comparisons
        ],
        "results": [asdict(result) for result in completed.results],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def as_markdown(completed: CompletedExperiment) -> str:
    """The answers, and a table with a row per variant and size."""
    lines = [f"# {completed.name}", ""]
    if completed.slos:
        lines += [f"Objectives: {'; '.join(completed.slos)}", ""]
    lines += [f"- {sentence}" for sentence in sentences(completed)]
    lines += [
        "",
        f"| variant | runs | {completed.experiment.unit}s | tests | met | mean time |",
        "|---|---:|---:|---:|---:|---:|",
    ]

    def cell(result: Result) -> tuple[str, int, int]:
        return result.point.variant, result.point.load, result.point.nodes

    for (variant, load, nodes), group in groupby(sorted(completed.results, key=cell), cell):
        tests = list(group)
        times = [r.values[completed.duration] for r in tests if completed.duration in r.values]
        mean = format_duration(sum(times) / len(times)) if times else ""
        met = f"{sum(r.met for r in tests)}" if completed.slos else ""
        lines.append(f"| {variant} | {load} | {nodes} | {len(tests)} | {met} | {mean} |")
    return "\n".join(lines)

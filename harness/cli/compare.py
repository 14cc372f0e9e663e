"""``pipeswarm compare A B…``: variants against the first one, from run folders or a table of measurements."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.model.errors import ConfigError, ExitCode
from harness.planning.observations import timeline_of
from harness.targets.table import named_rows_of

if TYPE_CHECKING:
    from harness.analysis.stats.compare import Comparison, Measurement
    from harness.analysis.stats.recommend import Recommendation

COLUMNS = ("variant", "scale", "repetition", "metric", "value")
_SEED = 7


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument(
        "variants",
        nargs="*",
        metavar="RUN[,RUN…]",
        help="run folders, one argument a variant, its repetitions by comma",
    )
    parser.add_argument("--table", type=Path, metavar="CSV", help=f"measurements with the columns {','.join(COLUMNS)}")
    parser.add_argument(
        "--paired", action=argparse.BooleanOptionalAction, default=None,
        help="tests of the same repetition ran side by side (run folders tell; in a table: not unless said)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="compare tests of different scale all the same")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, compare, print."""
    import numpy as np

    from harness.analysis.stats.compare import compare
    from harness.analysis.stats.measures import OF_THE_SCHEDULE, gains
    from harness.analysis.stats.recommend import recommend

    if arguments.table is not None and not arguments.variants:
        tests = Tests(read_table(arguments.table), side_by_side=False)
    elif len(arguments.variants) > 1 and arguments.table is None:
        tests = _read_runs(arguments.variants, force=arguments.force)
    else:
        raise ConfigError("compare needs two or more variants", "give run folders: A B, or --table measurements.csv")
    paired = tests.side_by_side if arguments.paired is None else arguments.paired
    found = compare(tests.measurements, np.random.default_rng(_SEED), paired=paired)
    if not found:
        raise ConfigError("there is nothing to compare", "two variants with the same metric at the same scale")
    changed = len(set(tests.schedules.values())) > 1
    counted = [m for m in tests.measurements if not (changed and m.metric in OF_THE_SCHEDULE)]
    best = recommend(counted, np.random.default_rng(_SEED), paired=paired)
    told = gains(tests.measurements, tests.schedules) if changed else ()
    printing.show(arguments, lambda: _text(found, told, best, tests), lambda: _json(found, told, best, tests))
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class Tests:
    """What was read: `schedules` are in words, by variant; `side_by_side` says that repetitions were interleaved."""

    measurements: "list[Measurement]"
    side_by_side: bool
    schedules: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_table(path: Path) -> "list[Measurement]":
    """Measurements of a table.

    Raises:
        ConfigError: the file is not such a table.
    """
    from harness.analysis.stats.compare import Measurement

    found = []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in named_rows_of(path, COLUMNS, "give a CSV table"):
        variant, scale, repetition, metric = key = tuple(row[name] for name in COLUMNS[:-1])
        if key in seen:
            raise ConfigError(
                f"{path}, line {line}: the same variant, scale, repetition and metric as line {seen[key]}",
                "number the repetitions",
            )
        seen[key] = line
        try:
            value = float(row["value"])
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise ConfigError(
                f"{path}, line {line}, column 'value': '{row['value']}' is not a number", "correct the row"
            )
        found.append(Measurement(variant, scale, repetition, metric, value))
    return found


def _read_runs(variants: Sequence[str], *, force: bool) -> Tests:
    """Measurements of run folders.

    Raises:
        ConfigError: a folder can't be read, or the tests differ in scale.
    """
    from harness.analysis.stats.measures import measure
    from harness.analysis.validity import validity
    from harness.model.baseline import differences
    from harness.model.schedules import in_words

    runs = [Path(path) for name in variants for path in name.split(",")]
    twice = next((path for path in runs if runs.count(path) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is given twice", "give different run folders")
    arms = {name: [timeline_of(Path(path)) for path in name.split(",")] for name in variants}
    tests = [timeline for arm in arms.values() for timeline in arm]
    first, warnings = tests[0], []
    for timeline in tests[1:]:
        for difference in differences(first.plan, timeline.plan):
            if difference.startswith(("runs:", "target:")) and not force:
                raise ConfigError(
                    f"the tests differ in scale or target: {difference}", "compare equal tests, or say --force"
                )
            warnings.append(f"the tests differ in {difference}")
    for name, arm in arms.items():
        for timeline in arm:
            warnings += [f"{name} is INVALID: {reason}" for reason in validity(timeline).reasons]
    sizes = {timeline.plan.intended for timeline in tests}
    names = _names(variants)
    scale = f"{first.plan.intended} runs" if len(sizes) == 1 else "different scales"
    measurements = [
        measurement
        for name, arm in arms.items()
        for repetition, timeline in enumerate(arm)
        for measurement in measure(names[name], scale, str(repetition), timeline)
    ]
    schedules = {names[name]: in_words(arm[0].plan.schedule) for name, arm in arms.items()}
    starts = [[timeline.start_at for timeline in arm] for arm in arms.values()]
    return Tests(measurements, _interleaved(starts), schedules, tuple(dict.fromkeys(warnings)))


def _names(variants: Sequence[str]) -> dict[str, str]:
    """Short names by argument: the folders' own, or what a variant's repetitions begin with, where that is distinct."""
    folders = {variant: [Path(path).name for path in variant.split(",")] for variant in variants}
    begin = {
        variant: commonprefix(names).rstrip("-_.") if len(names) > 1 else names[0]  # noqa: RUF071  # names, not paths
        for variant, names in folders.items()
    }
    if all(begin.values()) and len(set(begin.values())) == len(variants):
        return begin
    return {variant: ",".join(names) for variant, names in folders.items()}


def _interleaved(starts: Sequence[Sequence[int]]) -> bool:
    """Every round of repetitions was over before the next began to start."""
    if len({len(arm) for arm in starts}) != 1 or len(starts[0]) < 2:
        return False
    rounds = list(zip(*starts, strict=True))
    return all(max(a) < min(b) for a, b in pairwise(rounds))


def _json(found: "Sequence[Comparison]", gains: Sequence[str], best: "Recommendation | None", tests: Tests) -> str:
    rows = [asdict(c) | {"significant": c.significant, "sentence": c.sentence} for c in found]
    document = {
        "comparisons": rows,
        "schedules": list(gains),
        "recommendation": asdict(best) | {"sentence": best.sentence} if best else None,
        "warnings": list(tests.warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _text(found: "Sequence[Comparison]", gains: Sequence[str], best: "Recommendation | None", tests: Tests) -> str:
    rows = [["metric", "scale", "before", "after", "change", "95% interval", "p", "n"]]
    for c in found:
        change = "" if c.change is None else f"{c.change:+.1%}"
        interval = "" if c.low is None else f"{c.low:+.1%} to {c.high:+.1%}"
        p = "" if c.p is None else f"{c.p:.2g}"
        counts = f"{c.counts[0]}+{c.counts[1]}{' pairs' if c.paired else ''}"
        rows.append([c.metric, c.scale, f"{c.before:,.6g}", f"{c.after:,.6g}", change, interval, p, counts])
    lines = [*printing.table(rows), ""]
    for comparison in found:
        lines += printing.wrapped(comparison.sentence)
    for sentence in (*gains, *((best.sentence,) if best else ())):
        lines += ["", *printing.wrapped(sentence)]
    if gains:
        lines.append("Makespan, throughput and goodput are for the schedule to say, and not counted.")
    for warning in tests.warnings:
        lines += printing.wrapped(warning, "warning: ")
    return "\n".join(lines)

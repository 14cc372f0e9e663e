"""``pipeswarm compare A B…``: variants against the first one, from run folders or a table of measurements."""

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.cli.observations import timeline_of
from harness.model.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from harness.analysis.compare import Comparison, Measurement
    from harness.analysis.recommend import Recommendation
    from harness.analysis.timeline import Timeline

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

    from harness.analysis.compare import compare
    from harness.analysis.recommend import recommend

    warnings: list[str] = []
    if arguments.table is not None and not arguments.variants:
        measurements, paired = read_table(arguments.table), bool(arguments.paired)
    elif len(arguments.variants) > 1 and arguments.table is None:
        measurements, interleaved = _read_runs(arguments.variants, warnings, force=arguments.force)
        paired = interleaved if arguments.paired is None else arguments.paired
    else:
        raise ConfigError("compare needs two or more variants", "give run folders: A B, or --table measurements.csv")
    found = compare(measurements, np.random.default_rng(_SEED), paired=paired)
    if not found:
        raise ConfigError("there is nothing to compare", "two variants with the same metric at the same scale")
    best = recommend(measurements, np.random.default_rng(_SEED), paired=paired)
    warnings = list(dict.fromkeys(warnings))
    printing.show(arguments, lambda: _text(found, best, warnings), lambda: _json(found, best, warnings))
    return ExitCode.OK


def read_table(path: Path) -> "list[Measurement]":
    """Measurements of a table.

    Raises:
        ConfigError: the file is not such a table.
    """
    from harness.analysis.compare import Measurement

    try:
        lines = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(), skipinitialspace=True)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {error}", "give a CSV table in UTF-8") from error
    missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
    if missing:
        raise ConfigError(f"{path}, line 1: the column '{missing[0]}' is missing", f"columns are: {','.join(COLUMNS)}")
    found = []
    seen: dict[tuple[str, ...], int] = {}
    for row in lines:
        variant, scale, repetition, metric = key = tuple(row[name] or "" for name in COLUMNS[:-1])
        if key in seen:
            raise ConfigError(
                f"{path}, line {lines.line_num}: the same variant, scale, repetition and metric as line {seen[key]}",
                "number the repetitions",
            )
        seen[key] = lines.line_num
        try:
            value = float(row["value"] or "")
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise ConfigError(
                f"{path}, line {lines.line_num}, column 'value': '{row['value']}' is not a number", "correct the row"
            )
        found.append(Measurement(variant, scale, repetition, metric, value))
    return found


def _read_runs(variants: Sequence[str], warnings: list[str], *, force: bool) -> "tuple[list[Measurement], bool]":
    """Measurements of run folders, and whether the repetitions ran side by side.

    Raises:
        ConfigError: a folder can't be read, or the tests differ in scale.
    """
    from harness.analysis.validity import validity
    from harness.model.baseline import differences

    arms = {name: [timeline_of(Path(path)) for path in name.split(",")] for name in variants}
    if len(arms) < len(variants):
        raise ConfigError("a variant is given twice", "give different run folders")
    tests = [timeline for arm in arms.values() for timeline in arm]
    first = tests[0]
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
    return measurements, _interleaved([[timeline.start_at for timeline in arm] for arm in arms.values()])


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


def measure(variant: str, scale: str, repetition: str, timeline: "Timeline") -> "list[Measurement]":
    """What a test comes to, in figures; one a test, since its runs are not independent of each other."""
    from harness.analysis.compare import Measurement
    from harness.analysis.latency import latencies
    from harness.analysis.ledger import ledger
    from harness.analysis.throughput import throughput

    seen, counts, over = latencies(timeline), ledger(timeline), throughput(timeline)
    values = {
        "run.duration p50 (s)": seen.duration.at(0.5).value,
        "run.duration p95 (s)": seen.duration.at(0.95).value,
        "submit.latency p95 (s)": seen.latency.at(0.95).value,
        "makespan (s)": over.makespan_s,
        "throughput (runs/h)": over.per_hour,
        "failed_ratio": counts.share(counts.failed + counts.canceled),
    }
    return [Measurement(variant, scale, repetition, name, v) for name, v in values.items() if v is not None]


def _interleaved(starts: Sequence[Sequence[int]]) -> bool:
    """Every round of repetitions was over before the next began to start."""
    if len({len(arm) for arm in starts}) != 1 or len(starts[0]) < 2:
        return False
    rounds = list(zip(*starts, strict=True))
    return all(max(a) < min(b) for a, b in pairwise(rounds))


def _json(found: "Sequence[Comparison]", best: "Recommendation | None", warnings: Sequence[str]) -> str:
    rows = [asdict(c) | {"significant": c.significant, "sentence": c.sentence} for c in found]
    document = {
        "comparisons": rows,
        "recommendation": asdict(best) | {"sentence": best.sentence} if best else None,
        "warnings": list(warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _text(found: "Sequence[Comparison]", best: "Recommendation | None", warnings: Sequence[str]) -> str:
    lines = [
        f"{'metric':24} {'scale':>12} {'before':>12} {'after':>12} {'change':>8}  {'95 % interval':19} {'p':>7}  n"
    ]
    for c in found:
        change = "" if c.change is None else f"{c.change:+.1%}"
        interval = "" if c.low is None else f"{c.low:+.1%} to {c.high:+.1%}"
        p = "" if c.p is None else f"{c.p:.2g}"
        counts = f"{c.counts[0]}+{c.counts[1]}{' pairs' if c.paired else ''}"
        lines.append(
            f"{c.metric:24} {c.scale:>12} {c.before:>12,.6g} {c.after:>12,.6g} {change:>8}  "
            f"{interval:19} {p:>7}  {counts}"
        )
    lines += ["", *(c.sentence for c in found)]
    if best:
        lines += ["", best.sentence]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in warnings)])

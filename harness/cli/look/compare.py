"""``pipeswarm compare A B…``: variants against the first one, from run folders or a table of measurements."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from harness.cli import printing
from harness.model.errors import ConfigError, ExitCode
from harness.planning.comparison import COLUMNS, Compared, compare_variants, read_runs, read_table
from reports.experiment import SINGLE_TESTS, judged_by


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument(
        "variants", nargs="*", metavar="RUN[,RUN…]", help="run folders of one variant, repetitions separated by commas"
    )
    parser.add_argument("--table", type=Path, metavar="CSV", help=f"measurements with the columns {','.join(COLUMNS)}")
    parser.add_argument(
        "--paired", action=argparse.BooleanOptionalAction, default=None,
        help="equal repetitions ran side by side (default: yes for run folders that were interleaved, else no)",
    )  # fmt: skip
    parser.add_argument(
        "--primary", default="", metavar="METRIC",
        help="the metric to judge by, named before the figures are seen (default: makespan for bursts, else the mean "
        "run duration; of a table, its first metric)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="compare tests that differ in scale or target")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the tests, compare the variants with the first, and print the comparison."""
    if arguments.table is not None and not arguments.variants:
        measured = read_table(arguments.table)
    elif len(arguments.variants) > 1 and arguments.table is None:
        measured = read_runs(arguments.variants, force=arguments.force)
    else:
        raise ConfigError("compare needs two or more variants", "give run folders: A B, or --table measurements.csv")
    compared = compare_variants(measured, paired=arguments.paired, primary=arguments.primary)
    printing.show(arguments, lambda: _text(compared), lambda: _json(compared))
    return ExitCode.OK


def _json(found: Compared) -> str:
    rows = [asdict(c) | {"significant": c.significant, "sentence": c.sentence} for c in found.comparisons]
    best = found.recommendation
    document = {
        "primary": found.primary,
        "comparisons": rows,
        "schedules": list(found.gains),
        "recommendation": asdict(best) | {"sentence": best.sentence} if best else None,
        "warnings": list(found.warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _chance(found: Compared) -> list[str]:
    """What a single test of each could not have shown, by the metric that decides."""
    shares = [c.chance for c in found.comparisons if c.metric == found.primary and c.chance is not None]
    if not shares:
        return []
    chance = f"by chance alone, two single tests differ by up to {max(shares):.0%} in {found.primary} (95%)"
    return [f"One test of each would not do: {chance}."]


def _text(found: Compared) -> str:
    rows = [["metric", "scale", "before", "after", "change", "95% interval", "p", "n"]]
    for c in found.comparisons:
        change = "" if c.change is None else f"{c.change:+.1%}"
        interval = "" if c.low is None else f"{c.low:+.1%} to {c.high:+.1%}"
        p = "" if c.p is None else f"{c.p:.2g}"
        counts = f"{c.counts[0]}+{c.counts[1]}{' pairs' if c.paired else ''}"
        rows.append([c.metric, c.scale, f"{c.before:,.6g}", f"{c.after:,.6g}", change, interval, p, counts])
    # For a single test the table says it all.
    repeated = [c.sentence for c in found.comparisons if min(c.counts) > 1]
    best = found.recommendation
    judged = [judged_by(found.primary)] if repeated else []
    notes = [*judged, *_chance(found), *found.gains, *((best.sentence,) if best else ())]
    if len(repeated) < len(found.comparisons) and (best is None or best.repeated):
        notes.append(SINGLE_TESTS)
    if found.gains:
        notes.append("Makespan, throughput and goodput depend on the schedule; the recommendation ignores them.")
    blocks = [
        printing.table(rows),
        [line for sentence in repeated for line in printing.wrapped(sentence)],
        *(printing.wrapped(note) for note in notes),
        [line for warning in found.warnings for line in printing.wrapped(warning, "warning: ")],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)

"""`generate-scenarios workload`: writes the arrivals of a day with many tenants as a schedule to replay."""

import argparse
import csv
import hashlib
import io
import json
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from generators.files import STDOUT, whole_file, write_text
from generators.inference.traces import FORMATS, RUN_FOLDER, read_trace, scaled, table
from generators.schema import WORKLOAD, validate
from generators.sources import Sources
from generators.width_plot import plot, stage_for
from generators.workload import Arrivals, Workload, arrivals, read_workload, widths
from harness.documents import Document, read_yaml
from harness.model import ConfigError, ExitCode, parse_duration
from harness.model.arguments import count
from harness.svg import encoder

_DEFAULT_SCENARIOS = 1000
_MOST_TIMES = 100  # the jobs of a trace
_EPILOG = """\
examples:
  generate-scenarios workload --scenarios scenarios.csv
      a built-in day: morning, lull, rush, easing
  generate-scenarios workload --scenarios scenarios.csv --plot width.svg
      with a plot of its width
  generate-scenarios workload --for 2h --width 20..60 --variation 10
      one phase
  generate-scenarios workload --spec day.yaml --scenarios scenarios.csv
      phases, tenants and mixes of your own
  generate-scenarios workload --from-run runs/…
      arrivals of a recorded run
  generate-scenarios workload --from-trace log.csv --format helios \\
                              --window 7d..8d --scale 0.5 --jobs jobs.csv
      half of a day of a public trace, and its jobs as scenarios
"""


def run(argv: Sequence[str]) -> int:
    """Write a schedule and return the exit code.

    Raises:
        ConfigError: the options, or the files they name, are invalid.
    """
    options = command_line().parse_args(argv)
    picture = encoder(options.plot) if options.plot is not None else None
    recorded = options.from_run or options.from_trace
    if recorded is not None and options.stages is not None:
        raise ConfigError("--stages needs a workload: a recorded run has none", "leave --from-run or --stages out")
    of_trace = (options.jobs, options.format, options.window, options.scale, options.keep_names)
    if options.from_trace is None and any(of_trace):
        names = "--format, --window, --scale, --jobs and --keep-names"
        raise ConfigError(f"{names} belong to a trace", "add --from-trace FILE")
    phases: list[tuple[str, float]] = []
    if options.from_trace is not None:
        seed = options.seed or 0
        found, stage_s, duration_s, phases, source = *_traced(options, seed), [], options.from_trace.name
    elif options.from_run is not None:
        found, stage_s, duration_s, phases, seed, source = *_recorded(options.from_run), [], None, options.from_run.name
    else:
        workload, source, digest = _workload(options)
        seed = options.seed if options.seed is not None else workload.seed or 0
        found = arrivals(workload, seed, _scenarios(options))
        if not len(found.due_s):
            raise ConfigError(f"{source} starts no runs: every width is 0", "give a phase a width above 0")
        stage_s, duration_s = workload.stage_s, workload.duration_s
        ends = accumulate((phase.stages * stage_s for phase in workload.phases), initial=0.0)
        phases = [(phase.name, start) for phase, start in zip(workload.phases, ends, strict=False)]
        source = f"{source} {digest}"
        if options.stages is not None:
            with whole_file(options.stages) as out:
                out.write(_stages(workload, seed))
    content = _table(found)
    with whole_file(options.output) as out:
        out.write(content)
    if picture is not None:
        with whole_file(options.plot) as out:
            out.write(picture(plot(found, stage_s, duration_s, phases)))
    _report(options, found, content, seed, source)
    return int(ExitCode.OK)


def command_line() -> argparse.ArgumentParser:
    """The options of a workload."""
    parser = argparse.ArgumentParser(
        prog="generate-scenarios workload",
        usage="generate-scenarios workload [OPTION]…",
        description="Write a schedule (seq,due_s,tenant,scenario_id) for --schedule replay.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--spec", type=Path, metavar="FILE", help="a workload: phases, tenants, mixes (YAML)")
    source.add_argument("--for", dest="length", metavar="D", help="one phase of this length, with --width")
    source.add_argument("--from-run", type=Path, metavar="RUN", help="the arrivals of a recorded run")
    source.add_argument("--from-trace", type=Path, metavar="FILE", help="the jobs of a public trace, with --format")
    formats = (*FORMATS, RUN_FOLDER)
    parser.add_argument("--format", choices=formats, metavar="F", help=f"of the trace: {', '.join(formats)} (a folder)")
    parser.add_argument("--window", metavar="FROM..TO", help="part of the trace, such as 2d..2d6h after its first job")
    parser.add_argument("--scale", metavar="F", help="multiply the jobs of the trace by F, such as 2x or 0.5")
    parser.add_argument("--jobs", type=Path, metavar="FILE", help="also write the jobs of the trace as scenarios (CSV)")
    parser.add_argument("--keep-names", action="store_true", help="keep the trace's names of users and pipelines")
    parser.add_argument("--width", metavar="MIN..MAX", default="10..50", help="with --for: runs started per stage")
    parser.add_argument("--variation", type=int, help="with --for: maximum change of the width between stages")
    parser.add_argument("--stage", metavar="D", default="5m", help="with --for: length of a stage (default: 5m)")
    parser.add_argument("--scenarios", type=Path, metavar="FILE", help="the scenarios to choose from")
    parser.add_argument(
        "--n", type=count, default=_DEFAULT_SCENARIOS, help="without --scenarios: ids are 1 to N (default: 1000)"
    )
    parser.add_argument("--seed", type=int, help="the same seed gives the same bytes (default: the spec's, or 0)")
    parser.add_argument(
        "-o",
        "--output",
        default="schedule.csv",
        metavar="FILE",
        help="output file (default: schedule.csv); - is stdout",
    )
    parser.add_argument(
        "--stages", type=Path, metavar="FILE",
        help="also write the stages (YAML) for --schedule concurrency: each starts when the former is over",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, metavar="FILE", help="plot the width over time, as .svg or .png")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def _workload(options: argparse.Namespace) -> tuple[Workload, str, str]:
    if options.length is not None:
        low, dots, high = options.width.partition("..")
        if not dots or not low.strip().isdigit() or not high.strip().isdigit():
            raise ConfigError(f"--width: '{options.width}' is not a range", "write it as 20..60")
        phase: dict[str, Any] = {"name": "all", "for": options.length, "width": [int(low), int(high)]}
        if options.variation is not None:
            phase["variation"] = options.variation
        document = Document({"stage": options.stage, "phases": [phase]}, "the command line")
    else:
        document = read_yaml(options.spec or Path(__file__).parent / "day.workload.yaml")
    validate(document, WORKLOAD)
    digest = hashlib.sha256(json.dumps(document.data, default=str).encode()).hexdigest()
    return read_workload(document), Path(document.source).name, digest


def _scenarios(options: argparse.Namespace) -> dict[str, list[str]]:
    if options.scenarios is None:
        return {"id": [str(number) for number in range(1, options.n + 1)]}
    table = Sources().table(options.scenarios)
    if "id" not in table:
        raise ConfigError(f"{options.scenarios} has no column id", "create the file with generate-scenarios")
    return {name: column.text().filled("").tolist() for name, column in table.items()}


def _traced(options: argparse.Namespace, seed: int) -> tuple[Arrivals, float, float]:
    """The arrivals of a trace; its jobs are scenarios of their own."""
    import numpy as np

    if options.format is None:
        raise ConfigError("--from-trace needs a format", f"add --format: one of {', '.join((*FORMATS, RUN_FOLDER))}")
    window = _window(options.window)
    jobs = read_trace(options.from_trace, options.format, window, keep_names=options.keep_names)
    if options.scale is not None:
        jobs = scaled(jobs, _factor(options.scale), seed)
    if not jobs:
        raise ConfigError("--scale: no job is left", "give a larger factor")
    if options.jobs is not None:
        with whole_file(options.jobs) as out:
            out.write(table(jobs))
    due_s = np.array([job.submitted_s for job in jobs])
    duration_s = float(due_s[-1]) + 1.0
    ids = tuple(str(number) for number in range(1, len(jobs) + 1))
    return Arrivals(due_s, tuple(job.user for job in jobs), ids), stage_for(duration_s), duration_s


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    begin, dots, end = text.partition("..")
    window = (parse_duration(begin or "0s"), parse_duration(end or "0s"))
    if not dots or window[1] <= window[0]:
        raise ConfigError(f"--window: '{text}' is not a part of a trace", "write it as 2d..2d6h")
    return window


def _factor(text: str) -> float:
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0.0 < factor <= _MOST_TIMES:
        raise ConfigError(f"--scale: '{text}' is not a factor above 0 and up to {_MOST_TIMES}", "write it as 2x or 0.5")
    return factor


def _recorded(path: Path) -> tuple[Arrivals, float, float]:
    import numpy as np

    from generators.inference.recorded import read_arrivals

    recorded = read_arrivals(path)
    due_s = np.array([arrival.due_s for arrival in recorded])
    duration_s = float(due_s[-1]) + 1.0
    ids = tuple(arrival.scenario_id for arrival in recorded)
    return Arrivals(due_s, ("",) * len(recorded), ids), stage_for(duration_s), duration_s


def _stages(workload: Workload, seed: int) -> bytes:
    """The widths of the stages as a schedule file; stages without runs are left out."""
    return "".join(f"- {{runs: {width}}}\n" for width in widths(workload, seed).tolist() if width).encode()


def _table(found: Arrivals) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["seq", "due_s", "tenant", "scenario_id"])
    for seq, (due_s, tenant, scenario) in enumerate(zip(found.due_s, found.tenants, found.scenario_ids, strict=True)):
        writer.writerow([seq, repr(float(due_s)), tenant, scenario])
    return out.getvalue().encode()


def _report(options: argparse.Namespace, found: Arrivals, content: bytes, seed: int | None, source: str) -> None:
    runs = len(found.due_s)
    result = {
        "schema_version": 1,
        "file": Path(options.output).name,
        "runs": runs,
        "tenants": {name: found.tenants.count(name) for name in sorted(set(found.tenants))},
        "last_due_s": float(found.due_s[-1]) if runs else None,
        "seed": seed,
        "workload": source,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if options.output != STDOUT:
        write_text(f"{options.output}.manifest.json", json.dumps(result, indent=2) + "\n")
    if options.json and options.output != STDOUT:
        print(json.dumps(result))
    elif not options.quiet:
        print(f"wrote {runs:,} arrivals to {options.output}", file=sys.stderr)

"""`generate-scenarios`: writes scenarios, or checks a file of scenarios."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.model.arguments import count
from harness.model.errors import ConfigError, ExitCode
from harness.model.schedules import MOST_ARRIVALS
from harness.model.text.inert import for_output

_DEFAULT_ROWS = 1000
_MOST_ROWS = MOST_ARRIVALS  # that a spec may ask for: no test has more arrivals
_DEFAULT_OUTPUT = "scenarios.csv"
_USAGE = """\
generate-scenarios [--n N] [--from-… FILE] [-o FILE] [options]
       generate-scenarios --check FILE [options]
       generate-scenarios workload [options]"""
_EPILOG = """\
examples:
  generate-scenarios --n 5000
      scenarios of a built-in training spec
  generate-scenarios --n 5000 --from-pipeline training.yaml
      columns, types and defaults of a compiled pipeline
  generate-scenarios --spec scenarios.yaml -o - | head
      a spec of your own, to the standard output
  generate-scenarios --from-csv sample.csv --write-spec -
      infer a spec from a sample, to edit
  generate-scenarios --check mine.csv --from-pipeline training.yaml
      list every bad cell of a file
  generate-scenarios workload --help
      arrivals of a day with many tenants

exit codes: 0 success, every cell is valid; 2 bad input, or a bad cell;
130 interrupted
"""


def run(argv: Sequence[str]) -> int:
    """Write or check scenarios and return the exit code.

    Raises:
        ConfigError: the options, or the files they name, are invalid.
    """
    options = command_line().parse_args(argv)
    from generators.request import resolve

    request = resolve(options)
    if options.check is not None:
        from generators.check import report

        return report(request, options)
    if options.write_spec is not None:
        from generators.files import write_text

        write_text(options.write_spec, request.as_yaml())
        if options.output is None:
            return int(ExitCode.OK)
    return _write(request, options)


def command_line() -> argparse.ArgumentParser:
    """The options of scenarios."""
    parser = argparse.ArgumentParser(
        prog="generate-scenarios",
        usage=_USAGE,
        description="Generate scenarios for a load test; each row holds the parameters of one run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--n", type=count, metavar="N", help="number of rows (default: the spec's, or 1000)")
    parser.add_argument("--seed", type=int, help="the same seed gives the same bytes (default: the spec's, or 0)")
    parser.add_argument("-o", "--output", metavar="FILE", help="output file (default: scenarios.csv); - is stdout")
    source = parser.add_argument_group("content")
    source.add_argument(
        "--spec", type=Path, metavar="FILE", help="a scenario spec; extends and overrides what is inferred"
    )
    inferred = source.add_mutually_exclusive_group()
    inferred.add_argument("--from-pipeline", type=Path, metavar="FILE", help="a compiled Kubeflow pipeline (IR YAML)")
    inferred.add_argument("--from-workflow", type=Path, metavar="FILE", help="a hetida designer transformation (JSON)")
    inferred.add_argument(
        "--from-workflow-template", type=Path, metavar="FILE", help="an Argo Workflow or WorkflowTemplate (YAML)"
    )
    inferred.add_argument("--from-csv", type=Path, metavar="FILE", help="infer the spec from a sample of scenarios")
    inferred.add_argument(
        "--from-run", type=Path, metavar="RUN", help="scenarios of a recorded run, in order of arrival"
    )
    source.add_argument("--write-spec", metavar="FILE", help="write the spec instead of scenarios; - prints it")
    how = parser.add_argument_group("output")
    how.add_argument("--format", choices=("csv", "jsonl", "parquet"), help="file format (default: by the file name)")
    how.add_argument("--excel-safe", action="store_true", help="escape text that a spreadsheet would run as a formula")
    how.add_argument("--crlf", action="store_true", help="end CSV lines with CR LF, as in RFC 4180")
    how.add_argument("--processes", type=count, default=1, metavar="N", help="draw with N processes; same bytes")
    how.add_argument("--quiet", action="store_true", help="no progress and no summary")
    how.add_argument("--json", action="store_true", help="print the result as one JSON object")
    check = parser.add_argument_group("validation")
    check.add_argument("--check", type=Path, metavar="FILE", help="check a CSV against the spec or pipeline")
    check.add_argument("--limit", type=count, default=100, help="list at most this many bad cells (default: 100)")
    return parser


def _write(request: Any, options: argparse.Namespace) -> int:
    from generators.files import STDOUT, whole_file
    from generators.generate import Job, generate, manifest
    from generators.progress import progress

    output = options.output or _DEFAULT_OUTPUT
    rows = options.n or _rows_of(request.spec) or request.default_rows or _DEFAULT_ROWS
    seed = options.seed if options.seed is not None else request.spec.seed or 0
    job = Job(request.spec, seed, rows, _format(options, output), request.sources)
    with whole_file(output) as out, progress(rows, quiet=options.quiet) as show_progress:
        written = generate(job, out, show_progress, options.processes)
    result = manifest(job, written, Path(output).name)
    if output != STDOUT:
        with whole_file(f"{output}.manifest.json") as out:
            out.write(json.dumps(result, indent=2).encode() + b"\n")
    for note in request.notes if not options.quiet else ():
        print(for_output(f"note: {note}"), file=sys.stderr)
    if options.json and output != STDOUT:
        print(json.dumps(result))
    elif not options.quiet:
        columns = len(request.spec.columns)
        print(f"wrote {rows:,} scenarios of {columns} columns to {output} (seed {seed})", file=sys.stderr)
    return int(ExitCode.OK)


def _rows_of(spec: Any) -> int | None:
    """The rows that a spec asks for; a spec may be another user's, `--n` is the caller's own."""
    if spec.rows is not None and spec.rows > _MOST_ROWS:
        raise ConfigError(
            f"{spec.source} asks for {spec.rows:,} rows; a spec may ask for at most {_MOST_ROWS:,}",
            "correct its `rows`, or give the number with --n, which has no limit",
        )
    return spec.rows  # type: ignore[no-any-return]


def _format(options: argparse.Namespace, output: str) -> Any:
    from generators.formats import SUFFIXES, Csv, JsonLines, Parquet

    name = options.format or SUFFIXES.get(Path(output).suffix.lower())
    if name is None and output != "-":
        raise ConfigError(f"the name {output} has no known suffix", f"use one of {', '.join(SUFFIXES)}, or --format")
    if name in {"jsonl", "parquet"} and (options.excel_safe or options.crlf):
        raise ConfigError("--excel-safe and --crlf are for CSV", f"drop them, or write CSV instead of {name}")
    if name == "jsonl":
        return JsonLines()
    return Parquet() if name == "parquet" else Csv(options.excel_safe, "\r\n" if options.crlf else "\n")

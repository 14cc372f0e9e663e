"""``pipeswarm capacity``: how many nodes for N runs in T, how long, how many runs; from recorded tests or a table."""

import argparse
from pathlib import Path

from harness.cli import printing
from harness.cli.decide import jobs_per_node, sweeping
from harness.cli.sweep_bar import SweepBar
from harness.model.arguments import amount, count, duration, duration_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import parse_duration

_TRIAL = "find by trial how many runs fit one node"
_OPTIONS = {"runs": "--runs", "within_s": "--within", "nodes": "--nodes"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.epilog = "Give two of --runs, --within and --nodes to get the third. Each takes a list (100,200) too."
    parser.add_argument(
        "--from", dest="sources", nargs="+", action="extend", type=Path, metavar="RUN|CSV",
        help="run folders, or tables with the columns runs,nodes,duration[,repetition]; repeatable",
    )  # fmt: skip
    parser.add_argument("--runs", metavar="N", help="number of runs")
    parser.add_argument("--within", metavar="T", help="time limit: 3h, 80m, or seconds")
    parser.add_argument("--nodes", metavar="M", help="number of nodes")
    parser.add_argument("--grid", action="store_true", help="add a table around the given sizes, or over lists")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="plot answers and tests: .svg, .png or .html")
    parser.add_argument("--next", action="store_true", help="say which test to run next, so that the answer is surer")
    parser.add_argument("--jobs-per-node", type=count, metavar="J", help="runs that fit one node, if known")
    parser.add_argument(
        "--simulator", metavar="PROFILE", help="answer by this simulated platform, calibrated on the given run folder"
    )
    sweeping.configure(parser)
    parser.add_argument(
        "--price", type=amount, metavar="P", help="price of one node per hour (default: the recorded price)"
    )
    spot = parser.add_argument_group("spot nodes")
    spot.add_argument(
        "--spot", type=amount, nargs="?", const=0.05, default=0.0, metavar="RATE",
        help="expect evictions: how many per node and hour (without a value: 0.05)",
    )  # fmt: skip
    spot.add_argument(
        "--step-time", type=duration_above_0, metavar="T", help="length of the longest step, which an eviction repeats"
    )
    spot.add_argument(
        "--replacement-time", type=duration, default="3m", metavar="T",
        help="time until a new node is ready (default: 3m)",
    )  # fmt: skip
    printing.configure(parser)
    ways = parser.add_subparsers(dest="way", metavar="WAY", title="another way")
    jobs_per_node.configure(ways.add_parser("jobs-per-node", help=_TRIAL, description=f"{_TRIAL}."))


def run(arguments: argparse.Namespace) -> int:
    """Answer the question, write the plot if asked for, and print the answer."""
    if arguments.way:
        return jobs_per_node.run(arguments)
    from harness.cli.decide.capacity_text import as_json, as_text
    from harness.planning.capacity import Evictions, answer_from
    from reports.capacity_page import writer

    question = _question(arguments)
    write = writer(arguments.plot) if arguments.plot else None
    evictions = Evictions(arguments.spot, arguments.step_time, arguments.replacement_time) if arguments.spot else None
    with SweepBar(" for this answer") as bar, sweeping.workers(arguments, bar) as workers:
        answered = answer_from(
            arguments.sources, question, grid=arguments.grid, jobs_per_node=arguments.jobs_per_node,
            simulator=arguments.simulator or "", price=arguments.price, evictions=evictions, propose=arguments.next,
            workers=workers,
        )  # fmt: skip
        if write is not None:
            write(answered)
    printing.show(arguments, lambda: as_text(answered), lambda: as_json(answered))
    return ExitCode.OK


def _question(arguments: argparse.Namespace) -> dict[str, list[float]]:
    """The two quantities that are given, by the question's names.

    Raises:
        ConfigError: not exactly two are given, or one can't be parsed.
    """
    texts = {"runs": arguments.runs, "within_s": arguments.within, "nodes": arguments.nodes}
    given = {}
    for name, text in texts.items():
        if text is None:
            continue
        try:
            values = [parse_duration(part) if name == "within_s" else float(part) for part in text.split(",")]
        except (ValueError, ConfigError):
            values = [0.0]
        if not all(0 < value < float("inf") for value in values):
            example = "3h, 80m or 5400" if name == "within_s" else "500, or a list: 500,1000"
            raise ConfigError(f"{_OPTIONS[name]} '{text}' is not valid", f"write it as {example}; above 0")
        given[name] = values
    if not arguments.sources:
        raise ConfigError("capacity needs recorded tests", "name them: --from RUN|CSV; or try it: jobs-per-node")
    if len(given) != 2:
        names = " and ".join(_OPTIONS[name] for name in given) or "none of them"
        raise ConfigError(
            f"capacity needs two of --runs, --within and --nodes, but got {names}",
            "for example: pipeswarm capacity --from runs/… --runs 1000 --within 3h",
        )
    return given

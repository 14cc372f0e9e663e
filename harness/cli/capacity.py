"""``pipeswarm capacity``: how many nodes for N runs in T, how long, how many runs; from recorded tests or a table."""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.model.arguments import amount, count, duration, duration_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import format_duration, parse_duration
from harness.planning.observations import Source, read, timeline_of

if TYPE_CHECKING:
    from harness.analysis.capacity.model import CapacityModel
    from harness.planning.simulated_capacity import CalibratedSimulator

_SEED = 7
_GRID = (0.5, 1.0, 1.5, 2.0)
_MOST_CELLS = 400


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.epilog = "Give two of --runs, --within and --nodes; the third is answered. Each takes a list (100,200) too."
    parser.add_argument(
        "--from", dest="sources", nargs="+", type=Path, required=True, metavar="RUN|CSV",
        help="run folders, or tables with the columns runs,nodes,duration[,repetition]",
    )  # fmt: skip
    parser.add_argument("--runs", metavar="N", help="how many runs")
    parser.add_argument("--within", metavar="T", help="in which time: 3h, 80m, or seconds")
    parser.add_argument("--nodes", metavar="M", help="on how many nodes")
    parser.add_argument("--grid", action="store_true", help="a table around the given sizes, or over the lists given")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it, with the tests that were made: .svg, .png or .html"
    )
    parser.add_argument("--jobs-per-node", type=count, metavar="J", help="how many runs fit a node, where it is known")
    parser.add_argument(
        "--simulator", metavar="PROFILE", help="answer by this simulated platform, calibrated on the run folder given"
    )
    parser.add_argument("--price", type=amount, metavar="P", help="of one node, per hour; recorded prices are known")
    spot = parser.add_argument_group("spot nodes")
    spot.add_argument(
        "--spot", type=amount, nargs="?", const=0.05, default=0.0, metavar="RATE",
        help="nodes are taken back: evictions of one node per hour (default where given: 0.05)",
    )  # fmt: skip
    spot.add_argument(
        "--step-time", type=duration_above_0, metavar="T", help="of the longest step, which an eviction repeats"
    )
    spot.add_argument(
        "--replacement-time", type=duration, default="3m", metavar="T", help="until a new node is ready (default: 3m)"
    )
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, answer."""
    import numpy as np

    from harness.analysis.capacity.answer import Question, answer
    from harness.analysis.capacity.check import leave_one_out
    from harness.analysis.capacity.fit import fit
    from harness.cli.capacity_answered import Answered
    from harness.cli.capacity_drawn import file_maker

    given = _given(arguments)
    make_file = file_maker(arguments.plot) if arguments.plot else None
    source = read(arguments.sources)
    model = fit(source.observations, np.random.default_rng(_SEED), jobs_per_node=arguments.jobs_per_node)
    spot = _with_evictions(arguments, model, source) if arguments.spot else None
    model = spot[0] if spot else model
    ask = _simulator(arguments).ask if arguments.simulator else None
    answered = Answered(
        model,
        f"calibrated simulator ({arguments.simulator})" if ask else model.law.name,
        answer(model, Question(**{quantity: values[0] for quantity, values in given.items()}), ask),
        tuple(answer(model, Question(**cell), ask) for cell in _cells(arguments, given)),
        source,
        source.warnings + ((spot[1],) if spot else ()),
        source.price if arguments.price is None else arguments.price,
        None if ask else leave_one_out(source.observations, np.random.default_rng(_SEED)),
    )
    if make_file is not None:
        make_file(answered, ask)
    printing.show(arguments, answered.text, answered.document)
    return ExitCode.OK


def _given(arguments: argparse.Namespace) -> dict[str, list[float]]:
    """The two quantities that are given, by the question's names.

    Raises:
        ConfigError: not two of them are given, or one can't be understood.
    """
    texts = {"runs": arguments.runs, "within_s": arguments.within, "nodes": arguments.nodes}
    options = {"runs": "--runs", "within_s": "--within", "nodes": "--nodes"}
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
            raise ConfigError(f"{options[name]} '{text}' can't be understood", f"write it as {example}; above 0")
        given[name] = values
    if len(given) != 2:
        said = " and ".join(options[name] for name in given) or "none of them"
        raise ConfigError(
            f"capacity needs two of --runs, --within and --nodes, and {said} {'are' if len(given) > 1 else 'is'} given",
            "for example: pipeswarm capacity --from runs/… --runs 1000 --within 3h",
        )
    return given


def _cells(arguments: argparse.Namespace, given: dict[str, list[float]]) -> list[dict[str, float]]:
    """The combinations of the grid; empty when none is asked for."""
    if not arguments.grid and all(len(values) == 1 for values in given.values()):
        return []
    axes = {name: _axis(name, values) for name, values in given.items()}
    cells = [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]
    if len(cells) > _MOST_CELLS:
        raise ConfigError(f"the grid has {len(cells)} cells, {_MOST_CELLS} are allowed", "give shorter lists")
    return cells


def _axis(name: str, values: Sequence[float]) -> list[float]:
    if len(values) > 1:
        return list(values)
    spread = [values[0] * factor for factor in _GRID]
    return spread if name == "within_s" else sorted({float(max(1, round(value))) for value in spread})


def _simulator(arguments: argparse.Namespace) -> "CalibratedSimulator":
    """The profile, calibrated on the run folder.

    Raises:
        ConfigError: there is not one run folder that says enough, or evictions are asked for.
    """
    from harness.analysis.capacity.recorded import recorded
    from harness.planning.simulated_burst import package
    from harness.planning.simulated_capacity import calibrate
    from harness.simulator.profile.file import load_profile
    from harness.store.folder import PIPELINE

    folders = [path for path in arguments.sources if path.is_dir()]
    if len(folders) != 1 or arguments.spot:
        raise ConfigError(
            "--simulator is calibrated on one run folder, and has evictions of its own",
            "give one run folder with --from; for evictions, a profile with spot nodes",
        )
    timeline = timeline_of(folders[0])
    whole = [o for o in recorded(timeline).observations if not o.steady]
    pipeline = folders[0] / PIPELINE
    if not whole:
        raise ConfigError(f"{folders[0]} has no whole test to calibrate on", "give the run folder of a burst")
    try:
        return calibrate(
            timeline, whole[0], load_profile(arguments.simulator), package(pipeline if pipeline.is_file() else None)
        )
    except ValueError as error:
        raise ConfigError(f"{folders[0]} can't calibrate a simulator: {error}", "observe the cluster too") from error


def _with_evictions(
    arguments: argparse.Namespace, model: "CapacityModel", source: Source
) -> "tuple[CapacityModel, str]":
    """The model with evictions, and a sentence that says what was assumed."""
    from harness.analysis.capacity.recorded import eviction_factor

    steps = [test.step_s for test in source.recorded if test.step_s]
    step_s = arguments.step_time or max(steps, default=0.0)
    if step_s <= 0:
        raise ConfigError("how long a step takes is not known from a table", "give --step-time, such as 10m")
    factor = eviction_factor(step_s, arguments.spot, arguments.replacement_time)
    said = (
        f"spot: {arguments.spot:g} evictions of a node per hour, each repeating a step of {format_duration(step_s)}, "
        f"make the work {factor - 1:.1%} longer"
    )
    return model.scaled(factor), said

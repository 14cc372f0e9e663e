"""``pipeswarm capacity``: how many nodes for N runs in T, how long, how many runs; from recorded tests or a table."""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import printing
from harness.cli.observations import Source, read, timeline_of
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import format_duration, parse_duration

if TYPE_CHECKING:
    from harness.analysis.capacity import CapacityModel
    from harness.analysis.capacity_answer import Answer
    from harness.cli.calibrated import CalibratedSimulator

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
    parser.add_argument("--jobs-per-node", type=int, metavar="J", help="how many runs fit a node, where it is known")
    parser.add_argument(
        "--simulator", metavar="PROFILE", help="answer by this simulated platform, calibrated on the run folder given"
    )
    parser.add_argument("--price", type=float, metavar="P", help="of one node, per hour; recorded prices are known")
    spot = parser.add_argument_group("spot nodes")
    spot.add_argument(
        "--spot", type=float, nargs="?", const=0.05, default=0.0, metavar="RATE",
        help="nodes are taken back: evictions of one node per hour (default where given: 0.05)",
    )  # fmt: skip
    spot.add_argument("--step-time", metavar="T", help="of the longest step, which an eviction repeats")
    spot.add_argument("--replacement-time", default="3m", metavar="T", help="until a new node is ready (default: 3m)")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, answer."""
    import numpy as np

    from harness.analysis.capacity import fit
    from harness.analysis.capacity_answer import Question, answer

    given = _given(arguments)
    source = read(arguments.sources)
    if arguments.jobs_per_node is not None and arguments.jobs_per_node < 1:
        raise ConfigError(f"--jobs-per-node {arguments.jobs_per_node} is not above 0", "give a whole number")
    model = fit(source.observations, np.random.default_rng(_SEED), jobs_per_node=arguments.jobs_per_node)
    spot = _with_evictions(arguments, model, source) if arguments.spot else None
    model = spot[0] if spot else model
    warnings = source.warnings + ((spot[1],) if spot else ())
    price = source.price if arguments.price is None else arguments.price
    ask = _simulator(arguments).ask if arguments.simulator else None
    name = f"calibrated simulator ({arguments.simulator})" if ask else model.law.name
    first = answer(model, Question(**{quantity: values[0] for quantity, values in given.items()}), ask)
    cells = _cells(arguments, given)
    grid = [answer(model, Question(**cell), ask) for cell in cells]
    printing.show(
        arguments,
        lambda: _text(model, name, first, source, warnings, price, grid),
        lambda: _json(model, name, first, source, warnings, price, grid),
    )
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
    from harness.analysis.capacity_runs import recorded
    from harness.cli.calibrated import calibrate
    from harness.cli.twin import package
    from harness.simulator.profile_file import load_profile
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
    from harness.analysis.capacity_runs import eviction_factor

    if arguments.spot < 0:
        raise ConfigError(f"--spot {arguments.spot} is below 0", "give the evictions of one node per hour")
    steps = [test.step_s for test in source.recorded if test.step_s]
    step_s = parse_duration(arguments.step_time) if arguments.step_time else max(steps, default=0.0)
    if step_s <= 0:
        raise ConfigError("how long a step takes is not known from a table", "give --step-time, such as 10m")
    factor = eviction_factor(step_s, arguments.spot, parse_duration(arguments.replacement_time))
    said = (
        f"spot: {arguments.spot:g} evictions of a node per hour, each repeating a step of {format_duration(step_s)}, "
        f"make the work {factor - 1:.1%} longer"
    )
    return model.scaled(factor), said


def _cost(found: "Answer", price: float | None) -> float | None:
    if price is None or found.nodes is None or found.within_s is None:
        return None
    return found.nodes * found.within_s / 3600 * price


def _binding(found: "Answer", source: Source) -> str:
    return f"nodes ({source.lacks})" if found.binding == "nodes" and source.lacks else found.binding


def _whole(value: float | None) -> float | None:
    """Counts as counts: 40, not 40.0."""
    return int(value) if value is not None and value.is_integer() else value


def _row(found: "Answer", source: Source, price: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "runs": _whole(found.runs),
        "nodes": _whole(found.nodes),
        "within_s": found.within_s,
        "asked": found.asked,
        "answer": _whole(found.value),
        "interval": [_whole(found.low), _whole(found.high)],
        "binding": _binding(found, source),
    }
    cost = _cost(found, price)
    return row if cost is None else row | {"cost": cost}


def _json(
    model: "CapacityModel",
    name: str,
    first: "Answer",
    source: Source,
    warnings: tuple[str, ...],
    price: float | None,
    grid: "list[Answer]",
) -> str:
    import json

    seen = model.fitted_on
    document = _row(first, source, price) | {
        "model": name,
        "fitted_on": {
            "runs": list(seen.runs),
            "nodes": list(seen.nodes),
            "duration_s": list(seen.duration_s),
            "observations": seen.observations,
        },
        "warnings": [*first.warnings, *warnings],
    }
    if grid:
        document["grid"] = [_row(cell, source, price) | {"warnings": list(cell.warnings)} for cell in grid]
    return json.dumps(document, indent=2, ensure_ascii=False)


def _text(
    model: "CapacityModel",
    name: str,
    first: "Answer",
    source: Source,
    warnings: tuple[str, ...],
    price: float | None,
    grid: "list[Answer]",
) -> str:
    seen = model.fitted_on
    lines = [
        _sentence(first),
        f"  90 % interval  {_amount(first.asked, first.low)} to {_amount(first.asked, first.high)}",
    ]
    others = [
        f"{law.name} {weight:.0%}" for law, weight in sorted(model.weights.items(), key=lambda item: -item[1])[:3]
    ]
    lines.append(f"  model          {name} (weights: {', '.join(others)})")
    lines.append(
        f"  fitted on      {seen.observations} observation{'s' if seen.observations > 1 else ''}: "
        f"{_span(seen.runs)} runs, {_span(seen.nodes)} nodes, "
        f"{format_duration(seen.duration_s[0])} to {format_duration(seen.duration_s[1])}"
    )
    lines.append(f"  binding        {_binding(first, source)}")
    cost = _cost(first, price)
    if cost is not None:
        lines.append(f"  cost           {cost:,.2f} (at {price:g} a node and hour)")
    lines += [f"  warning        {warning}" for warning in (*first.warnings, *warnings)]
    if grid:
        lines += ["", *_table(grid)]
    return "\n".join(lines)


def _sentence(found: "Answer") -> str:
    if found.value is None:
        return f"{found.runs:,.0f} runs in {format_duration(found.within_s or 0)}: no number of nodes is enough."
    runs, nodes = f"{found.runs:,.0f} runs", f"{found.nodes:,.0f} nodes"
    took = format_duration(found.within_s or 0)
    match found.asked:
        case "nodes":
            return f"{runs} in {took}: {nodes}."
        case "runs":
            return f"{nodes} for {took}: {runs}."
        case _:
            return f"{runs} on {nodes}: {took}."


def _amount(asked: str, value: float | None) -> str:
    if value is None:
        return "no bound"
    return format_duration(value) if asked == "within_s" else f"{value:,.0f}"


def _span(ends: tuple[float, float]) -> str:
    return f"{ends[0]:,.4g}" if ends[0] == ends[1] else f"{ends[0]:,.4g} to {ends[1]:,.4g}"


def _table(grid: "list[Answer]") -> list[str]:
    """A line a cell: what was given, the answer, its interval; a star where a cell is far beyond what was observed."""
    asked = grid[0].asked
    names = [name for name in ("runs", "nodes", "within_s") if name != asked]
    titles = {"runs": "runs", "nodes": "nodes", "within_s": "time"}
    head = "".join(f"{titles[name]:>14}" for name in names) + f"{titles[asked]:>16}{'90 % interval':>34}"
    lines = [head]
    for cell in grid:
        given = "".join(f"{_amount(name, getattr(cell, name)):>14}" for name in names)
        interval = f"{_amount(asked, cell.low)} to {_amount(asked, cell.high)}"
        far = " *" if any("observed" in warning for warning in cell.warnings) else ""
        lines.append(f"{given}{_amount(asked, cell.value):>16}{interval:>34}{far}")
    if any(line.endswith(" *") for line in lines):
        lines.append("* far beyond what was observed")
    return lines

"""``pipeswarm simulate adapter``: a generic REST adapter of hetida designer with configurable limits.

Used instead of the real adapter, it shows whether the adapter, or the database behind it, is the bottleneck.
"""

import argparse

from harness.model.arguments import count_or_0, duration, duration_above_0, share
from harness.model.errors import ExitCode
from harness.simulator import commands


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument(
        "--capacity", type=count_or_0, default=0, help="concurrent requests; the others wait (0: no limit)"
    )
    parser.add_argument(
        "--latency", type=_range, default="0", help="time per request: 500ms, or 200ms..800ms (uniform)"
    )
    parser.add_argument("--errors", type=share, default=0.0, help="share of requests answered with 503, such as 0.05")
    parser.add_argument("--plants", type=count_or_0, default=100, help="number of plants to browse; any id is served")
    parser.add_argument(
        "--step", type=duration_above_0, default="60s", help="time between the points of a series (default: 60s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same values")
    parser.add_argument("--name", default="plants", help="the adapter's id (default: plants)")
    commands.add_listen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from harness.simulator.engine.distributions import Amount, Uniform
    from harness.simulator.hetida.adapter.limits import Gate, Limits
    from harness.simulator.hetida.adapter.plants import Plants
    from harness.simulator.hetida.adapter.rest import serve

    limits = Limits(arguments.capacity, Amount(Uniform(*arguments.latency)), arguments.errors)
    serve(
        Plants(arguments.plants, arguments.step, arguments.seed), Gate(limits, arguments.seed), arguments.name,
        commands.listen_options(arguments),
    )  # fmt: skip
    return ExitCode.OK


def _range(text: str) -> tuple[float, float]:
    """The ends of a range of durations; both are the same for a single one."""
    low, _, high = text.partition("..")
    least, most = duration(low), duration(high or low)
    if most < least:
        raise argparse.ArgumentTypeError(f"{text} is reversed: write the shorter duration first")
    return least, most

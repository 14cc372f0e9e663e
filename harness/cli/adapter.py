"""``pipeswarm adapter serve``: a generic REST adapter of hetida designer with planted limits.

With it in place of a real adapter a load test shows whether the adapter, or the database behind it, is the bottleneck.
"""

import argparse

from harness.model.errors import ConfigError, ExitCode
from harness.model.units import parse_duration
from harness.simulator import commands


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    serving = verbs.add_parser(
        "serve",
        help="serve an adapter with synthetic plants until it is interrupted",
        description="Serves a generic REST adapter with synthetic plants and planted limits, until it is interrupted.",
    )
    serving.add_argument("--capacity", type=int, default=0, help="requests served at once; the others wait (0: all)")
    serving.add_argument("--latency", default="0", help="what each request takes, as 500ms, or 200ms..800ms evenly")
    serving.add_argument("--errors", type=float, default=0.0, help="share of requests answered with 503, as 0.05")
    serving.add_argument("--plants", type=int, default=100, help="plants to browse; any id is served")
    serving.add_argument("--step", default="60s", help="time between two points of a series (default: 60s)")
    serving.add_argument("--seed", type=int, default=0, help="the same seed gives the same values")
    serving.add_argument("--name", default="plants", help="the adapter's id (default: plants)")
    commands.add_place_options(serving)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from harness.simulator.adapter.limits import Limits
    from harness.simulator.adapter.serve import AdapterOptions, serve
    from harness.simulator.distributions import Amount, Uniform

    if not 0 <= arguments.errors <= 1:
        raise ConfigError(f"--errors: {arguments.errors} is not a share", "give a number from 0 to 1")
    step_s = parse_duration(arguments.step)
    if step_s <= 0 or arguments.capacity < 0 or arguments.plants < 0:
        raise ConfigError("--step, --capacity and --plants can't be negative, nor a step 0", "see --help")
    low, _, high = arguments.latency.partition("..")
    least, most = parse_duration(low), parse_duration(high or low)
    if most < least:
        raise ConfigError(f"--latency: {arguments.latency} is upside down", "write the shorter one first")
    serve(
        AdapterOptions(
            limits=Limits(arguments.capacity, Amount(Uniform(least, most)), arguments.errors),
            plants=arguments.plants,
            step_s=step_s,
            seed=arguments.seed,
            name=arguments.name,
            place=commands.place(arguments),
        )
    )
    return ExitCode.OK

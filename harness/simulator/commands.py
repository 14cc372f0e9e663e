"""``pipeswarm simulate``: serve a simulated platform, or list the built-in ones."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from harness.model.arguments import port
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.text.inert import for_output
from harness.simulator.faults import FAULTS, HETIDA_FAULTS, parse_faults
from harness.simulator.profile import Profile
from harness.simulator.profile.file import built_in, load_profile
from harness.simulator.profile.results import with_results

if TYPE_CHECKING:
    from harness.simulator.serving import ListenOptions

    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # argparse has no public name for it


def configure(parser: argparse.ArgumentParser) -> "Verbs":
    """Add the verbs and their options; returns the subparsers, to which more verbs can be added."""
    verbs: Verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    serving = verbs.add_parser(
        "serve",
        help="serve a simulated platform until interrupted",
        description="Serves the KFP (or hetida) and Kubernetes APIs of a simulated platform until interrupted.",
    )
    add_platform_options(serving)
    add_listen_options(serving)
    serving.add_argument(
        "--seed", type=int, default=0, help="random seed: the same seed gives the same durations and sizes (default: 0)"
    )
    serving.add_argument(
        "--strict", action="store_true", help="exit with an error if simulated time falls behind wall time"
    )
    serving.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="write a kubeconfig for the platform to FILE (default: a temporary file)",
    )
    serving.add_argument(
        "--advertise", default="", metavar="URL", help="address for clients, if it differs from the listening address"
    )
    listing = verbs.add_parser(
        "profiles",
        help="list the built-in profiles and faults",
        description="Lists the built-in profiles and the faults that can be injected.",
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    return verbs


def add_platform_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the platform's profile and faults."""
    parser.add_argument("--profile", default="demo", help="name of a built-in profile, or a YAML file (default: demo)")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME[@WHEN][:STRENGTH]", help="inject a fault; may be repeated"
    )
    parser.add_argument(
        "--result", action="append", default=[], metavar="steps.NAME=VALUE:SHARE",
        help="what a step returns, on which conditions depend; may be repeated (default: each branch is as likely)",
    )  # fmt: skip
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="FIELD",
        help="run Argo's workflows without a field that the simulated platform does not model; may be repeated",
    )  # fmt: skip


def chosen(args: argparse.Namespace) -> Profile:
    """The profile of the options of `add_platform_options`."""
    profile = with_results(load_profile(args.profile), args.result)
    return replace(profile, ignore=(*profile.ignore, *args.ignore))


def add_listen_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address and the end of a server."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=port, default=0, help="port to listen on (default: 0, any free port)")
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write the address as JSON to FILE once the server answers"
    )
    parser.add_argument("--die-with-parent", action="store_true", help="stop when the parent process ends")


def listen_options(args: argparse.Namespace) -> "ListenOptions":
    """The parsed options of `add_listen_options`."""
    from harness.simulator.serving import ListenOptions

    return ListenOptions(args.host, args.port, args.ready_file, args.die_with_parent)


def run(args: argparse.Namespace, adjust: Callable[[Profile], Profile] = lambda profile: profile) -> int:
    """Run the parsed command; `adjust` can change the profile before it is served. Returns the exit code."""
    return _profiles(as_json=args.json) if args.verb == "profiles" else _serve(args, adjust)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m harness.simulator``."""
    parser = argparse.ArgumentParser(prog="python -m harness.simulator", description=__doc__)
    configure(parser)
    try:
        return run(parser.parse_args(argv))
    except PipeswarmError as error:
        print(for_output(f"error: {error}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _serve(args: argparse.Namespace, adjust: Callable[[Profile], Profile]) -> int:
    from harness.simulator.serve import ServeOptions, serve

    faults = parse_faults(args.fault)
    profile = adjust(chosen(args))
    serve(ServeOptions(profile, faults, listen_options(args), args.seed, args.kubeconfig, args.advertise, args.strict))
    return ExitCode.OK


def _profiles(*, as_json: bool) -> int:
    profiles, faults = built_in(), {name: fault.title for name, fault in (FAULTS | HETIDA_FAULTS).items()}
    if as_json:
        print(json.dumps({"profiles": profiles, "faults": faults}, indent=2))
        return ExitCode.OK
    width = max(map(len, (*profiles, *faults)))
    for heading, entries in (("Profiles", profiles), ("Faults", faults)):
        print(heading)
        for name, title in entries.items():
            print(fill(title, 100, initial_indent=f"  {name:<{width}}  ", subsequent_indent=(width + 4) * " "))
    return ExitCode.OK

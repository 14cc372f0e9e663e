"""``pipeswarm load TARGET``: Locust with the locustfile that comes with Pipeswarm, for those who have no clone."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import printing
from harness.cli.keep import completion
from harness.model.errors import ConfigError

CONFIG = "pipeswarm.toml"
_LISTING = frozenset({"-h", "--help", "--options"})


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the target; everything after it is Locust's."""
    from harness.targets.discovery import names

    parser.epilog = f"-f FILE runs a locustfile of your own. A {CONFIG} in the working directory configures Locust."
    parser.add_argument("target", choices=names(), nargs="?", help="the platform")
    parser.add_argument("--options", dest="listing", action="store_true", help="list the options of a test")
    printing.configure(parser)
    if completed := completion.words():
        _declare_options(parser, [name for name in names() if completed[1:2] == [name]])
        return
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, help="options of Locust and of the target; --options lists the target's"
    )


def run(arguments: argparse.Namespace) -> int:
    """Become Locust, which returns the exit code of the test."""
    if not (arguments.listing or _LISTING & set(arguments.options)):
        if not arguments.target:
            raise ConfigError("no target is given", "for example: pipeswarm load kfp; --help lists them")
        line = command(arguments.target, arguments.options)
        sys.stdout.flush()
        os.execv(line[0], line)  # noqa: S606  # our own interpreter: signals and exit code are Locust's
    from harness.cli.loading import options

    for name in {"json", "quiet"} & {option.removeprefix("--") for option in arguments.options}:
        setattr(arguments, name, True)
    return options.show(arguments)


def _declare_options(parser: argparse.ArgumentParser, targets: Sequence[str]) -> None:
    """Declare those of a load test: what argparse leaves to Locust, a shell can't complete."""
    from harness.cli.loading.options import sections

    for options in sections(targets).values() if targets else ():
        for option in options:
            option.add_to(parser)


def command(target: str, options: Sequence[str]) -> list[str]:
    """The command line of Locust for a load test of `target`, with the packaged locustfile unless `options` name one.

    Raises:
        ConfigError: no locustfile for `target` comes with Pipeswarm.
    """
    config = ["--config", CONFIG] if Path(CONFIG).is_file() and not _names(options, "--config") else []
    given = _names(options, "-f", "--locustfile")
    return [sys.executable, "-m", "locust", *([] if given else ["-f", str(locustfile(target))]), *config, *options]


def _names(options: Sequence[str], *names: str) -> bool:
    """Whether an option of these names is among `options`, with its value attached or not."""
    return any(option.partition("=")[0] in names for option in options)


def locustfile(target: str) -> Path:
    """The packaged locustfile, or that of the clone.

    Raises:
        ConfigError: there is none: the target is a third party's.
    """
    place = Path(__file__).parents[3]
    for folder in (place / "pipeswarm" / "locustfiles", place / "locustfiles"):
        if (path := folder / f"{target}.py").is_file():
            return path
    raise ConfigError(
        f"Pipeswarm has no locustfile for {target}",
        f"write one: pipeswarm init --target {target}; then: pipeswarm load {target} -f locustfile.py",
    )

"""Runs our own modules as processes: with ``-P``, so that no file in a locustfile's folder shadows a package."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.model.errors import ConfigError


def generate_scenarios(option: str, package: Path, count: int, seed: int, out: Path, source: str) -> None:
    """Generate `count` scenarios that fit a target's package, which the generators read with `option`.

    `source` names in errors what the package was made from.

    Raises:
        ConfigError: with the generators' own message.
    """
    command = [*module("generators"), "--n", str(count), "--seed", str(seed)]
    command += [option, str(package), "-o", str(out)]
    done = run(command)
    if done.returncode:
        why = done.stderr.strip().removeprefix("error: ").replace(str(package), source)
        raise ConfigError(f"scenarios can't be generated: {why}", "give --scenarios FILE")


def run(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, in its own session: Ctrl-C in the terminal does not reach it.

    It runs in `folder` and with `environment`, or in those of this process.
    """
    return subprocess.run(  # noqa: S603  # our own module
        command, capture_output=True, text=True, check=False, start_new_session=True, cwd=folder, env=environment
    )


def what_kubeconfig_gives(*what: str) -> list[str]:
    """The command that prints it: see `harness.collectors.kubernetes.account`."""
    return [*module("harness.collectors.kubernetes.account"), *what]


def token_command(context: str, server: str = "") -> tuple[str, ...]:
    """The command that prints the bearer token of a context of the kubeconfig; an exec plugin is asked again.

    With `server` it fails if the context leads to another API server by then.
    """
    return tuple(what_kubeconfig_gives("token", context, server))


def module(name: str) -> list[str]:
    """The command that runs one of our own modules."""
    return [sys.executable, "-P", "-m", name]

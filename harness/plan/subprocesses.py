"""Modules of ours as processes: started with ``-P``, so that no file beside a locustfile hides a package."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import ConfigError


def generate_scenarios(option: str, package: Path, count: int, seed: int, out: Path) -> None:
    """Let the generators make `count` scenarios that fit a target's package, which they read with `option`.

    Raises:
        ConfigError: the generators can't, with their own words.
    """
    command = [*module("generators"), "--n", str(count), "--seed", str(seed)]
    command += [option, str(package), "-o", str(out)]
    done = run(command)
    if done.returncode:
        raise ConfigError(
            f"no scenarios could be generated: {done.stderr.strip().removeprefix('error: ')}", "give --scenarios FILE"
        )


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, in a session of its own: a Ctrl-C in the terminal is not for it."""
    return subprocess.run(  # noqa: S603  # our own module
        command, capture_output=True, text=True, check=False, start_new_session=True
    )


def module(name: str) -> list[str]:
    """The command that runs a module of ours."""
    return [sys.executable, "-P", "-m", name]

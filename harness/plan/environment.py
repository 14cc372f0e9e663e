"""The environment of this process. No other module of the product reads it."""

import os
from collections.abc import Mapping
from pathlib import Path

from harness.targets.bearer import read_token


def platform_host(variable: str) -> str:
    """The platform's address in `variable`, such as ``KF_PIPELINES_ENDPOINT``; "" if it is not set."""
    return os.environ.get(variable, "")


def bearer_token(file: str) -> str:
    """The bearer token in `file`, or in ``PIPESWARM_TOKEN`` if `file` is ""; "" if there is none.

    Raises:
        ConfigError: the file can't be read.
    """
    return read_token(file, os.environ)


def cluster_secret() -> str:
    """The secret that a master and its workers share; "" if there is none."""
    return os.environ.get("PIPESWARM_CLUSTER_SECRET", "")


def variables() -> Mapping[str, str]:
    """All variables, for the parsers of other tools' conventions (``AWS_…``)."""
    return os.environ


def kubeconfig() -> str | None:
    """The value of ``KUBECONFIG``."""
    return os.environ.get("KUBECONFIG")


def github_summary() -> Path | None:
    """The summary page of a GitHub job; none outside of GitHub."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(path) if path else None


def can_redraw() -> bool:
    """Whether a terminal can move its cursor back: one of ``TERM=dumb`` can't."""
    return os.environ.get("TERM") != "dumb"


def python_path(folder: str) -> str:
    """``PYTHONPATH`` for a child process that also imports from `folder`."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), folder)))


def for_child(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child process: this one with `changes`."""
    return {**os.environ, **changes}

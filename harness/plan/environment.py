"""The environment of this process. No other module of the product reads it, but for what a shell asks to complete."""

import argparse
import json
import os
import site
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.model.errors import ConfigError
from harness.plan import http_proxy
from harness.plan.http_proxy import Proxy
from harness.plan.options import CREDENTIALS
from harness.plan.subprocesses import token_command
from harness.targets.credentials import Credentials

_FALSE = frozenset({"0", "f", "false"})  # as Go's strconv.ParseBool reads them
_HANDED = "PIPESWARM_CREDENTIALS"
_SETTINGS = ("ARGO_", "KF_", "KUBE", "LOCUST_", "PIPESWARM_")  # prefixes of variables


def platform_host(variable: str) -> str:
    """The platform's address in `variable`, such as ``KF_PIPELINES_ENDPOINT``; "" if it is not set.

    Argo's CLI reads ``ARGO_SERVER`` without a scheme, which ``ARGO_SECURE`` says, and a path from ``ARGO_BASE_HREF``.
    """
    host = os.environ.get(variable, "")
    if variable == "ARGO_SERVER" and host:
        scheme = "http" if os.environ.get("ARGO_SECURE", "").lower() in _FALSE else "https"
        return f"{scheme}://{host}/{os.environ.get('ARGO_BASE_HREF', '').strip('/')}".rstrip("/")
    return host


def is_on(variable: str) -> bool:
    """Whether the variable of a switch turns it on, by the words that Locust takes for its own."""
    return os.environ.get(variable, "").lower() in {"1", "on", "yes", "true"}


def default_namespace(platform: Any) -> str:
    """The namespace that the platform's own tools use where neither an option nor the manifest names one; "" for none.

    As in Argo's CLI: https://github.com/argoproj/argo-workflows/blob/main/cmd/argo/commands/client/conn.go
    """
    return os.environ.get(getattr(platform, "NAMESPACE_VARIABLE", ""), "")


def verifies_tls(given: argparse.Namespace, platform: Any, host: str) -> bool:
    """Whether the platform's certificate is checked: not with ``--insecure``, nor where its own tools don't check it.

    The variable counts only for the `host` that the environment names, and only as ``true``, as for Argo's CLI.
    """
    skips = os.environ.get(getattr(platform, "INSECURE_VARIABLE", "")) == "true"
    return not getattr(given, "insecure", False) and not (skips and host == platform_host(platform.HOST_VARIABLE))


def credentials(given: argparse.Namespace, platform: Any) -> Credentials:
    """The credentials that the command line and the environment give, or those of the process that started this one.

    Where the options name no file, the variables of the platform's own tools may. The token is never an option's value,
    which process lists show.

    Raises:
        ConfigError: two options exclude each other, or one can't be parsed.
    """
    if handed := os.environ.get(_HANDED):
        raw = json.loads(handed)
        headers = tuple((name, value) for name, value in raw["headers"])
        return Credentials(**{**raw, "headers": headers, "token_command": tuple(raw["token_command"])})
    named = {option.name: option.read(getattr(given, option.dest, None)) for option in CREDENTIALS}
    if named["kubeconfig-token"] and named["token-file"]:
        raise ConfigError("--kubeconfig-token and --token-file exclude each other", "give one of them")
    if named["client-key"] and not named["client-certificate"]:
        raise ConfigError("--client-key belongs to a certificate", "give --client-certificate, too")
    command = token_command(getattr(given, "kube_context", "") or "") if named["kubeconfig-token"] else ()
    for name, variable in getattr(platform, "FILE_VARIABLES", {}).items():
        named[name] = named[name] or os.environ.get(variable, "")
    of_platform = os.environ.get(getattr(platform, "TOKEN_VARIABLE", ""), "").removeprefix("Bearer ")  # Argo's way
    token = os.environ.get("PIPESWARM_TOKEN", of_platform)  # an empty one is given, too
    return Credentials(
        token="" if command or named["token-file"] else token, token_command=command,
        token_file="" if command else named["token-file"], headers=named["header"],
        cookie_file=named["cookie-file"], certificate=named["client-certificate"], key=named["client-key"],
        authorities=named["ca-file"],
    )  # fmt: skip


def handing(credentials: Credentials) -> dict[str, str]:
    """What gives a child process these credentials, and no others that it might find."""
    return {_HANDED: json.dumps(asdict(credentials))}


def cluster_secret() -> str:
    """The secret that a master and its workers share; "" if there is none."""
    return os.environ.get("PIPESWARM_CLUSTER_SECRET", "")


def variables() -> Mapping[str, str]:
    """All variables, for the parsers of other tools' conventions (``AWS_…``)."""
    return os.environ


def proxy_for(address: str) -> Proxy | None:
    """The HTTP proxy for requests to `address`; see `harness.plan.http_proxy`.

    Raises:
        ConfigError: the variable names none that can be used.
    """
    return http_proxy.proxy_for(address, os.environ)


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


def keep_grpc_from_forks() -> None:
    """Let gRPC, which ``--otel`` loads into this process, do nothing when processes are started: it aborts some."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")


def for_child(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child process: this one with `changes`."""
    return {**os.environ, **changes}


def without_settings(home: str) -> dict[str, str]:
    """The environment of a child process that no setting leads to a platform, nor a file in the user's own home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {**kept, "HOME": home, "PYTHONUSERBASE": site.getuserbase()}  # packages may be in the old one

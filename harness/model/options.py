"""Options as values, so that Locust's command line and web form and the verbs of ``pipeswarm`` share one definition.

Locust's form gives every value back as text, so an option's value is a text until somebody understands it.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

# name, default, help, and what else argparse and Locust's form should know.
Option = tuple[str, str | bool, str, Mapping[str, Any]]


class Join(argparse._AppendAction):  # noqa: SLF001  # by this class configuration files tell what may be a list
    """An option that may be given several times; the texts are joined, as the web form would hold them.

    It is an appending one, so that a configuration file may give a list.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  # argparse's signature
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002  # argparse's signature
    ) -> None:
        """Add one text."""
        given = getattr(namespace, self.dest, "") or ""
        setattr(namespace, self.dest, f"{given}; {values}" if given else values)


def several(text: str) -> tuple[str, ...]:
    """The texts that `Join` joined."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


_HIDDEN: Mapping[str, Any] = {"include_in_web_ui": False}
# What the observer observes, and how it is reached, beside a load or without one.
OBSERVING: tuple[Option, ...] = (
    ("platform-namespace", "", "namespaces of the platform itself (kubeflow)", {"action": Join}),
    ("kube-context", "", "context of the kubeconfig to observe the cluster with", _HIDDEN),
    ("kube-requests", "20/s", "bound on requests to the Kubernetes API", _HIDDEN),
    ("prometheus", "", "address of a Prometheus to collect the platform's metrics from", _HIDDEN),
    ("metric-profile", "", "what to ask it for (default: all profiles that fit)", {**_HIDDEN, "action": Join}),
    ("metrics", "", "a /metrics page to scrape, as PROFILE=URL", {**_HIDDEN, "action": Join}),
    ("store-probe", "", "bucket that may be written to, to see whether the artifact store is full: s3://NAME", _HIDDEN),
    ("insecure", False, "check no certificates: the platform's, the Prometheus's", {"action": "store_true"}),
    ("redact", "", "parameters whose values are hidden in all that is recorded", {"action": Join}),
    ("token-file", "", "file with the bearer token (or environment PIPESWARM_TOKEN)", _HIDDEN),
)

"""Names of an Argo workflow's nodes: where a node is, and which task of the pipeline it belongs to.

A name is a path: ``wf(0).root(0).train(0).executor(0)`` is the first attempt at what the task ``train`` runs, inside
the pipeline ``root``. A node that may be retried is named without the last ``(0)``; attempts, and the items of a loop
(``each(2:{"rate":1})``), add a suffix; the groups of a list of steps are ``[0]``, ``[1]`` …

KFP gives every task two nodes in the same DAG: the driver, ``train-driver``, and ``train``, in which ``executor`` runs
the user's container.

Argo writes the nodes of a large workflow compressed (``status.compressedNodes``), or keeps them in its own database
(``status.offloadNodeStatusVersion``), from where only the Argo server shows them.
"""

import base64
import gzip
import json
import re
from binascii import Error as BadEncoding
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

EXECUTOR = "executor"
DRIVER_SUFFIX = "-driver"
_SUFFIX = re.compile(r"(?:\(\d+(?::.*?)?\)|\[\d+\])(?=[.(\[]|$)")
_LAST_SUFFIX = re.compile(r"(?:\(\d+(?::[^()]*)?\)|\[\d+\])$")
_FNV_BASIS, FNV_PRIME = 0x811C9DC5, 0x01000193


def task_of_node(name: str, workflow: str) -> str:
    """The task's name in the pipeline: ``train`` where the user's container runs, ``train-driver`` for its driver.

    "main" for the node of a workflow that has only one.
    """
    parts = _SUFFIX.sub("", name.removeprefix(workflow)).strip(".").split(".")
    if len(parts) > 1 and parts[-1] == EXECUTOR:
        parts.pop()
    return parts[-1] or "main"


def parent_of_node(name: str) -> str:
    """The node that this one is an attempt, an item, or a part of; "" for the workflow's own node."""
    suffix = _LAST_SUFFIX.search(name)
    return name[: suffix.start()] if suffix else name.rpartition(".")[0]


def fnv1a(text: str, begun: int = _FNV_BASIS) -> int:
    """The 32-bit FNV-1a hash, with which Argo ends ids and names; `begun` is that of what comes before the text."""
    for byte in text.encode():
        begun = (begun ^ byte) * FNV_PRIME & 0xFFFFFFFF
    return begun


@lru_cache(2**16)
def node_id(name: str, workflow: str) -> str:
    """The id that Argo derives from a node's name: the workflow's name, and a hash."""
    return f"{workflow}-{fnv1a(name)}" if name != workflow else name


def nodes_of_status(status: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The nodes in a workflow's status by id, compressed or not.

    Raises:
        ValueError: the compressed nodes can't be read.
    """
    if status.get("nodes"):
        plain: Mapping[str, Mapping[str, Any]] = status["nodes"]
        return plain
    if not status.get("compressedNodes"):
        return {}
    try:
        text = gzip.decompress(base64.b64decode(str(status["compressedNodes"]), validate=True))
        return dict(json.loads(text))
    except (BadEncoding, OSError, EOFError, ValueError, TypeError) as error:
        raise ValueError(f"the compressed nodes can't be read: {error}") from error


def is_offloaded(status: Mapping[str, Any]) -> bool:
    """Whether Argo keeps the nodes in its own database."""
    return bool(status.get("offloadNodeStatusVersion")) and not (status.get("nodes") or status.get("compressedNodes"))

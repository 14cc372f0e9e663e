"""Why the nodes of an Argo workflow failed or wait, from the workflow's status.

KFP's API says only that a run failed; the reason is in the messages of the workflow's nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
from harness.model.argo_nodes import nodes_of_status, task_of_node

_POD = "Pod"
# Phases of nodes that can have a reason; those of skipped nodes say why there was nothing to do.
_TELLING = frozenset({"Failed", "Error", "Pending", "Running"})


@dataclass(frozen=True, slots=True)
class NodeMessage:
    """What one node of a workflow says.

    Attributes:
        task: the step's name in the pipeline; "" for the workflow as a whole.
        phase: Argo's: Failed, Error, Pending or Running.
        message: as Argo writes it.
        ended_at: UTC ns; none while the node has not ended.
    """

    task: str
    phase: str
    message: str
    ended_at: int | None


def node_messages(workflow: Manifest) -> list[NodeMessage]:
    """The messages of the nodes that are pods, else those of other nodes, else that of the workflow; each once.

    Groups and retries repeat the messages of their pods.

    Raises:
        ValueError: the compressed nodes can't be read.
    """
    status = workflow.get("status") or {}
    nodes = [node for node in nodes_of_status(status).values() if node.get("message") and node.get("phase") in _TELLING]
    name = str(workflow["metadata"]["name"])
    of_pods = [node for node in nodes if node.get("type") == _POD]
    found = [_message(name, node) for node in of_pods or nodes]
    if not found and status.get("message"):
        found = [NodeMessage("", str(status.get("phase") or ""), str(status["message"]), _at(status))]
    return list(dict.fromkeys(found))


def _message(workflow: str, node: Mapping[str, Any]) -> NodeMessage:
    task = task_of_node(str(node.get("name") or ""), workflow)
    return NodeMessage(task, str(node["phase"]), str(node["message"]).strip(), _at(node))


def _at(dated: Mapping[str, Any]) -> int | None:
    ended = stamp(dated.get("finishedAt"))
    return ended.at if ended else None

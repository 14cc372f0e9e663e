"""Whether each step of a pipeline fits some node, before anything runs."""

from collections.abc import Sequence

from harness.model.cluster import NodeOffer
from harness.model.errors import ConfigError
from harness.model.units import counted, format_bytes
from harness.prepare.changes import platform_of
from harness.prepare.steps import Document
from harness.simulator.cluster.shapes import Shape, admits, allocatable, labels_of, taints_of
from harness.simulator.profile import Profile, Taint
from harness.simulator.workflows.graph import EXECUTOR, flatten


def demand_fit(documents: Sequence[Document], offers: Sequence[NodeOffer], where: str) -> None:
    """Demand that a node that may take a step has room for its request, once the node is empty.

    Where no node may take a step, nothing is said: its pool may have no nodes now. Where a run's parameter chooses the
    pool, that of its default counts.

    Args:
        documents: of the compiled pipeline.
        offers: the nodes.
        where: names them in errors.

    Raises:
        ConfigError: a step requests more than each of them offers, or the pipeline can't run.
        LookupError: a part of the documents is missing.
    """
    for task, shape in _steps(documents):
        open_to = [offer for offer in offers if admits(offer.labels, tuple(Taint(*t) for t in offer.taints), shape)]
        if open_to and not any(_has_room(offer, shape) for offer in open_to):
            offered = "; ".join(dict.fromkeys(f"{offer.pool}: {_shown(*_of(offer))}" for offer in open_to))
            wanted = _shown(shape.cpu, shape.memory, shape.gpu)
            raise ConfigError(
                f"step {task}: its request of {wanted} is above every node of {where} that it may run on ({offered})",
                "request less, or choose a pool with larger nodes",
            )


def offers_of(profile: Profile) -> list[NodeOffer]:
    """One node of each pool of a simulated platform."""
    found = []
    for pool in profile.pools:
        cpu, memory, gpus = allocatable(pool)
        taints = tuple((taint.key, taint.value, taint.effect) for taint in taints_of(pool))
        found.append(NodeOffer(pool.name, labels_of(pool), taints, cpu / 1000, memory, gpus))
    return found


def _steps(documents: Sequence[Document]) -> list[tuple[str, Shape]]:
    spec, platform = documents[0], platform_of(documents[1] if len(documents) > 1 else {})
    inputs = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    defaults = {name: given["defaultValue"] for name, given in inputs.items() if "defaultValue" in given}
    plans = flatten(spec, platform, defaults, 1).plans
    return [(plan.task, plan.container.shape) for plan in plans if plan.role == EXECUTOR]


def _of(offer: NodeOffer) -> tuple[int, float, float]:
    return round(offer.cpu * 1000), offer.memory, offer.gpus


def _has_room(offer: NodeOffer, shape: Shape) -> bool:
    cpu, memory, gpus = _of(offer)
    return offer.virtual or (cpu >= shape.cpu and memory >= shape.memory and gpus >= shape.gpu)


def _shown(cpu: int, memory: float, gpus: float) -> str:
    parts = [f"{cpu / 1000:g} cores"] if cpu else []
    parts += [format_bytes(memory)] if memory else []
    return " and ".join(parts + ([counted(gpus, "GPU")] if gpus else []))

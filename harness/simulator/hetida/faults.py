"""What breaks on installations of hetida designer."""

from collections.abc import Callable, Mapping

from harness.simulator.hetida.service import Service


def _adapter_slow(service: Service, strength: float) -> None:
    for adapter in service.adapters.values():
        adapter.slowdown = 1 + 9 * strength


def _adapter_errors(service: Service, strength: float) -> None:
    for adapter in service.adapters.values():
        adapter.error_rate = min(1.0, 0.2 * strength)


def _slow_worker(service: Service, strength: float) -> None:
    """All workers of one replica: its node is a slow or busy one."""
    for worker in service.replicas[0].workers:
        worker.slowdown = 1 + 4 * strength


def _lb_imbalance(service: Service, strength: float) -> None:
    service.favoured = min(1.0, 0.6 * strength)


Inject = Callable[[Service, float], None]
# name → (title, what it does)
FAULTS: Mapping[str, tuple[str, Inject]] = {
    "adapter-slow": ("adapters take several times longer", _adapter_slow),
    "adapter-errors": ("adapters answer part of the requests with errors", _adapter_errors),
    "slow-worker": ("one runtime replica computes slowly", _slow_worker),
    "lb-imbalance": ("the load balancer gives most executions to one replica", _lb_imbalance),
}

"""Faults of hetida designer installations."""

from collections.abc import Callable, Mapping

from harness.simulator.hetida.service import Service


def _adapter_slow(service: Service, strength: float) -> None:
    for adapter in service.adapters.values():
        adapter.slowdown = 1 + 9 * strength


def _adapter_errors(service: Service, strength: float) -> None:
    for adapter in service.adapters.values():
        adapter.error_rate = min(1.0, 0.2 * strength)


def _slow_worker(service: Service, strength: float) -> None:
    """All workers of one replica, as on a slow or busy node."""
    for worker in service.replicas[0].workers:
        worker.slowdown = 1 + 4 * strength


def _lb_imbalance(service: Service, strength: float) -> None:
    service.favoured = min(1.0, 0.6 * strength)


Inject = Callable[[Service, float], None]
# name → (title, injection)
FAULTS: Mapping[str, tuple[str, Inject]] = {
    "adapter-slow": ("adapters take several times as long", _adapter_slow),
    "adapter-errors": ("adapters answer some requests with errors", _adapter_errors),
    "slow-worker": ("one runtime replica computes slowly", _slow_worker),
    "lb-imbalance": ("the load balancer sends most executions to one replica", _lb_imbalance),
}

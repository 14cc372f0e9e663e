"""CPU use of the runtime's replicas, by windows."""

import pytest

from harness.simulator.engine.events import EventLoop
from harness.simulator.hetida.execution import Job, Work
from harness.simulator.hetida.service import ReplicaUsage, Service
from harness.simulator.profile import Hetida, Runtime


def test_each_window_tells_the_cores_used_in_it_on_average():
    loop = EventLoop()
    service = Service(loop, Hetida(runtime=Runtime(nodes=2, replicas=2, workers=1, parse_s=0.0)), "1")
    service.favoured = 1.0
    usage = ReplicaUsage(loop, service)
    over: list[Job] = []
    loop.at(5.0, service.run, Work(compute_s=20.0), over.append)
    loop.run(61.0)
    assert len(over) == 1
    found = list(usage.samples(25.0))
    assert [(at, index) for at, index, _ in found] == [(15.0, 0), (15.0, 1), (30.0, 0), (30.0, 1)]
    assert [cores for _, _, cores in found] == pytest.approx([10 / 15, 0.0, 10 / 15, 0.0])

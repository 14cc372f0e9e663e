"""Throughput that others published for Argo, from their settings: 3.5.4, one-pod workflows with podGC.

Source: CNOE, Argo Workflows Controller Scalability Testing on Amazon EKS (2024), experiments 1 to 3. The pods run for
more than a requeue time there: without a queue, each workflow is updated three times.

They ran on machines of two CPUs (m5.large), which all reconciliations share.
"""

from statistics import fmean

import pytest

from harness.simulator.engine.distributions import fixed
from harness.simulator.platform import Platform
from harness.simulator.profile import Controller
from harness.simulator.workflows.workflow import Workflow
from tests.support.measured import ONE_POD, platform

pytestmark = pytest.mark.soak

COUNT = 5000
KEEPS_UP_S = 2.0  # of arrivals may wait


def started(count: int, per_s: float, **settings: object) -> tuple[Platform, list[Workflow]]:
    controller = Controller(argo="3.5", error_retries=0, driver=fixed(12.0), cpu=2.0, **settings)  # type: ignore[arg-type]
    here, workflows = Platform(platform(controller=controller)), []

    def create(number: int) -> None:
        name = f"hello-{number}"
        workflows.append(Workflow(name, name, "argo", graph=ONE_POD, parameters={}, created=here.loop.now))
        here.controller.add(workflows[-1])

    for number in range(count):
        here.loop.at(number / per_s, create, number)
    return here, workflows


@pytest.mark.parametrize(("qps", "minutes"), [(20.0, 18.0), (30.0, 12.0), (40.0, 8.0), (50.0, 6.0)])
def test_five_thousand_workflows_at_once(qps: float, minutes: float) -> None:
    here, workflows = started(COUNT, COUNT / 50, qps=qps, burst=int(qps) + 10)
    while len(workflows) < COUNT or any(not each.over for each in workflows):
        here.loop.run(here.loop.now + 5)
    assert max(each.finished or 0.0 for each in workflows) / 60 == pytest.approx(minutes, rel=0.15)


@pytest.mark.parametrize(
    ("qps", "workers", "per_minute"),
    [
        (20.0, 32, 270),
        (20.0, 64, 300),
        (20.0, 96, 330),
        (20.0, 128, 360),
        (30.0, 32, 420),
        (40.0, 32, 540),
        (50.0, 32, 570),
    ],
)
def test_workflows_a_minute_that_the_controller_keeps_up_with(qps: float, workers: int, per_minute: int) -> None:
    """A published rate was the last of steps of 30 that left no queue."""
    queues = []
    for rate in (0.85 * per_minute, 1.15 * per_minute + 30):
        here, _ = started(round(8 * rate), rate / 60, qps=qps, burst=int(qps) + 10, workers=workers)
        depths = []
        for second in range(6 * 60, 8 * 60, 5):  # the queue comes and goes: its mean in the last minutes
            here.loop.run(second)
            depths.append(here.controller.queue.depth)
        queues.append(fmean(depths) / (rate / 60))
    assert queues[0] <= KEEPS_UP_S < queues[1]

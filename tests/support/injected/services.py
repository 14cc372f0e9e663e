"""Faults of adapters, and tenants that disturb each other."""

from dataclasses import replace

from harness.model.phases import RUNNING
from tests.support.injected.loads import executed
from tests.support.timelines import Story


def adapter_errors() -> Story:
    words = ("SENDING_DATA_TO_ADAPTERS · AdapterHandlingException: 503", "HTTP 500 · Internal Server Error")
    return executed(fails=lambda seq: words[seq % 2] if seq % 5 < 2 else "")


def noisy_tenants(*, slow: float = 3.0, batch: int = 8, steady: int = 24, own_scenario: bool = False) -> Story:
    """Two tenants send a run every 10 s; in the second half a third has `batch` runs in flight, and theirs slow down.

    With `own_scenario` the runs of the second half are of a scenario of their own.
    """
    story = Story(schedule={"name": "constant"})
    half_s = steady * 5.0

    def run(tenant: str, scenario: str, due: float, took: float) -> None:
        name = story.submit(story.intended, due=due)
        scenario_id = f"{tenant}-{scenario}"
        row = story.records[-1]
        story.records[-1] = replace(row, tenant=tenant, scenario_id=scenario_id, run_name=f"{scenario_id}-{scenario}")
        story.run(name, due, due + took)
        story.pod(name, "train", "node-1", (RUNNING, due + 0.1, due + took))
        story.intended += 1

    for k in range(steady):
        late = k * 10.0 >= half_s
        scenario = "large" if late and own_scenario else "small"
        run(("web", "reports")[k % 2], scenario, k * 10.0, 8.0 * (slow if late else 1.0) + k % 7 / 10)
    for k in range(batch * steady // 2):
        run("batch", "nightly", half_s + k * 10.0 / batch - 5.0, 10.0)
    return story

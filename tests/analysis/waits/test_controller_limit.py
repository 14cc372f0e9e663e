"""What holds the workflow controller up: the decision, as a table."""

import pytest

from harness.analysis.waits.controller_limit import Limit, Signs

IDLE, BUSY = {"idle": True, "late_start": False}, {"idle": False, "late_start": True}


@pytest.mark.parametrize(
    ("signs", "runs", "limit"),
    [
        # Argo 4.1 tells the waits for its client's limit: they decide, whatever else waits.
        (Signs(token_s=0.5, queued_s=9.0, work_s=3.0), BUSY, Limit.REQUESTS),
        (Signs(token_s=0.4, queued_s=9.0, work_s=1.1), BUSY, Limit.WORKERS),
        (Signs(token_s=0.4, queued_s=1.0, work_s=1.1), IDLE, Limit.LOOKS),
        (Signs(token_s=0.4, queued_s=1.0, work_s=1.1), BUSY, Limit.UNKNOWN),
        (Signs(token_s=9.0, pod_token_s=0.5, queued_s=9.0), BUSY, Limit.POD_RATE),
        (Signs(token_s=0.0, queued_s=9.0, work_s=3.0, even=True), BUSY, Limit.UNKNOWN),  # workers short of CPU
        # Before, an even rate and workers that take long for an update do.
        (Signs(queued_s=9.0, work_s=2.1, even=True), BUSY, Limit.REQUESTS),
        (Signs(queued_s=9.0, work_s=2.1), BUSY, Limit.UNKNOWN),
        (Signs(queued_s=9.0, work_s=1.1, even=True), BUSY, Limit.WORKERS),
        (Signs(queued_s=9.0), BUSY, Limit.WORKERS),
        # Without metrics, the nodes of workflows and their pods.
        (Signs(late_s=1.0), BUSY, Limit.REQUESTS),
        (Signs(late_s=0.0), BUSY, Limit.WORKERS),
        (Signs(late_s=0.0), IDLE, Limit.LOOKS),
        (Signs(), IDLE, Limit.LOOKS),
        (Signs(), BUSY, Limit.UNKNOWN),
    ],
)
def test_the_strongest_sign_decides(signs, runs, limit):
    assert signs.limit(**runs) is limit

"""What the database's errors cost: a full disk would have rejected what something else rejected meanwhile."""

import pytest

from harness.detectors import api_errors, db_connections, db_full
from harness.model.records import Outcome
from tests.support.timelines import Story

_FULL = "InternalServerError: Failed to store run to table: Error 1114 (HY000): The table 'run_details' is full"
_OTHER = "InternalServerError: Failed to create a workflow: rpc error: code = Internal"
_CONNECTIONS = "InternalServerError: Failed to store run to table: Error 1040: Too many connections"


def answered(*answers: str) -> Story:
    """Arrivals, one a second, of which accepted ones ("") succeed."""
    story = Story(intended=len(answers))
    for seq, error in enumerate(answers):
        if error:
            story.submit(seq, due=float(seq), outcome=Outcome.REJECTED, status=500, error=error)
        else:
            story.run(story.submit(seq, due=float(seq)), float(seq), seq + 30.0)
    return story


@pytest.mark.parametrize(
    ("answers", "connections", "full"),
    [
        # Of the others, so many ended well, or were rejected for another reason.
        (("", _FULL, "", _CONNECTIONS), 1 / 4 * 2 / 3, 1 / 4 * 2 / 3),  # not full in between: each by itself
        (("", _CONNECTIONS, _FULL, _CONNECTIONS), None, 3 / 4),  # none was accepted since: all are the disk's
        ((_CONNECTIONS, "", _CONNECTIONS, _FULL), 2 / 4 * 1 / 2 * 1 / 2, 2 / 4 * 1 / 2),
        (("", "", _CONNECTIONS, _FULL), None, 2 / 4),
    ],
)
def test_a_full_disk_would_have_rejected_all_since_the_last_acceptance(answers, connections, full, tmp_path):
    timeline = answered(*answers).timeline(tmp_path)
    (crowded,), (finding,) = db_connections.detect(timeline), db_full.detect(timeline)
    assert finding.severity == pytest.approx(0.5 + full / 2)
    assert f"{answers.count(_FULL) / 4:.0%} of the runs failed" in finding.title
    if connections is None:
        assert crowded.severity < 0.5
    else:
        assert crowded.severity == pytest.approx(0.5 + connections / 2)


def test_other_errors_of_the_api_server_cost_what_the_disk_would_not_have_rejected(tmp_path):
    before, after = answered("", _OTHER, "", ""), answered("", "", _OTHER, _FULL)
    (alone,), (beside,) = (
        api_errors.detect(story.timeline(tmp_path / str(k))) for k, story in enumerate((before, after))
    )
    assert alone.severity == pytest.approx(0.5 + 0.5 / 4)
    assert beside.severity < 0.5

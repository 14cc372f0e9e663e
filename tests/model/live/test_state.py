import pytest

from harness.model.live.state import Counts, LiveLoad, Stage

COUNTS = Counts(200, accepted=190, rejected=10, done=80, failed=20)


@pytest.mark.parametrize(
    "load",
    [
        LiveLoad(),
        LiveLoad(Stage.PREPARING),
        LiveLoad("dispatching", "burst (open model)", COUNTS, awaited=3, lag_s=0.1, lag_p99_s=None),
        LiveLoad(
            "draining",
            "burst (open model)",
            COUNTS,
            lag_s=0.1,
            lag_p99_s=0.2,
            succeeded_per_hour=3672.0,
            eta_s=75.0,
            ends_age_s=4.5,
        ),
    ],
)
def test_the_live_state_survives_its_json(load):
    assert LiveLoad.from_mapping({"at": 1, **load.to_mapping()}) == load


def test_what_was_sent_includes_what_awaits_its_answer():
    mapping = LiveLoad(Stage.DISPATCHING, "burst", COUNTS, awaited=3).to_mapping()
    assert {name: mapping[name] for name in ("stage", "sent", "awaited", "in_flight")} == {
        "stage": "dispatching", "sent": 203, "awaited": 3, "in_flight": 90,
    }  # fmt: skip
    assert "eta_s" not in mapping

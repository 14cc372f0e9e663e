import pytest

from harness.model import Concurrency, ConfigError, Level


@pytest.mark.parametrize(
    ("schedule", "changes"),
    [
        (Concurrency((Level(3, 60.0),), 2.0), [(0.0, 1), (0.5, 1), (1.0, 1)]),
        (Concurrency((Level(2),), 1.0, runs=5), [(0.0, 1), (1.0, 1)]),
        (
            Concurrency((Level(2, 10.0), Level(4, 10.0), Level(1, 10.0)), 1.0),
            [(0.0, 1), (1.0, 1), (10.0, 1), (11.0, 1), (20.0, -1), (21.0, -1), (22.0, -1)],
        ),
        # A level that ends before it is reached: the next one begins where this one got to.
        (Concurrency((Level(100, 2.0), Level(1, 5.0)), 1.0), [(0.0, 1), (1.0, 1), (2.0, -1)]),
    ],
)
def test_slots_are_added_and_removed_at_the_spawn_rate(schedule, changes):
    assert list(schedule.changes()) == changes


@pytest.mark.parametrize(
    "make",
    [
        lambda: Concurrency(()),
        lambda: Concurrency((Level(0, 60.0),)),
        lambda: Concurrency((Level(-1, 60.0), Level(3, 60.0))),
        lambda: Concurrency((Level(3),)),
        lambda: Concurrency((Level(3), Level(4, 60.0))),
        lambda: Concurrency((Level(3, 0.0),)),
        lambda: Concurrency((Level(3, 60.0),), spawn_rate=0.0),
        lambda: Concurrency((Level(3, 60.0),), runs=0),
    ],
)
def test_impossible_levels_are_configuration_errors(make):
    with pytest.raises(ConfigError):
        make()


def test_the_manifest_says_that_it_is_closed():
    assert Concurrency((Level(3, 60.0),), 2.0).to_mapping() == {
        "name": "concurrency", "model": "closed", "spawn_rate": 2.0, "runs": None, "users": 3, "for_s": 60.0,
    }  # fmt: skip
    stages = Concurrency((Level(3, 60.0), Level(9)), 2.0, 50).to_mapping()
    assert stages["levels"] == [{"users": 3, "for_s": 60.0}, {"users": 9}]

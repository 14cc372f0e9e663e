"""When a folder of a continuous observation is over, and which are deleted."""

from pathlib import Path

import pytest

from harness.drive.continuous import Parts, superfluous

HOUR = 3600 * 10**9
MIDNIGHT = 20_000 * 24 * HOUR


@pytest.mark.parametrize(
    ("gap_s", "begun_at", "now_at", "idle_s", "size", "over"),
    [
        (None, MIDNIGHT, MIDNIGHT + 24 * HOUR - 1, None, 0, False),
        (None, MIDNIGHT, MIDNIGHT + 24 * HOUR, None, 0, True),
        (None, MIDNIGHT - 1, MIDNIGHT, 0.0, 0, True),
        (None, MIDNIGHT, MIDNIGHT + HOUR, 9999.0, 0, False),
        (60.0, MIDNIGHT - 1, MIDNIGHT + 30 * HOUR, None, 0, False),  # no run yet
        (60.0, MIDNIGHT - 1, MIDNIGHT + 30 * HOUR, 59.9, 0, False),
        (60.0, MIDNIGHT, MIDNIGHT + 1, 60.0, 0, True),
        (None, MIDNIGHT, MIDNIGHT + 1, None, 250, False),
        (None, MIDNIGHT, MIDNIGHT + 1, None, 251, True),  # a quarter of all
        (60.0, MIDNIGHT, MIDNIGHT + 1, None, 251, True),
    ],
)
def test_a_folder_is_over_at_midnight_or_after_a_gap_and_when_it_is_large(gap_s, begun_at, now_at, idle_s, size, over):
    assert Parts(gap_s, 1000).over(begun_at, now_at, idle_s, size) is over


@pytest.mark.parametrize(("most", "gone"), [(60, ""), (59, "a"), (30, "a"), (29, "ba"), (0, "cba")])
def test_the_oldest_folders_are_deleted_until_the_rest_has_room(most, gone):
    folders = [(Path("c"), 10), (Path("b"), 20), (Path("a"), 30)]
    assert superfluous(folders, most) == [Path(name) for name in gone]

"""A test as the live view sees it: the records of its run folder that were there at some instant."""

from collections.abc import Mapping

import pandas as pd

from harness.analysis.timeline import Timeline
from harness.store import RunFolder
from harness.store.tables import load

_HAPPENED = {
    "submissions": "answered_at",
    "spans": "started_at",
    "events": "at",
    "samples": "at",
    "nodes": "created_at",
}
_LATER = ("ended_at", "ready_at", "gone_at")  # unknown until then


def midway(folder: RunFolder, share: float) -> Timeline:
    """The timeline after that share of the time between the test's first and last record."""
    frames = load(folder)
    begun = min(int(frames[kind][at].min()) for kind, at in _HAPPENED.items() if frames[kind][at].notna().any())
    over = max(int(frames[kind][at].max()) for kind, at in _HAPPENED.items() if frames[kind][at].notna().any())
    return Timeline.from_frames(folder.read_plan(), until(frames, round(begun + share * (over - begun))))


def until(frames: Mapping[str, pd.DataFrame], at: int) -> dict[str, pd.DataFrame]:
    """What was recorded by `at` (UTC ns): answered submissions, what had begun, and of that no later end."""
    known = dict(frames)
    for kind, column in _HAPPENED.items():
        frame = frames[kind]
        frame = frame[(frame[column] <= at).fillna(value=False).to_numpy(dtype=bool)].reset_index(drop=True)
        ends = {name: frame[name].mask(frame[name] > at) for name in _LATER if name in frame}
        known[kind] = frame.assign(**ends)
    return known

"""The timelines of recorded runs."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from harness.analysis.timeline import Timeline
    from harness.store.newest import Newest


def timeline_of(path: Path) -> "Timeline":
    """The timeline of a run folder.

    Raises:
        ConfigError: there is none at `path`.
    """
    return timeline_in(RunFolder.open(path))


def timeline_in(folder: RunFolder, newest: "Newest | None" = None) -> "Timeline":
    """The timeline of an open run folder, or of its `newest` records, with the reasons that are kept in it."""
    from harness.analysis.timeline import Timeline
    from harness.store.reasons import kept_reasons
    from harness.store.tables import load

    return Timeline.from_frames(folder.read_plan(), load(folder, newest), kept_reasons(folder))

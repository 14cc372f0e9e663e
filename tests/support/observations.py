"""What a collector is given: an observation of a platform, in a test's run folder."""

from typing import Any

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.model import Plan
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget

PLAN = Plan("kfp", "http://x", {}, 1, 0, False)


def observation(
    folder: RunFolder, journal: Journal | None = None, *, plan: Plan = PLAN, target: Any = None, **more: Any
) -> Observation:
    """Of a KFP, if nothing else is given."""
    return Observation(
        folder=folder, journal=journal or Journal(folder.recorder()), plan=plan, target=target or KfpTarget({}),
        **{"settings": ObserverSettings(host="http://x"), **more},
    )  # fmt: skip

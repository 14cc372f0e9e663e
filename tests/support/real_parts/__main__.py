"""``make rehearse``: run the main job against the real parts at hand, and compare what it tells with what happened."""

import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.support.real_parts.checks import Check
from tests.support.real_parts.parts import Parts
from tests.support.real_parts.perform import Extras, perform, perform_on_platform
from tests.support.real_parts.scenes import ALL, FULL_NODES
from tests.support.real_parts.stage import workflow_type

_MOST_SHOWN = 300


def main() -> int:
    """0 if everything that was checked is as expected, else 1; also if there was nothing to rehearse with."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rehearsal-")))
        parts = Parts(stack, folder)
        cluster, platform = parts.cluster(), parts.platform()
        extras = Extras(parts.prometheus(), parts.store())
        for part in parts.found:
            print(f"{part.name}: {'found' if not part.missing else f'missing ({part.missing})'}")
            print(f"  {'shows' if not part.missing else 'would show'} {part.shows}")
        checks: list[Check] = []
        if cluster:
            stack.enter_context(workflow_type(cluster))
            for scene in ALL:
                checks += show(
                    scene.name,
                    perform(scene, cluster, folder / scene.name, extras if scene is FULL_NODES else Extras()),
                )
        if platform:
            checks += show("real platform", perform_on_platform(platform, folder / "platform"))
    unmet = sum(not check.met for check in checks)
    print(f"\n{len(checks)} checks, {unmet} not met" if checks else "\nnothing was rehearsed")
    return 0 if checks and not unmet else 1


def show(scene: str, checks: Iterable[Check]) -> list[Check]:
    """Print a scene's checks as a table, and return them."""
    done = list(checks)
    wide = max(len(check.what) for check in done)
    print(f"\n{scene}")
    for check in done:
        said = "as expected" if check.met else f"NOT MET: expected {_short(check.expected)}, seen {_short(check.seen)}"
        print(f"  {check.what:{wide}}  {said}", flush=True)
    return done


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


if __name__ == "__main__":
    sys.exit(main())

"""What the SDK compiled, recorded: `CURRENT` with kfp 2.17 and kfp-kubernetes 2.17, `OLDER` with 2.4 and 1.0.

`CURRENT` has a nested pipeline, a loop, a condition and an exit handler; a volume claim; and two tasks on one component.
The placement of `POOLS` (both 2.17) comes from the run's parameters ``pool``, ``taints`` and ``where``.
"""

from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).parents[1] / "prepare/data"
CURRENT, OLDER, POOLS = (_DATA / f"{name}.yaml" for name in ("kfp-2.17", "kfp-2.4", "kfp-2.17-pools"))


def documents(path: Path = CURRENT) -> list[dict[str, Any]]:
    """The documents of a compiled pipeline."""
    return list(yaml.safe_load_all(path.read_bytes()))

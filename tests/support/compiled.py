"""What the SDK compiled, recorded: `CURRENT` with kfp 2.17 and kfp-kubernetes 2.17, `OLDER` with 2.4 and 1.0.

`CURRENT` has a nested pipeline, a loop, a condition and an exit handler; a volume claim; and two tasks on one component.
"""

from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).parents[1] / "prepare/data"
CURRENT, OLDER = _DATA / "kfp-2.17.yaml", _DATA / "kfp-2.4.yaml"


def documents(path: Path = CURRENT) -> list[dict[str, Any]]:
    """The documents of a compiled pipeline."""
    return list(yaml.safe_load_all(path.read_bytes()))

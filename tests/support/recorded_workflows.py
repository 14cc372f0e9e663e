"""Workflows, pods and events of KFP runs as recorded from a real platform (tests/data/real/workflows)."""

from pathlib import Path
from typing import Any

import orjson

_FOLDER = Path(__file__).parents[1] / "data" / "real" / "workflows"
NAMES = sorted(path.stem for path in _FOLDER.glob("*.json"))


def recorded(name: str) -> dict[str, Any]:
    """One run: `workflows` are states of its Workflow, the last one last; `pods` by name; `events` in order of time.

    An event is [kind, object, field, type, reason, message, count, component].
    """
    found: dict[str, Any] = orjson.loads((_FOLDER / f"{name}.json").read_bytes())
    return found

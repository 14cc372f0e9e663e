"""The kinds of fields. A new kind is a module here with `KINDS`, and its part of the JSON Schema."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from generators.kinds.kind import Kind, KindType

__all__ = ["Kind", "KindType", "kinds"]


@cache
def kinds() -> Mapping[str, KindType]:
    """All kinds, by their names in a spec."""
    kind_types: dict[str, KindType] = {}
    for module in pkgutil.iter_modules(__path__):
        kind_types |= getattr(importlib.import_module(f"{__name__}.{module.name}"), "KINDS", {})
    return kind_types

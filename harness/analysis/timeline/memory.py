"""Results kept with the value that they follow from, and freed with it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

import pyarrow as pa


class Remembering(Protocol):
    """A value that never changes and has room for what was computed from it."""

    @property
    def memory(self) -> dict[Callable[..., Any], Any]:
        """Results by the function that computed them."""


Source = TypeVar("Source", bound=Remembering)
Result = TypeVar("Result")


def remembered(function: Callable[[Source], Result]) -> Callable[[Source], Result]:
    """Compute a function of an immutable value once for each value: detectors, tables and figures all ask.

    What that took is given back: of a large test the allocator would keep hundreds of megabytes between its results.
    """

    @wraps(function)
    def recalled(source: Source) -> Result:
        if function not in source.memory:
            source.memory[function] = function(source)
            release()
        found: Result = source.memory[function]
        return found

    return recalled


def release() -> None:
    """Give freed memory back to the system."""
    pa.system_memory_pool().release_unused()

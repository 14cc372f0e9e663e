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

    @property
    def large(self) -> bool:
        """Whether computing takes so much memory that it should go back to the system."""


Source = TypeVar("Source", bound=Remembering)
Result = TypeVar("Result")


def remembered(function: Callable[[Source], Result]) -> Callable[[Source], Result]:
    """Compute a function of an immutable value once for each value: detectors, tables and figures all ask.

    Of a large test the allocator would keep hundreds of megabytes that computing took; of others, giving them back
    takes longer than it saves.
    """

    @wraps(function)
    def recalled(source: Source) -> Result:
        if function not in source.memory:
            source.memory[function] = function(source)
            if source.large:
                release()
        found: Result = source.memory[function]
        return found

    return recalled


def release() -> None:
    """Give freed memory back to the system."""
    pa.system_memory_pool().release_unused()

"""The protocols of a kind of field and of how it is read from a spec."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from generators.block import Block
from generators.columns import Column
from harness.documents import Place

Definition = Mapping[str, Any]


class Kind(Protocol):
    """How the values of one field are drawn. Immutable: all randomness comes from the block."""

    @property
    def monotone(self) -> bool:
        """Whether the value increases with the block's `uniform()`, so that the field can be correlated."""
        ...

    @property
    def derived(self) -> bool:
        """Whether the value depends on other fields only, so that a redraw can't make it unique."""
        ...

    def inputs(self) -> frozenset[str]:
        """The names of the fields whose columns `draw` needs."""
        ...

    def draw(self, block: Block) -> Column:
        """The values of the block's rows; each depends only on its row number, the seed and the inputs."""
        ...


class Independent:
    """Defaults of the kinds that need no other field."""

    __slots__ = ()
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = False

    def inputs(self) -> frozenset[str]:
        """No other field is needed."""
        return frozenset()


class KindType(Protocol):
    """How a kind is read from a spec. `main` is the key that the short form ``{kind: value}`` sets."""

    main: str

    def read(self, definition: Definition, place: Place) -> Kind:
        """The kind that a definition describes; the schema has already been checked.

        Raises:
            ConfigError: the definition contradicts itself.
        """
        ...

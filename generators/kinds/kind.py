"""What a kind of field must offer."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from generators.block import Block
from generators.columns import Column
from generators.document import Place

Definition = Mapping[str, Any]


class Kind(Protocol):
    """How the values of one field come about. Frozen: all randomness comes from the block."""

    @property
    def monotone(self) -> bool:
        """Does the value grow with the block's `uniform()`, so that the field can be correlated with another?"""
        ...

    @property
    def derived(self) -> bool:
        """Does the value follow from other fields alone, so that drawing it again can't make it unique?"""
        ...

    def inputs(self) -> frozenset[str]:
        """The fields whose columns `draw` needs."""
        ...

    def draw(self, block: Block) -> Column:
        """The values of the block's rows; each depends on its row's number, the seed and the inputs only."""
        ...


class Independent:
    """What most kinds have in common: they need no other field."""

    __slots__ = ()
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = False

    def inputs(self) -> frozenset[str]:
        """None."""
        return frozenset()


class KindType(Protocol):
    """How a kind is read from a spec. `main` is the key that the short form ``{kind: value}`` gives."""

    main: str

    def read(self, definition: Definition, place: Place) -> Kind:
        """The kind that a definition, already checked by the schema, describes.

        Raises:
            ConfigError: the definition contradicts itself.
        """
        ...

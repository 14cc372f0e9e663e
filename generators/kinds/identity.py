"""Values that never repeat: sequence, uuid."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from generators.block import Block
from generators.columns import Column, objects
from generators.kinds.kind import Definition, Independent, Kind, KindType
from harness.documents import Place


@dataclass(frozen=True, slots=True)
class Sequence(Independent):
    """start, start + step, …; with `prefix` or `width` as text, zero-padded to `width` digits."""

    start: int = 1
    step: int = 1
    prefix: str = ""
    width: int = 0

    main: ClassVar[str] = "start"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:  # noqa: ARG003  # the schema has checked it
        """See `KindType.read`; start, step, prefix and width."""
        return cls(**{key: definition[key] for key in ("start", "step", "prefix", "width") if key in definition})

    def draw(self, block: Block) -> Column:
        """The value ``start + step * row``."""
        numbers = self.start + self.step * block.rows()
        if not self.prefix and not self.width:
            return Column(numbers)
        return Column(objects((f"{self.prefix}{number:0{self.width}}" for number in numbers.tolist()), len(block)))


@dataclass(frozen=True, slots=True)
class Uuid(Independent):
    """Random UUIDs, version 4 (RFC 9562)."""

    main: ClassVar[str] = "version"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:  # noqa: ARG003  # there are no options
        """See `KindType.read`; version 4 is the only one."""
        return cls()

    def draw(self, block: Block) -> Column:
        """122 random bits, as text."""
        raw = block.words(per_row=2).astype("<u8", copy=False).view(np.uint8).reshape(-1, 16)
        raw[:, 6] = raw[:, 6] & 0x0F | 0x40
        raw[:, 8] = raw[:, 8] & 0x3F | 0x80
        digits = raw.tobytes().hex()
        rows = (digits[k : k + 32] for k in range(0, len(digits), 32))
        return Column(objects((f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in rows), len(block)))


KINDS: dict[str, KindType] = {"sequence": Sequence, "uuid": Uuid}

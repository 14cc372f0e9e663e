"""Values that never repeat: sequence, uuid."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from generators.block import Block
from generators.columns import Column, Joined, Text, Values
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
        numbers = pl.Series(self.start + self.step * block.rows())
        if not self.prefix and not self.width:
            return Values(numbers)
        digits = numbers.cast(pl.String).str.zfill(self.width)
        return Joined((self.prefix, Text(digits)), len(block))


# Four hexadecimal digits for each 16 bits, first byte first.
_HEX = np.frombuffer(b"".join(b"%02x%02x" % (k & 255, k >> 8) for k in range(65_536)), dtype="<u4")
# 32 digits in eight fours, with dashes after the second to the fifth (RFC 9562, section 4).
_LAYOUT = np.dtype({
    "names": [*(f"four{k}" for k in range(8)), *(f"dash{k}" for k in range(4))],
    "formats": ["<u4"] * 8 + ["u1"] * 4,
    "offsets": [0, 4, 9, 14, 19, 24, 28, 32, 8, 13, 18, 23],
    "itemsize": 36,
})  # fmt: skip


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
        fours = _HEX.take(raw.view("<u2"))
        written = np.empty(len(block), dtype=_LAYOUT)
        for k in range(8):
            written[f"four{k}"] = fours[:, k]
        for k in range(4):
            written[f"dash{k}"] = ord("-")
        text = pl.Series(written.view(np.uint8).reshape(-1, 36))
        # Polars' own casts: converting 36-byte strings from NumPy takes three times as long.
        return Values(text.cast(pl.List(pl.UInt8)).cast(pl.Binary).cast(pl.String), bare=True)


KINDS: dict[str, KindType] = {"sequence": Sequence, "uuid": Uuid}

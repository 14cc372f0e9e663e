"""Sizes of an untrusted Parquet file, read from its pages before Arrow allocates what they, or the footer, claim.

Footer and page headers are structs of Thrift's compact protocol; their fields are numbered as in ``parquet.thrift`` of
the format's specification. Arrow follows any nesting of columns by recursion, and any size by an allocation.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from harness.model.errors import ConfigError

_MOST_FOOTER = 4 * 2**20  # bytes; each takes up to forty bytes of memory
_MOST_HEADER = 2**20  # bytes; it may hold the least and the greatest text of its page
_MOST_LEVELS = 10  # of structs and lists: real files have six
_LONGEST_VALUE = 64  # bytes, of a fixed length
_MAGIC = b"PAR1"
_FIX = "write the table again, with columns of text, numbers, booleans or dates"
_FIXED_LENGTH, _REPEATED, _DICTIONARY_PAGE, _DELTA_BYTE_ARRAY = 7, 2, 2, 7  # of enumerations in parquet.thrift
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12  # Thrift's types
_WHOLE_NUMBERS = (4, 5, 6)  # of 16, 32 and 64 bits

Struct = Mapping[int, Any]


def decompressed_bytes(source: BinaryIO, path: object) -> int:
    """The size of all pages when they are decompressed.

    Raises:
        ConfigError: it is no Parquet file of flat columns, or a page claims more values than it can hold.
    """
    size = source.seek(0, os.SEEK_END)
    try:
        footer = _footer(source, size)
        names = _columns(footer[2][1:])
        chunks = [chunk[3] for group in footer[4] for _, chunk in zip(names, group[1], strict=True)]
        return sum(_decompressed(page) for chunk in chunks for page in _pages(source, chunk, size))
    except (EOFError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error) or "it ends early"
        raise ConfigError(f"{path} is damaged, or no table of flat columns: {what}", _FIX) from error


def _footer(source: BinaryIO, size: int) -> Struct:
    source.seek(max(0, size - 8))
    length, magic = int.from_bytes(source.read(4), "little"), source.read(4)
    if magic != _MAGIC:
        raise ValueError("it is not a Parquet file")
    if not length <= min(size - 8, _MOST_FOOTER):
        raise ValueError(f"its footer has {length:,} bytes")
    source.seek(size - 8 - length)
    return _Thrift(source, length).struct()


def _columns(elements: Sequence[Struct]) -> set[str]:
    """The names of the columns, all of which hold single values."""
    for element in elements:
        name = element[4].decode(errors="replace")
        if element.get(5) or element.get(3) == _REPEATED or 1 not in element:
            raise ValueError(f"the column '{name}' is nested")
        if element[1] == _FIXED_LENGTH and not 0 < element.get(2, 0) <= _LONGEST_VALUE:
            raise ValueError(f"the values of the column '{name}' have {element.get(2, 0):,} bytes each")
    names = {element[4] for element in elements}
    if len(names) < len(elements):
        raise ValueError("two columns have the same name")
    return names


def _pages(source: BinaryIO, chunk: Struct, size: int) -> Iterator[Struct]:
    """The headers of a column's pages: those that Arrow reads."""
    begin = min((offset for offset in (chunk[9], chunk.get(11, 0)) if offset > 0), default=0)  # of no rows: no pages
    end = begin + chunk[7]
    if not begin <= end <= size:
        raise ValueError("a column is beyond the end of the file")
    source.seek(begin)
    while source.tell() < end:
        page = _Thrift(source, _MOST_HEADER).struct()
        yield page
        source.seek(page[3], os.SEEK_CUR)


def _decompressed(page: Struct) -> int:
    size, compressed = page[2], page[3]
    header = page.get(5) or page.get(7) or page.get(8) or {}
    if size < 0 or compressed < 0:
        raise ValueError("a page has a negative size")
    if page[1] == _DICTIONARY_PAGE and not 0 <= header[1] <= size:
        raise ValueError(f"a dictionary of {header[1]:,} values has {size:,} bytes")
    if header.get(4 if 8 in page else 2) == _DELTA_BYTE_ARRAY:
        # Each text repeats the beginning of the one before: the page's size does not bound theirs.
        raise ValueError("texts are encoded as differences (DELTA_BYTE_ARRAY)")
    return int(size)


class _Thrift:
    """Reads values of Thrift's compact protocol, from at most `left` bytes."""

    def __init__(self, source: BinaryIO, left: int) -> None:
        self._source = source
        self._left = left

    def struct(self, level: int = 0) -> Struct:
        """The values of the fields by their numbers, in the order of the specification's types."""
        if level > _MOST_LEVELS:
            raise ValueError(f"more than {_MOST_LEVELS} levels")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole_number()
            fields[number] = (head & 15) == _TRUE if (head & 15) in {_TRUE, _FALSE} else self._value(head & 15, level)
        return fields

    def _value(self, kind: int, level: int) -> Any:
        if kind in _WHOLE_NUMBERS:
            return self._whole_number()
        if kind in {_TRUE, _FALSE, _BYTE}:  # in a list a boolean takes a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(level + 1)
        if kind in {_LIST, _SET} and level < _MOST_LEVELS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, level + 1) for _ in range(count)]
        raise ValueError("its metadata can't be read")  # Parquet has no maps

    def _whole_number(self) -> int:
        zigzag = self._varint()
        return zigzag >> 1 ^ -(zigzag & 1)

    def _varint(self) -> int:
        value = 0
        for place in range(0, 64, 7):
            part = self._byte()
            value |= (part & 127) << place
            if part < 128:
                return value
        raise ValueError("its metadata can't be read")

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, count: int) -> bytes:
        self._left -= count
        if self._left < 0:
            raise EOFError
        found = self._source.read(count)
        if len(found) < count:
            raise EOFError
        return found

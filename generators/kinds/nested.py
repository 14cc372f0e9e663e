"""JSON documents: nested objects and lists of fixed values, other fields, and values drawn in place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
import orjson

from generators.block import Block
from generators.columns import Column, join, with_missing
from generators.kinds.kind import Definition, Kind, KindType
from generators.kinds.text import Template, parse_template
from harness.documents import Place

_MOST_PIECES = 10_000
Part = str | Column  # a column is of text


class _Piece(Protocol):
    """A piece of the document: JSON text for every row, or the same text for all."""

    def inputs(self) -> frozenset[str]:
        """The names of the fields that it needs."""
        ...

    def render(self, block: Block) -> list[Part]:
        """Parts of text whose concatenation is the JSON of this piece; none is missing in any row."""
        ...


def _inputs(pieces: Iterable[_Piece]) -> frozenset[str]:
    return frozenset().union(*(piece.inputs() for piece in pieces))


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A value that is the same in every row."""

    text: str

    def inputs(self) -> frozenset[str]:
        return frozenset()

    def render(self, block: Block) -> list[Part]:  # noqa: ARG002  # the same for every block
        return [self.text]


@dataclass(frozen=True, slots=True)
class _Reference:
    """Another field's value, with its type."""

    name: str

    def inputs(self) -> frozenset[str]:
        return frozenset({self.name})

    def render(self, block: Block) -> list[Part]:
        return [block.columns[self.name].json()]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A value drawn in place; `path` distinguishes its stream from others of the same document."""

    kind: Kind
    nullable: float
    path: str

    def inputs(self) -> frozenset[str]:
        return self.kind.inputs()

    def render(self, block: Block) -> list[Part]:
        inner = block.at(block.path + self.path)
        drawn = self.kind.draw(inner)
        if self.nullable:
            drawn = with_missing(drawn, inner.uniform("null") < self.nullable)
        return [drawn.json()]


@dataclass(frozen=True, slots=True)
class _Object:
    """An object with fixed keys."""

    items: tuple[tuple[str, _Piece], ...]

    def inputs(self) -> frozenset[str]:
        return _inputs(piece for _, piece in self.items)

    def render(self, block: Block) -> list[Part]:
        parts: list[Part] = []
        for index, (key, piece) in enumerate(self.items):
            parts += [("," if index else "{") + orjson.dumps(key).decode() + ":", *piece.render(block)]
        return [*parts, "}"] if self.items else ["{}"]


@dataclass(frozen=True, slots=True)
class _Array:
    """A list of fixed length."""

    items: tuple[_Piece, ...]

    def inputs(self) -> frozenset[str]:
        return _inputs(self.items)

    def render(self, block: Block) -> list[Part]:
        parts: list[Part] = []
        for index, piece in enumerate(self.items):
            parts += ["," if index else "[", *piece.render(block)]
        return [*parts, "]"] if self.items else ["[]"]


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A list of random length from `least` to the number of `items`, each length equally likely."""

    items: tuple[_Piece, ...]
    least: int
    path: str

    def inputs(self) -> frozenset[str]:
        return _inputs(self.items)

    def render(self, block: Block) -> list[Part]:
        lengths = self.least + block.at(block.path + self.path).index_below(len(self.items) - self.least + 1)
        parts: list[Part] = ["["]
        for index, piece in enumerate(self.items):
            text = join([",", *piece.render(block)] if index else piece.render(block), len(block))
            parts.append(Column(np.where(lengths <= index, "", text.values)))
        return [*parts, "]"]


@dataclass(frozen=True, slots=True)
class Document:
    """A field whose values are JSON documents."""

    root: _Piece
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = False

    def inputs(self) -> frozenset[str]:
        """The names of all fields that the document refers to."""
        return self.root.inputs()

    def draw(self, block: Block) -> Column:
        """The document of every row, without whitespace."""
        return replace(join(self.root.render(block), len(block)), is_json=True)


class DocumentType:
    """``json: {…}``: strings may hold ``{field}``; ``{$: definition}`` draws a value, ``{$repeat: …}`` a list."""

    main = "value"

    @staticmethod
    def read(definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; the document."""
        return Document(_part(definition["value"], place / "value", ""))


def _part(value: object, place: Place, path: str) -> _Piece:
    if isinstance(value, str):
        return _text(value, place, path)
    if isinstance(value, Mapping):
        if set(value) == {"$"}:
            from generators.spec import read_inner

            return _Drawn(*read_inner(value["$"], place / "$"), path)
        if set(value) == {"$repeat"}:
            return _repeated(value["$repeat"], place / "$repeat", path)
        return _Object(tuple((str(key), _part(item, place / str(key), f"{path}.{key}")) for key, item in value.items()))
    if isinstance(value, list):
        return _Array(tuple(_part(item, place / index, f"{path}[{index}]") for index, item in enumerate(value)))
    return _Fixed(orjson.dumps(value).decode())


def _text(value: str, place: Place, path: str) -> _Piece:
    parts = parse_template(value, place)
    if len(parts) == 1 and parts[0][0] == "" and parts[0][1] is not None and not parts[0][2]:
        return _Reference(parts[0][1])
    if any(name is not None for _, name, _ in parts):
        return _Drawn(Template(parts), 0.0, path)
    return _Fixed(orjson.dumps("".join(literal for literal, _, _ in parts)).decode())


def _repeated(value: object, place: Place, path: str) -> _Piece:
    if not isinstance(value, Mapping) or "of" not in value or not set(value) <= {"of", "min", "max"}:
        raise place.error("not a valid $repeat", "write {$repeat: {of: …, min: 0, max: 3}}")
    least, most = value.get("min", 0), value.get("max", 3)
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most and 1 <= most <= 1000):
        raise place.error(f"min {least} and max {most}", "give whole numbers, 0 <= min <= max <= 1000, max at least 1")
    if (pieces := _pieces(value)) > _MOST_PIECES:
        raise place.error(f"{pieces:,} values", f"give at most {_MOST_PIECES:,}, with all lists at their longest")
    items = tuple(_part(value["of"], place / "of", f"{path}[{index}]") for index in range(most))
    return _Repeated(items, least, f"{path}#")


def _pieces(value: object) -> int:
    """How many values this part of a document may have, with its lists at their longest."""
    if isinstance(value, Mapping) and "of" in value and set(value) <= {"of", "min", "max"}:
        most = value.get("max", 3)
        return _pieces(value["of"]) * (most if isinstance(most, int) else 1)
    if isinstance(value, Mapping | list):
        return max(1, sum(map(_pieces, value.values() if isinstance(value, Mapping) else value)))
    return 1


KINDS: dict[str, KindType] = {"json": DocumentType}

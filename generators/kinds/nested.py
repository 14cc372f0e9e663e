"""JSON documents: nested objects and lists with fixed values, other fields, and values drawn in place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import orjson
import polars as pl

from generators.block import Block
from generators.columns import Column, Joined, Part, Text, join, with_missing
from generators.document import Place
from generators.kinds.kind import Definition, Kind, KindType
from generators.kinds.text import Template, parse_template


class Piece(Protocol):
    """A piece of the document: JSON text for every row, or the same text for all."""

    def inputs(self) -> frozenset[str]:
        """The fields it needs."""
        ...

    def render(self, block: Block) -> list[Part]:
        """Pieces of text which, put together, are the JSON of this part; none of them is missing in any row."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is the same in every row."""

    text: str

    def inputs(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def render(self, block: Block) -> list[Part]:  # noqa: ARG002  # the same for every block
        """Itself."""
        return [self.text]


@dataclass(frozen=True, slots=True)
class Reference:
    """Another field's value, with its type."""

    name: str

    def inputs(self) -> frozenset[str]:
        """That field."""
        return frozenset({self.name})

    def render(self, block: Block) -> list[Part]:
        """The column as JSON."""
        return [block.columns[self.name].json()]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A value drawn in place; `path` tells its stream from others of the same document."""

    kind: Kind
    nullable: float
    path: str

    def inputs(self) -> frozenset[str]:
        """Those of its kind."""
        return self.kind.inputs()

    def render(self, block: Block) -> list[Part]:
        """The drawn column as JSON."""
        inner = block.at(block.path + self.path)
        drawn = self.kind.draw(inner)
        if self.nullable:
            drawn = with_missing(drawn, pl.Series(inner.uniform("null") < self.nullable))
        return [drawn.json()]


def _needed(parts: Iterable[Piece]) -> frozenset[str]:
    return frozenset().union(*(part.inputs() for part in parts))


@dataclass(frozen=True, slots=True)
class Object:
    """An object; keys are fixed."""

    items: tuple[tuple[str, Piece], ...]

    def inputs(self) -> frozenset[str]:
        """Those of its values."""
        return _needed(part for _, part in self.items)

    def render(self, block: Block) -> list[Part]:
        """Keys and values between braces."""
        pieces: list[Part] = []
        for index, (key, part) in enumerate(self.items):
            pieces += [("," if index else "{") + orjson.dumps(key).decode() + ":", *part.render(block)]
        return [*pieces, "}"] if self.items else ["{}"]


@dataclass(frozen=True, slots=True)
class Array:
    """A list of fixed length."""

    items: tuple[Piece, ...]

    def inputs(self) -> frozenset[str]:
        """Those of its values."""
        return _needed(self.items)

    def render(self, block: Block) -> list[Part]:
        """Values between brackets."""
        pieces: list[Part] = []
        for index, part in enumerate(self.items):
            pieces += ["," if index else "[", *part.render(block)]
        return [*pieces, "]"] if self.items else ["[]"]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list of a random length from `least` to the number of `items`, each length equally likely."""

    items: tuple[Piece, ...]
    least: int
    path: str

    def inputs(self) -> frozenset[str]:
        """Those of its values."""
        return _needed(self.items)

    def render(self, block: Block) -> list[Part]:
        """As many of the items as the row's length says."""
        lengths = self.least + block.at(block.path + self.path).index_below(len(self.items) - self.least + 1)
        pieces: list[Part] = ["["]
        for index, part in enumerate(self.items):
            text = join([",", *part.render(block)] if index else part.render(block), len(block))
            pieces.append(Text(text.set(pl.Series(lengths <= index), "") if index >= self.least else text))
        return [*pieces, "]"]


@dataclass(frozen=True, slots=True)
class Document:
    """A field whose values are JSON documents."""

    root: Piece
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = False

    def inputs(self) -> frozenset[str]:
        """All fields that the document refers to."""
        return self.root.inputs()

    def draw(self, block: Block) -> Column:
        """The document of every row, without spaces."""
        return Joined(_merged(self.root.render(block)), len(block), is_json=True)


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbouring literals as one: fewer parts to put together in a million rows."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, str) and isinstance(last, str):
            merged[-1] = last + part
        else:
            merged.append(part)
    return tuple(merged)


class DocumentType:
    """``json: {…}``: strings may hold ``{field}``; ``{$: definition}`` draws a value, ``{$repeat: …}`` a list."""

    main = "value"

    @staticmethod
    def read(definition: Definition, place: Place) -> Kind:
        """The document."""
        return Document(_part(definition["value"], place / "value", ""))


def _part(value: object, place: Place, path: str) -> Piece:
    if isinstance(value, str):
        return _text(value, place, path)
    if isinstance(value, Mapping):
        if set(value) == {"$"}:
            from generators.spec import read_inner

            return Drawn(*read_inner(value["$"], place / "$"), path)
        if set(value) == {"$repeat"}:
            return _repeated(value["$repeat"], place / "$repeat", path)
        return Object(tuple((str(key), _part(item, place / str(key), f"{path}.{key}")) for key, item in value.items()))
    if isinstance(value, list):
        return Array(tuple(_part(item, place / index, f"{path}[{index}]") for index, item in enumerate(value)))
    return Fixed(orjson.dumps(value).decode())


def _text(value: str, place: Place, path: str) -> Piece:
    parts = parse_template(value, place)
    if len(parts) == 1 and parts[0][0] == "" and parts[0][1] is not None and not parts[0][2]:
        return Reference(parts[0][1])
    if any(name is not None for _, name, _ in parts):
        return Drawn(Template(parts), 0.0, path)
    return Fixed(orjson.dumps("".join(literal for literal, _, _ in parts)).decode())


def _repeated(value: object, place: Place, path: str) -> Piece:
    if not isinstance(value, Mapping) or "of" not in value or not set(value) <= {"of", "min", "max"}:
        raise place.error("not a repetition", "write {$repeat: {of: …, min: 0, max: 3}}")
    least, most = value.get("min", 0), value.get("max", 3)
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most and 1 <= most <= 1000):
        raise place.error(f"min {least} and max {most}", "give whole numbers, 0 <= min <= max <= 1000, max at least 1")
    items = tuple(_part(value["of"], place / "of", f"{path}[{index}]") for index in range(most))
    return Repeated(items, least, f"{path}#")


KINDS: dict[str, KindType] = {"json": DocumentType}

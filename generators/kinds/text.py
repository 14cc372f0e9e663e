"""Text with other fields in it: template."""

import string
from dataclasses import dataclass
from typing import ClassVar

from generators.block import Block
from generators.columns import Column, Joined, Part
from generators.document import Place
from generators.kinds.kind import Definition, Kind, KindType


@dataclass(frozen=True, slots=True)
class Template:
    """Literal text and ``{field}`` or ``{field:format}``; a date's format is strftime's, a number's is Python's.

    `parts` are (literal, field or none, format). A row in which a field is missing is missing.
    """

    parts: tuple[tuple[str, str | None, str], ...]

    main: ClassVar[str] = "pattern"
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """The pattern."""
        return cls(parse_template(str(definition["pattern"]), place / "pattern"))

    def inputs(self) -> frozenset[str]:
        """The fields in braces."""
        return frozenset(name for _, name, _ in self.parts if name is not None)

    def draw(self, block: Block) -> Column:
        """Literals and formatted fields, put together."""
        parts: list[Part] = []
        for literal, name, form in self.parts:
            if literal:
                parts.append(literal)
            if name is not None:
                parts.append(block.columns[name].text(form))
        return Joined(tuple(parts), len(block))


def parse_template(pattern: str, place: Place) -> tuple[tuple[str, str | None, str], ...]:
    """The parts of a pattern.

    Raises:
        ConfigError: a brace stands alone, or something other than a field's name is in braces.
    """
    try:
        parsed = [
            (literal, name, form or "", conversion)
            for literal, name, form, conversion in string.Formatter().parse(pattern)
        ]
    except ValueError as error:
        raise place.error(
            f"'{pattern}' is no template: {error}", "write a brace that is meant as text twice: {{"
        ) from error
    for _, name, form, conversion in parsed:
        if name is not None and (not name.isidentifier() or conversion or "{" in form):
            raise place.error(f"'{{{name}}}' is not a field's name", "write {field} or {field:format}")
    return tuple((literal, name, form) for literal, name, form, _ in parsed)


def escaped(literal: str) -> str:
    """The pattern that stands for this text, braces and all."""
    return literal.replace("{", "{{").replace("}", "}}")


KINDS: dict[str, KindType] = {"template": Template}

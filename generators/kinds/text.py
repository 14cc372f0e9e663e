"""Text that contains other fields: template."""

import re
import string
from dataclasses import dataclass
from typing import ClassVar

from generators.block import Block
from generators.columns import Column, join
from generators.kinds.kind import Definition, Kind, KindType
from harness.documents import Place

_TOO_WIDE = re.compile(r"[1-9]\d{3}")


@dataclass(frozen=True, slots=True)
class Template:
    """Literal text with ``{field}`` or ``{field:format}``; dates are formatted by strftime, numbers as in Python.

    `parts` are (literal, field or None, format). The value is missing in rows where a field is missing.
    """

    parts: tuple[tuple[str, str | None, str], ...]

    main: ClassVar[str] = "pattern"
    monotone: ClassVar[bool] = False
    derived: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; the pattern."""
        return cls(parse_template(str(definition["pattern"]), place / "pattern"))

    def inputs(self) -> frozenset[str]:
        """The names of the fields in braces."""
        return frozenset(name for _, name, _ in self.parts if name is not None)

    def draw(self, block: Block) -> Column:
        """Literals and formatted fields, concatenated."""
        parts: list[str | Column] = []
        for literal, name, form in self.parts:
            if literal:
                parts.append(literal)
            if name is not None:
                parts.append(block.columns[name].text(form))
        return join(parts, len(block))


def parse_template(pattern: str, place: Place) -> tuple[tuple[str, str | None, str], ...]:
    """The parts of a pattern.

    Raises:
        ConfigError: a brace is unmatched, or does not enclose the name of a field.
    """
    try:
        parsed = [
            (literal, name, form or "", conversion)
            for literal, name, form, conversion in string.Formatter().parse(pattern)
        ]
    except ValueError as error:
        raise place.error(
            f"'{pattern}' is not a template: {error}", "double a brace that is meant as text: {{"
        ) from error
    for _, name, form, conversion in parsed:
        if name is not None and (not name.isidentifier() or conversion or "{" in form):
            raise place.error(f"'{{{name}}}' is not a field's name", "write {field} or {field:format}")
        if _TOO_WIDE.search(form):
            raise place.error(f"the format of '{{{name}}}' is wider than 999 characters", "give a smaller width")
    return tuple((literal, name, form) for literal, name, form, _ in parsed)


def escaped(literal: str) -> str:
    """A pattern for exactly this text, with its braces escaped."""
    return literal.replace("{", "{{").replace("}", "}}")


KINDS: dict[str, KindType] = {"template": Template}

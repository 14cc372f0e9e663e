"""Recognises text composed of other columns, such as ``{plant}-{id}`` or ``s3://x/{date:%Y/%m}``."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from statistics import mean

from generators.inference.draft import Definition, Draft
from generators.inference.learn import pattern_of
from generators.kinds.text import escaped

_DATE_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y-%m", "%Y/%m", "%Y")
_MIN_DISTINCT = 20  # fewer distinct texts are a list to choose from
_PRIVATE = 0xE000  # characters of Unicode's private use area mark columns while the rest is analysed
_MAX_ROWS = 1000


def composed(name: str, rows: Sequence[Mapping[str, str]], known: Sequence[str], draft: Draft) -> Definition | None:
    """A template of the columns `known` that yields the column `name` in every row; None if there is none."""
    rows = rows[:_MAX_ROWS]
    texts = [row[name] for row in rows]
    if len(set(texts)) < _MIN_DISTINCT or not all(texts):
        return None
    found: list[str] = []
    for token, values in _candidates(rows, known):
        mark = chr(_PRIVATE + len(found))
        marked = [_marked(text, value, mark) for text, value in zip(texts, values, strict=True)]
        if all(mark in text for text in marked):
            texts, found = marked, [*found, token]
    if not found:
        return None
    pattern = escaped(texts[0]) if len(set(texts)) == 1 else pattern_of(name, texts, draft)
    if pattern is None:
        return None
    for index, token in enumerate(found):
        pattern = pattern.replace(chr(_PRIVATE + index), f"{{{token}}}")
    return {"template": pattern}


def _candidates(rows: Sequence[Mapping[str, str]], known: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(template field, its text in every row) pairs, longest first, so that a part does not hide the whole."""
    found = []
    for column in known:
        values = [row[column] for row in rows]
        if not column.isidentifier() or not all(values):
            continue
        found.append((column, values))
        dates = _dates(values)
        if dates:
            found += [(f"{column}:{form}", [date.strftime(form) for date in dates]) for form in _DATE_FORMS]
    return sorted(found, key=lambda candidate: -mean(len(value) for value in candidate[1]))


def _dates(values: Sequence[str]) -> list[dt.date]:
    try:
        return [dt.date.fromisoformat(value[:10]) for value in values]
    except ValueError:
        return []


def _marked(text: str, value: str, mark: str) -> str:
    """The text with `mark` in place of the value's first occurrence as a whole word or number."""
    before = r"(?<![A-Za-z\d])" if value[0].isalnum() else ""
    after = r"(?![A-Za-z\d])" if value[-1].isalnum() else ""
    return re.sub(before + re.escape(value) + after, mark, text, count=1)

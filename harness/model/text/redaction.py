"""Keeps secrets out of the run folder: tokens, anything that looks like a credential, values of named parameters."""

import base64
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

from harness.model.text.inert import visible

HIDDEN = "***"
# Credentials in error messages and in containers' termination messages.
_CREDENTIALS = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|\b(?:authorization|cookie)[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic)\s+)?|"
    r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\w-]*[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
_LONGEST_MESSAGE = 4000  # Kubernetes cuts termination messages at 4096 bytes
_SHORTEST_SECRET = 6  # a shorter one would hide innocent words


class Redaction:
    """Hides secrets in texts.

    Args:
        secrets: texts that are hidden wherever they occur, in any case, and as a server may encode them: in percent,
            HTML or JSON escapes, hexadecimal or base64, which may begin within other text. Those shorter than 6
            characters are ignored.
        names: parameters; a value after one of them and ``=`` or ``:`` is hidden.
    """

    def __init__(self, secrets: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)
        known = {form.lower() for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)}
        self._secrets = sorted(known, key=len, reverse=True)  # one may begin with another
        words = "|".join(map(re.escape, sorted(self.names)))
        self._named = (
            re.compile(rf"""((?<!\w)(?<!\w-)(?:{words})["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s"',;&}}]+)""")
            if words
            else None
        )

    def clean(self, text: str) -> str:
        """The text without secrets, cut to 4,000 characters, its control characters shown."""
        text = self._without_secrets(text)
        if self._named:
            text = self._named.sub(rf"\1{HIDDEN}", text)
        text = _CREDENTIALS.sub(rf"\1{HIDDEN}", text)
        return visible(_URL_CREDENTIALS.sub(HIDDEN, text)[:_LONGEST_MESSAGE])

    def clean_tree(self, node: Any) -> Any:
        """A JSON or YAML document without the secrets in its texts."""
        if isinstance(node, str):
            return self._without_secrets(node)
        if isinstance(node, Mapping):
            return {key: self.clean_tree(each) for key, each in node.items()}
        return [self.clean_tree(each) for each in node] if isinstance(node, list) else node

    def _without_secrets(self, text: str) -> str:
        lowered = text.lower()
        for secret in self._secrets:
            if secret in lowered:
                text = re.sub(re.escape(secret), HIDDEN, text, flags=re.IGNORECASE)
        return text


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as servers encode what they echo."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, quote(raw, safe=""), quote(raw), quote_plus(raw), escape(secret), json.dumps(secret)[1:-1])
    yield raw.hex()
    for before in range(3):  # where its first byte is within a group of three
        coded = base64.b64encode(bytes(before) + raw)
        whole = coded[(0, 2, 3)[before] : len(coded) - (0, 3, 2)[(before + len(raw)) % 3]].decode()
        if len(whole) >= _SHORTEST_SECRET:
            yield from (whole, whole.replace("+", "-").replace("/", "_"))


def without_credentials(url: str) -> str:
    """An address without its user and password."""
    return _URL_CREDENTIALS.sub(HIDDEN, url)


def values_of(names: Iterable[str], rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The non-empty values of these columns in rows of scenarios."""
    wanted = set(names)
    for row in rows:
        yield from (value for name, value in row.items() if name in wanted and value)


def column_of(name: str, values: Iterable[str]) -> bytes:
    """A CSV of one column, from which `values_of` reads these values."""
    return _table([[name], *([value] for value in values)])


def hide_columns(table: bytes, names: Iterable[str]) -> bytes:
    """A CSV of scenarios with the values of these columns hidden."""
    wanted = set(names)
    heading, *rows = csv.reader(io.StringIO(table.decode("utf-8-sig"), newline=""))
    hidden = {place for place, name in enumerate(heading) if name.strip() in wanted}
    return _table([heading, *([HIDDEN if place in hidden else cell for place, cell in enumerate(row)] for row in rows)])


def _table(rows: Iterable[Iterable[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()

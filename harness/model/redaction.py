"""What must not reach the run folder: tokens, what looks like a credential, the values of named parameters."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping

_HIDDEN = "***"
# What credentials look like in error messages and in what containers say when they end.
_CREDENTIALS = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|\b(?:authorization|cookie)[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic)\s+)?|"
    r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[\w-]*[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
_LONGEST_MESSAGE = 4000  # Kubernetes cuts termination messages at 4096 bytes
_SHORTEST_SECRET = 6  # a shorter one would blacken innocent words


class Redaction:
    """Takes secrets out of texts.

    Args:
        secrets: texts that are hidden wherever they occur; those of fewer than 6 characters are left aside.
        names: parameters; what follows one of them and ``=`` or ``:`` is hidden.
    """

    def __init__(self, secrets: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)  # one may begin with another
        words = "|".join(map(re.escape, sorted(names)))
        self._named = (
            re.compile(rf"""((?<!\w)(?<!\w-)(?:{words})["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s"',;&}}]+)""")
            if words
            else None
        )

    def clean(self, text: str) -> str:
        """The text without them, and not endless."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        if self._named:
            text = self._named.sub(rf"\1{_HIDDEN}", text)
        text = _CREDENTIALS.sub(rf"\1{_HIDDEN}", text)
        return _URL_CREDENTIALS.sub(_HIDDEN, text)[:_LONGEST_MESSAGE]


def values_of(names: Iterable[str], rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The values of these columns of scenarios."""
    wanted = set(names)
    for row in rows:
        yield from (value for name, value in row.items() if name in wanted and value)


def hide_columns(table: bytes, names: Iterable[str]) -> bytes:
    """A CSV of scenarios with the values of these columns hidden."""
    wanted = set(names)
    heading, *rows = csv.reader(io.StringIO(table.decode("utf-8-sig"), newline=""))
    hidden = {place for place, name in enumerate(heading) if name.strip() in wanted}
    out = io.StringIO(newline="")
    write = csv.writer(out, lineterminator="\n").writerow
    write(heading)
    for row in rows:
        write([_HIDDEN if place in hidden else cell for place, cell in enumerate(row)])
    return out.getvalue().encode()

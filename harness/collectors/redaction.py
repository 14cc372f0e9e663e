"""What must not reach the run folder: tokens, what looks like a credential, the values of named parameters."""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

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


def values_of(names: Iterable[str], scenarios: Path) -> Iterator[str]:
    """The values of these columns of a CSV of scenarios; nothing where there is no such file or column."""
    wanted = set(names)
    if not wanted or not scenarios.is_file():
        return
    with scenarios.open(encoding="utf-8-sig", newline="") as text:
        for row in csv.DictReader(text):
            yield from (value for name, value in row.items() if name in wanted and value)

"""Bounded reading of untrusted files: limits on size, nesting and numbers.

Every reader of a user's file goes through here, so that ``/dev/zero``, 60,000 brackets or nested aliases end in one
sentence instead of taking all memory or overflowing the stack.
"""

import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson
import yaml

from harness.model.errors import ConfigError

MOST_BYTES = 2**26  # of a document: a spec, profile, pipeline or manifest
MOST_TABLE_BYTES = 2**31  # of tables, and of what other tools export
_MOST_LEVELS = 100
_MOST_VALUES = 1_000_000  # of a YAML document with its aliases written out
_WHOLE_NUMBERS = range(-(2**63), 2**63)
_LONGEST_NUMBER = 64  # characters
_NUMBER = re.compile(r"[-+.0-9][-+.:0-9a-fA-FxXoO_]*")  # in any of YAML's notations
_FIX = "correct the file"


# --- files ------------------------------------------------------------------------------------------------------------


def open_file(path: Path, most: int = MOST_TABLE_BYTES) -> BinaryIO:
    """A file of at most `most` bytes, opened for reading; a pipe is read into memory.

    Raises:
        OSError: it can't be opened.
        ConfigError: it is larger, or neither a file nor a pipe.
    """
    file = path.open("rb")
    try:
        return bounded(file, path, most)
    except BaseException:
        file.close()
        raise


def bounded(file: BinaryIO, source: object, most: int) -> BinaryIO:
    """`file`, once its size is known to be at most `most` bytes; `source` names it in errors. See `open_file`."""
    about = os.fstat(file.fileno())
    if stat.S_ISFIFO(about.st_mode):
        with file:
            content = file.read(most + 1)
        size, file = len(content), cast("BinaryIO", io.BytesIO(content))
    elif stat.S_ISREG(about.st_mode):
        size = about.st_size
    else:
        raise ConfigError(f"{source} is not a file", "give a file, or a pipe")
    if size > most:
        raise ConfigError(f"{source} is larger than {most // 2**20:,} MiB", "give a smaller file")
    return file


@contextmanager
def readable(file: object, hint: str) -> Iterator[None]:
    """Opens a user's `file`, as it is called in errors, in this block.

    Raises:
        ConfigError: it does not exist, or can't be read; `hint` says what to do.
    """
    try:
        yield
    except FileNotFoundError:
        raise ConfigError(f"{file} does not exist", hint) from None
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {error.strerror}", hint) from error


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file; raises as `open_file` does."""
    with open_file(path, most) as file:
        return file.read()


def read_text(path: Path) -> str:
    """The text of a document in UTF-8, without a byte order mark.

    Raises:
        OSError: it can't be opened.
        ConfigError: it is too large, no file, or not UTF-8.
    """
    return as_text(read_bytes(path), path)


def as_text(content: bytes, source: object) -> str:
    """UTF-8 as text, without a byte order mark.

    Raises:
        ConfigError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not UTF-8 (at byte {error.start})", "save it as UTF-8") from error


# --- JSON -------------------------------------------------------------------------------------------------------------


def parse_json(content: bytes | str, source: object, hint: str = _FIX) -> Any:
    """The value of a JSON document. Integers beyond 64 bits become floats; NaN and Infinity are not JSON.

    Raises:
        ConfigError: it is not JSON, or has more than 100 levels.
    """
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        where = f"{source}, line {error.lineno}, column {error.colno}"
        raise ConfigError(f"{where}: not JSON: {error.msg}", hint) from error
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return value
    raise ConfigError(f"{source} has more than {_MOST_LEVELS} levels", _FIX)


# --- what documents should hold ---------------------------------------------------------------------------------------


@contextmanager
def structured(source: object, hint: str = _FIX) -> Iterator[None]:
    """Reads a document in this block: where its structure is not the expected one, the document is at fault.

    Raises:
        ConfigError: an entry is missing, or not of its type.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ConfigError(f"{source} is damaged or truncated: {what}", hint) from error


# --- YAML -------------------------------------------------------------------------------------------------------------


def parse_yaml(content: bytes | str, source: object) -> list[Any]:
    """The documents of a YAML stream.

    Raises:
        ConfigError: it is not YAML, or exceeds the bounds of `check_yaml`; the message says where.
    """
    check_yaml(content, source)
    try:
        return list(yaml.load_all(content, Loader=_Loader))  # a safe loader
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise not_yaml(error, source) from error


def check_yaml(content: bytes | str, source: object) -> None:
    """Check nesting, size and numbers before anything is composed: libyaml's composer overflows the stack.

    Raises:
        ConfigError: it is not YAML, has more than 100 levels, a million values or a number of 64 characters, or an
            alias that refers to itself.
    """
    nodes = _Nodes()
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            if problem := nodes.add(event):
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise ConfigError(f"{source}:{line}: {problem}", _FIX)
    except (yaml.YAMLError, ValueError) as error:
        raise not_yaml(error, source) from error


class _Nodes:
    """Counts the values of a YAML stream, with its aliases written out."""

    def __init__(self) -> None:
        self._anchored: dict[str, int] = {}
        self._open: list[tuple[str | None, int]] = [(None, 0)]  # collections: anchor, values so far

    def add(self, event: yaml.Event) -> str:
        """What is wrong since this event; "" for nothing."""
        match event:
            case yaml.CollectionStartEvent():
                self._open.append((event.anchor, 1))
                return "" if len(self._open) <= _MOST_LEVELS + 1 else f"more than {_MOST_LEVELS} levels"
            case yaml.CollectionEndEvent():
                return self._close(*self._open.pop())
            case yaml.ScalarEvent():
                if not event.style and len(event.value) > _LONGEST_NUMBER and _NUMBER.fullmatch(event.value):
                    return "the number is too long"
                return self._close(event.anchor, 1)
            case yaml.AliasEvent():
                if any(anchor == event.anchor for anchor, _ in self._open):
                    return f"the alias '{event.anchor}' refers to itself"
                return self._close(None, self._anchored.get(event.anchor or "", 1))
        return ""

    def _close(self, anchor: str | None, values: int) -> str:
        if anchor is not None:
            self._anchored[anchor] = values
        outer, before = self._open[-1]
        self._open[-1] = outer, before + values
        return "" if before + values <= _MOST_VALUES else f"more than {_MOST_VALUES:,} values"


def not_yaml(error: Exception, source: object) -> ConfigError:
    """What a YAML loader raised, as one sentence with the line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = f":{mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or next(iter(str(error).splitlines()), type(error).__name__)
    return ConfigError(f"{source}{line}: not valid YAML: {problem}", "fix the YAML there")


class _Loader(yaml.CSafeLoader):
    """Refuses whole numbers beyond 64 bits, which neither JSON nor tables can hold."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # PyYAML's signature
        value = super().construct_object(node, deep=deep)
        if type(value) is int and value not in _WHOLE_NUMBERS:
            raise yaml.constructor.ConstructorError(None, None, "the number is too large", node.start_mark)
        return value

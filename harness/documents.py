"""A YAML document that knows the line of each value, so that errors name line and key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from harness import reading
from harness.model.errors import ConfigError
from harness.model.text.typed import NO_MAKERS, Key, KeyPath, Makers, MismatchError, dotted, from_written

T = TypeVar("T")

_BOOL, _INT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0o[0-7]+)")
_MAX_VALUES = 200_000  # per document: bounds the expansion of nested aliases


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values and the line of each; `source` names the file, or what the values were inferred from."""

    data: Any
    source: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    folder: Path = Path()  # that relative file names in the document refer to

    def typed(self, kind: type[T], makers: Makers = NO_MAKERS) -> T:
        """The `kind` that is written here; see `from_written`.

        Raises:
            ConfigError: a key is unknown or missing, or a value is not of its type.
        """
        try:
            return from_written(kind, self.data, makers)
        except MismatchError as error:
            raise self.error(error.path, error.problem, error.hint) from error

    def error(self, path: KeyPath, message: str, hint: str) -> ConfigError:
        """An error at `path`, with the line of its nearest ancestor that is in the file."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = f":{self.lines[known]}" if known in self.lines else ""
        where = f"{self.source}{line}"
        return ConfigError(f"{where}: {dotted(path)}: {message}" if path else f"{where}: {message}", hint)


@dataclass(frozen=True, slots=True)
class Place:
    """A path inside a document, to name in errors."""

    document: Document
    path: KeyPath = ()

    def __truediv__(self, key: Key) -> "Place":
        return Place(self.document, (*self.path, key))

    def error(self, message: str, hint: str) -> ConfigError:
        """An error that names this place."""
        return self.document.error(self.path, message, hint)


def read_yaml(path: Path) -> Document:
    """Parse a YAML file.

    Raises:
        ConfigError: the file does not exist, is not YAML, or has a duplicate key.
    """
    with reading.readable(path, "check the file's name"):
        return parse_yaml(reading.read_text(path), str(path), path.parent)


def parse_yaml(text: str, source: str, folder: Path = Path()) -> Document:
    """Parse YAML text; see `read_yaml`."""
    reading.check_yaml(text, source)
    # The C loader is ten times faster; libyaml is part of every PyYAML wheel, but not of every build from source.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    lines: dict[KeyPath, int] = {}
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(None, source, folder=folder)
        _locate(node, (), source, lines)
        data = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise reading.not_yaml(error, source) from error
    finally:
        loader.dispose()
    return Document(data, source, lines, folder)


def _modernise(node: yaml.Node) -> None:
    """Read a scalar by the rules of YAML 1.2: NO, 18:00 and 007 are text, not False, 1080 and 7."""
    if isinstance(node, yaml.ScalarNode):
        boolean = node.tag == _BOOL and node.value.lower() not in {"true", "false"}
        number = node.tag == _INT and not _PLAIN_INTEGER.fullmatch(node.value)
        if boolean or number:
            node.tag = "tag:yaml.org,2002:str"


def _locate(node: yaml.Node, path: KeyPath, source: str, lines: dict[KeyPath, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    _modernise(node)
    if len(lines) > _MAX_VALUES:
        raise ConfigError(f"{source}: more than {_MAX_VALUES:,} values", "put long lists into a CSV and use from_file")
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise ConfigError(f"{source}:{key.start_mark.line + 1}: duplicate key '{name}'", "keep one of them")
            seen.add(name)
            _modernise(key)
            lines[(*path, name)] = key.start_mark.line + 1
            _locate(value, (*path, name), source, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _locate(item, (*path, index), source, lines)

"""A YAML document that knows the line of each value, so that errors name line and key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness import reading
from harness.model.errors import ConfigError

Key = str | int
KeyPath = tuple[Key, ...]

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


def dotted(path: KeyPath) -> str:
    """A path in the usual notation: ``fields.lr.values[2]``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def read_yaml(path: Path) -> Document:
    """Parse a YAML file.

    Raises:
        ConfigError: the file does not exist, is not YAML, or has a duplicate key.
    """
    try:
        text = reading.read_text(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "check the file's name") from error
    return parse_yaml(text, str(path), path.parent)


def parse_yaml(text: str, source: str, folder: Path = Path()) -> Document:
    """Parse YAML text; see `read_yaml`."""
    reading.check_yaml(text, source)
    # The C loader is ten times faster; libyaml is part of every PyYAML wheel, but not of every build from source.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    lines: dict[KeyPath, int] = {}
    try:
        node = loader.get_single_node()
        if node is None:
            raise ConfigError(f"{source} is empty", "docs/scenarios.md describes the format")
        _locate(node, (), source, lines, ())
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{source}{line}: not valid YAML: {error.problem}", "fix the YAML at this line") from error
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"{source}: not valid YAML: {first}", "fix the YAML") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply", "flatten the document") from error
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


def _locate(
    node: yaml.Node, path: KeyPath, source: str, lines: dict[KeyPath, int], above: tuple[yaml.Node, ...]
) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    _modernise(node)
    if len(lines) > _MAX_VALUES:
        raise ConfigError(f"{source}: more than {_MAX_VALUES:,} values", "put long lists into a CSV and use from_file")
    if node in above:
        raise ConfigError(f"{source}:{node.start_mark.line + 1}: an alias refers to itself", "write the values out")
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise ConfigError(f"{source}:{key.start_mark.line + 1}: duplicate key '{name}'", "keep one of them")
            seen.add(name)
            _modernise(key)
            lines[(*path, name)] = key.start_mark.line + 1
            _locate(value, (*path, name), source, lines, (*above, node))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _locate(item, (*path, index), source, lines, (*above, node))

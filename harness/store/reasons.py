"""A user's own rows of the catalogue of stated reasons, kept in the run folder, so that its report can be rebuilt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from harness import reading
from harness.model.errors import ConfigError
from harness.reasons import Catalogue, builtin, merged, rows_of
from harness.store.folder import RunFolder

REASONS = "reasons.yaml"


def read_reasons(path: Path) -> bytes:
    """The rows in a file, which are checked.

    Raises:
        ConfigError: it can't be read, or a row is wrong: which line, and which key.
    """
    try:
        text = reading.read_text(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "give a readable file") from error
    _rows(text, str(path))
    return text.encode()


def keep_reasons(folder: RunFolder, content: bytes) -> None:
    """Keep rows in the folder that `read_reasons` has read."""
    folder.keep(REASONS, content)


def kept_reasons(folder: RunFolder) -> Catalogue:
    """The catalogue with the rows that are kept in the folder; each replaces the built-in one of its name.

    Raises:
        ConfigError: they are damaged.
    """
    if not folder.has(REASONS):
        return builtin()
    return _rows(folder.read_bytes(REASONS).decode(errors="replace"), f"{folder.path}/{REASONS}")


def _rows(text: str, where: str) -> Catalogue:
    return merged(rows_of(next(iter(reading.parse_yaml(text, where)), None), where, _lines(text)))


def _lines(text: str) -> list[dict[str, int]]:
    """By row: the line of each key, and of the row under ""."""
    document: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    listed = next((value for key, value in _pairs(document) if key.value == "reasons"), None)
    rows = listed.value if isinstance(listed, yaml.SequenceNode) else ()
    return [
        {"": row.start_mark.line + 1} | {str(key.value): key.start_mark.line + 1 for key, _ in _pairs(row)}
        for row in rows
    ]


def _pairs(node: Any) -> Sequence[tuple[Any, Any]]:
    return node.value if isinstance(node, yaml.MappingNode) else ()

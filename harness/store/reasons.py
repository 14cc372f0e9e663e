"""A user's own rows of the catalogue of stated reasons, kept in the run folder, so that its report can be rebuilt."""

from pathlib import Path

from harness import reading
from harness.documents import parse_yaml
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
    document = parse_yaml(text, where)
    return merged(rows_of(document.data, where, document.lines))

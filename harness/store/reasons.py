"""A user's own rows of the catalogue of stated reasons, kept in the run folder, so that its report can be rebuilt."""

from pathlib import Path

from harness import reading
from harness.reasons import Catalogue, builtin, merged, rows_of
from harness.store.folder import RunFolder

REASONS = "reasons.yaml"


def keep_reasons(folder: RunFolder, path: Path) -> None:
    """Check the rows in a file, and keep it in the folder.

    Raises:
        ConfigError: it can't be read, or a row is wrong: which one, and which key.
        OSError: it can't be opened.
    """
    text = reading.read_text(path)
    _rows(text, str(path))
    folder.keep(REASONS, text.encode())


def kept_reasons(folder: RunFolder) -> Catalogue:
    """The catalogue with the rows that are kept in the folder; each replaces the built-in one of its name.

    Raises:
        ConfigError: they are damaged.
    """
    if not folder.has(REASONS):
        return builtin()
    return _rows(folder.read_bytes(REASONS).decode(errors="replace"), f"{folder.path}/{REASONS}")


def _rows(text: str, where: str) -> Catalogue:
    return merged(rows_of(next(iter(reading.parse_yaml(text, where)), None), where))

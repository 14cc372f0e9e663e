"""A user's own rows of the catalogue of stated reasons, kept in the run folder, so that its report can be rebuilt."""

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from harness import reading
from harness.documents import parse_yaml, read_yaml
from harness.model.errors import suggestion
from harness.reasons import Catalogue, builtin, merged, rows_of
from harness.store.folder import RunFolder

REASONS = "reasons.yaml"
_NAMED = re.compile(r'^NAME = "(.+)"$', re.MULTILINE)


def read_reasons(path: Path) -> bytes:
    """The rows in a file, which are checked.

    Raises:
        ConfigError: it can't be read, or a row is wrong or names an unknown detector: which line, and which key.
    """
    document = read_yaml(path)
    rows = rows_of(document.data, document.source, document.lines)
    causes = {row.name for row in (*builtin().rows, *rows)}
    for k, row in enumerate(rows):
        for name in row.yields_to:
            if name not in causes and name not in detector_names():
                raise document.error(
                    ("reasons", k, "yields_to"), f"'{name}' is neither a detector nor a stated cause",
                    suggestion(name, {*causes, *detector_names()}) + "docs/reference/detectors.md lists the detectors",
                )  # fmt: skip
    return reading.read_text(path).encode()


def detector_names() -> Iterator[str]:
    """The names of all detectors, the built-in ones first: from their sources, to import is too much for a load."""
    for path in (Path(__file__).parents[1] / "detectors").rglob("*.py"):
        yield from _NAMED.findall(reading.read_text(path))
    for entry in entry_points(group="pipeswarm.detectors"):
        yield entry.load().NAME


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
    text = folder.read_bytes(REASONS).decode(errors="replace")
    document = parse_yaml(text, f"{folder.path}/{REASONS}")
    return merged(rows_of(document.data, document.source, document.lines))

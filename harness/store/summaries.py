"""What was computed from a whole run folder, kept with it: a thousand folders can't be analysed for each question.

A summary is found again by a key of everything that it follows from, contents of tables included, and by nothing else:
where records or code are others, there is none.
"""

import hashlib
from contextlib import suppress

from harness.model.errors import ConfigError
from harness.store import files
from harness.store.folder import KINDS, MANIFEST, MOST_RECORDS, SCHEDULE, TABLES, RunFolder
from harness.store.prices import PRICES

_SUMMARY = f"{TABLES}/summary.json"
_READ = (MANIFEST, SCHEDULE, PRICES, *(f"{TABLES}/{name}.parquet" for name in KINDS.values()))
_LINES = tuple(f"{name}.jsonl" for name in KINDS.values())

_BLOCK = 2**16  # bytes: the allocator gives the memory of larger blocks back to the system after each


def key_of(folder: RunFolder, code: str) -> str:
    """A key of all that a run's analysis reads, and of the `code` that analyses it."""
    digest = hashlib.sha256(code.encode())
    for name in _READ:
        digest.update(name.encode())
        with suppress(FileNotFoundError), folder.open_file(name, MOST_RECORDS) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    for name in _LINES:  # they are only appended, so their size shows a change, and whether a table is made of them
        digest.update(f"{name} {files.size_of(folder.path, name)}".encode())
    return digest.hexdigest()


def kept_summary(folder: RunFolder, key: str) -> bytes | None:
    """The summary that was kept under this key; none where there is none or another."""
    try:
        kept, _, content = folder.read_bytes(_SUMMARY).partition(b"\n")
    except (OSError, ConfigError):
        return None
    return content if kept == key.encode() else None


def keep_summary(folder: RunFolder, key: str, content: bytes) -> None:
    """Keep a summary in place of the last one; a folder that can't be written stays as it is."""
    with suppress(OSError, ConfigError):
        folder.replace(_SUMMARY, key.encode() + b"\n" + content)

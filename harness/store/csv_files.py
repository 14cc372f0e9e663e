"""The CSV files of a run folder: ``schedule.csv`` is written, columns of any are read."""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO, TextIOWrapper
from itertools import repeat
from typing import BinaryIO

_MOST_CELL = 2**31 - 1  # the platform limits the length of a value; the standard library would at 128 KiB


def write_schedule(out: BinaryIO, offsets: Iterable[float], more: Mapping[str, Sequence[str]]) -> tuple[int, str]:
    """Write ``seq,due_s`` and `more` columns; return the count of arrivals and the digest.

    The digest is that of `schedule_digest`. Columns without cells are left out.
    """
    digest = hashlib.sha256()
    count = -1  # the first line is the header
    cells = [(name, *column) for name, column in more.items() if column]
    rows = zip(*cells, strict=True) if cells else repeat(())
    for line, rest in zip(_schedule_lines(offsets), map(_last_cells, rows), strict=False):
        digest.update(line)
        out.write(line[:-1] + rest)
        count += 1
    return count, digest.hexdigest()


def schedule_digest(offsets: Iterable[float]) -> str:
    """The SHA-256 of the due times as CSV: equal times are equal schedules, whichever scenarios they name."""
    digest = hashlib.sha256()
    for line in _schedule_lines(offsets):
        digest.update(line)
    return digest.hexdigest()


def column(file: BinaryIO, name: str) -> Iterator[str]:
    """The cells of a column; none without such a column.

    Raises:
        ValueError: the file is not a CSV in UTF-8.
        IndexError: a row is too short.
    """
    csv.field_size_limit(_MOST_CELL)
    with TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text)
        try:
            header = next(rows, [])
            if name in header:
                at = header.index(name)
                yield from (row[at] for row in rows if row)
        except csv.Error as error:
            raise ValueError(str(error)) from error


def _schedule_lines(offsets: Iterable[float]) -> Iterator[bytes]:
    yield b"seq,due_s\n"
    for seq, due_s in enumerate(offsets):
        yield f"{seq},{due_s!r}\n".encode()


def _last_cells(texts: Sequence[str]) -> bytes:
    """The texts as the last cells of a line."""
    if not texts:
        return b"\n"
    line = StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(("", *texts))
    return line.getvalue().encode()

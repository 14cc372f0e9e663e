"""Users' CSV files, read row by row; errors name file and line."""

import csv
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import zip_longest
from pathlib import Path

from harness import reading
from harness.model.errors import ConfigError

_MAX_CELL = 2**31 - 1  # the platform limits the length of a value; the standard library would at 128 KiB

_MOST_COLUMNS = 10_000


def rows_of(path: Path, hint: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV (RFC 4180), each with the number of the line on which it begins.

    A byte order mark and CRLF line ends are accepted, and empty lines are skipped. `hint` is shown when the file does
    not exist.

    Raises:
        ConfigError: it can't be read, or is not a CSV.
    """
    csv.field_size_limit(_MAX_CELL)
    last = 0
    try:
        with (
            reading.readable(path, hint),
            TextIOWrapper(reading.open_file(path), encoding="utf-8-sig", newline="") as text,
        ):
            rows = csv.reader(text, strict=True)
            for cells in rows:
                number, last = last + 1, rows.line_num
                if number == 1 and len(cells) == 1 and ";" in cells[0]:
                    raise ConfigError(f"{path} is semicolon-separated", "save it as CSV with commas")
                if len(cells) > _MOST_COLUMNS:
                    what = f"{path}, row {number} has {len(cells):,} cells, more than {_MOST_COLUMNS:,}"
                    raise ConfigError(what, "give a CSV of scenarios, samples or measurements")
                if cells:
                    yield number, cells
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (after row {last})", "save it as CSV UTF-8") from error
    except csv.Error as error:
        raise ConfigError(f"{path}, row {last + 1}: not a CSV: {error}", "quote cells as in RFC 4180") from error


def named_rows_of(path: Path, columns: Sequence[str], hint: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV with a header, by column, each with the number of the line on which it begins.

    Whitespace around cells is dropped; cells that a row lacks are empty. `hint` is shown when the file does not exist.

    Raises:
        ConfigError: it can't be read, is not a CSV, or lacks one of `columns`.
    """
    rows = rows_of(path, hint)
    _, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    for name in columns:
        if name not in names:
            raise ConfigError(f"{path}, line 1: the column '{name}' is missing", f"columns are: {','.join(columns)}")
    for line, cells in rows:
        if len(cells) > len(names):
            raise ConfigError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {len(names)}",
                "write decimals with a point, and quote cells that contain a comma",
            )
        yield line, {name: cell.strip() for name, cell in zip_longest(names, cells, fillvalue="")}

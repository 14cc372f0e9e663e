"""Sources of generated values: vocabularies drawn once from Faker, and rows of users' files."""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from generators.columns import Column, column_of, from_values, texts
from harness import reading
from harness.model.errors import ConfigError
from harness.targets.table import rows_of

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")  # gzip, zstd, zlib
_MOST_CHARACTERS = 2**26  # of a pool
_MOST_COUNT = 10_000
_COUNTS = re.compile("count|deep|depth|digits|indent|length|levels|nb|num_|number|precision|size|chars")  # of arguments
Table = Mapping[str, Column]
_MAX_MISSES = 20_000  # consecutive draws without a new value after which a provider counts as exhausted


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A Faker provider and its arguments, which identify a pool of values.

    `weighted` values are as frequent as in the population that Faker knows; otherwise all are equally likely, which
    gives a pool more distinct values and is ten times as fast.
    """

    provider: str
    locale: str = "en_US"
    args: tuple[object, ...] = ()
    kwargs: tuple[tuple[str, object], ...] = ()
    size: int = 1000
    weighted: bool = False

    def __str__(self) -> str:
        shown = [repr(arg) for arg in self.args] + [f"{key}={value!r}" for key, value in self.kwargs]
        return f"{self.provider}({', '.join(shown)}) in {self.locale}{', weighted' if self.weighted else ''}"

    def source(self, seed: int) -> Callable[[], object]:
        """The provider's function, seeded.

        Raises:
            ConfigError: Faker has no such locale, provider or argument.
        """
        from faker import Faker

        try:
            faker = Faker(self.locale, use_weighting=self.weighted)
        except (AttributeError, ValueError) as error:
            raise ConfigError(
                f"Faker has no locale '{self.locale}'", "use one such as en_US, de_DE, fr_FR, ja_JP"
            ) from error
        faker.seed_instance(seed)
        try:
            provider = getattr(faker, self.provider)
        except AttributeError as error:
            raise ConfigError(
                f"Faker has no provider '{self.provider}' for {self.locale}",
                "use the method name of one of Faker's standard providers, such as name or company",
            ) from error

        self._check_counts(provider)

        def draw() -> object:
            try:
                value: object = provider(*self.args, **dict(self.kwargs))
            except Exception as error:
                raise ConfigError(f"Faker can't draw {self}: {error}", "check the provider's arguments") from error
            value = list(value) if isinstance(value, set | frozenset) else value
            if not _is_data(value):
                raise ConfigError(
                    f"Faker's '{self.provider}' gives no text, number or date, but a {type(value).__name__}",
                    "use the method name of one of Faker's standard providers, such as name or company",
                )
            return value

        return draw

    def _check_counts(self, provider: Callable[..., object]) -> None:
        """Arguments that say how much to draw are bounded: one value could fill the memory.

        Raises:
            ConfigError: one is larger.
        """
        try:
            given = inspect.signature(provider).bind(*self.args, **dict(self.kwargs)).arguments
        except (TypeError, ValueError):  # wrong arguments, which Faker itself will name
            given = {}
        for name, value in {**given, **given.get("kwargs", {})}.items():
            counts = value if isinstance(value, tuple | list) else [value]
            if _COUNTS.search(name) and any(isinstance(count, int | float) and count > _MOST_COUNT for count in counts):
                raise ConfigError(f"{name} of {self.provider} is above {_MOST_COUNT:,}", "give a smaller number")


def _is_data(value: object) -> bool:
    """Whether it is text, a number, a date or nothing, or consists of these."""
    if isinstance(value, Mapping):
        return all(map(_is_data, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or isinstance(value, str | int | float | Decimal | date | time | timedelta)


@dataclass(slots=True)
class Sources:
    """Vocabularies and tables, each drawn or read once per process."""

    _pools: dict[tuple[Vocabulary, int], Column] = field(default_factory=dict)
    _distinct: dict[tuple[Vocabulary, int], "_Distinct"] = field(default_factory=dict)
    _tables: dict[Path, Table] = field(default_factory=dict)

    def pool(self, vocabulary: Vocabulary, seed: int) -> Column:
        """A pool of `vocabulary.size` values, at the provider's own frequencies."""
        key = vocabulary, seed
        if key not in self._pools:
            from generators.clock import frozen_faker

            draw = vocabulary.source(seed)  # loads the provider; only then can its clock be frozen
            with frozen_faker():
                self._pools[key] = from_values(list(_bounded(vocabulary, draw)))
        return self._pools[key]

    def distinct(self, vocabulary: Vocabulary, seed: int, start: int, stop: int) -> Column:
        """Values [start, stop) of the endless sequence of the provider's distinct values, as text.

        Raises:
            ConfigError: the provider has fewer values.
        """
        key = vocabulary, seed
        if key not in self._distinct:
            self._distinct[key] = _Distinct(vocabulary, seed)
        return from_values([str(value) for value in self._distinct[key].upto(stop)[start:stop]])

    def table(self, path: Path) -> Table:
        """The rows of a CSV (every cell as text) or Parquet file.

        Raises:
            ConfigError: the file can't be read, or has no rows.
        """
        if path not in self._tables:
            self._tables[path] = _read_table(path)
        return self._tables[path]

    def adopt(self, path: Path, table: Table) -> None:
        """Use `table` wherever a spec refers to `path`."""
        self._tables[path] = table

    def identities(self) -> Mapping[str, Mapping[str, object]]:
        """Digests of what was drawn and read: a Faker upgrade that changes a value changes a digest."""
        pools: dict[str, Mapping[str, object]] = {
            f"{vocabulary}": {"values": vocabulary.size, "sha256": _digest(pool)}
            for (vocabulary, _), pool in sorted(self._pools.items(), key=lambda item: str(item[0]))
        }
        for (vocabulary, _), drawn in sorted(self._distinct.items(), key=lambda item: str(item[0])):
            first = from_values([str(value) for value in drawn.values[:1000]])
            pools[f"{vocabulary}, distinct"] = {"values": len(first), "sha256": _digest(first)}
        files = {
            path.name: {"rows": len(next(iter(table.values()))), "sha256": hashlib.sha256(_content(path)).hexdigest()}
            for path, table in sorted(self._tables.items())
            if path.is_file()
        }
        return {"vocabularies": pools, "files": files}


def _bounded(vocabulary: Vocabulary, draw: Callable[[], object]) -> Iterator[object]:
    """The values of a pool.

    Raises:
        ConfigError: they are too long for memory.
    """
    characters = 0
    for _ in range(vocabulary.size):
        value = draw()
        characters += len(value if isinstance(value, str | bytes) else str(value))
        if characters > _MOST_CHARACTERS:
            raise ConfigError(
                f"a pool of {vocabulary.size:,} values of {vocabulary} has more than {_MOST_CHARACTERS:,} characters",
                "give a smaller pool, or arguments for shorter values",
            )
        yield value


class _Distinct:
    """The distinct values of a provider, in the order in which it draws them."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._draw = vocabulary.source(seed)
        self._seen: set[str] = set()
        self.values: list[object] = []

    def upto(self, count: int) -> list[object]:
        from generators.clock import frozen_faker

        misses = 0
        with frozen_faker():
            while len(self.values) < count:
                value = self._draw()
                if str(value) in self._seen:
                    misses += 1
                    if misses > _MAX_MISSES:
                        raise ConfigError(
                            f"{self._vocabulary} has only about {len(self.values):,} values, but {count:,} are needed",
                            "choose another provider, combine it with another field in a template, or drop `unique`",
                        )
                    continue
                misses = 0
                self._seen.add(str(value))
                self.values.append(value)
        return self.values


def _digest(column: Column) -> str:
    return hashlib.sha256("\n".join(column.text().filled("")).encode()).hexdigest()


def _content(path: Path) -> bytes:
    return reading.read_bytes(path, reading.MOST_TABLE_BYTES)


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Rows of cells as columns of text; empty cells are missing values."""
    return {
        name: texts([cell or None for cell in cells])
        for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }


def _read_table(path: Path) -> Table:
    """A file's columns; the cells of a CSV stay as the user wrote them: 007 does not become 7."""
    hint = "check its name; names in a spec are relative to the spec's folder"
    try:
        if path.suffix.lower() in {".parquet", ".pq"}:
            return _read_parquet(path)
        if _content(path).startswith(_COMPRESSED):
            raise ConfigError(f"{path} is compressed", "unpack it")
        header, *rows = [cells for _, cells in rows_of(path, hint)] or [[]]
        if rows:
            return table_of(header, rows)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist", hint) from error
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ConfigError(f"{path} can't be read: {reason}", "give a CSV with a header, or a Parquet file") from error
    raise ConfigError(f"{path} has no rows", "give a file with a header and at least one row")


def _read_parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from harness.store.parquet import check_expansion

    check_expansion(path)
    table = pq.read_table(path)
    if not len(table):
        raise ConfigError(f"{path} has no rows", "give a file with a header and at least one row")
    of = pa.types
    return {
        name: column_of(
            column.to_pylist(), np.dtype("datetime64[s]" if of.is_timestamp(column.type) else "datetime64[D]")
        )
        if of.is_temporal(column.type) and not of.is_time(column.type)
        else from_values(column.to_pylist())
        for name, column in zip(table.column_names, table.columns, strict=True)
    }

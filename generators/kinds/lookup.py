"""Values from elsewhere: Faker's vocabularies, rows of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from generators import streams
from generators.block import Block
from generators.columns import Column
from generators.kinds.kind import Definition, Independent, Kind, KindType
from generators.sources import Vocabulary
from generators.streams import Ints, Stream
from harness.documents import Place
from harness.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Fake(Independent):
    """Values of a Faker provider: drawn from a pool of `vocabulary.size`, or `unique`."""

    vocabulary: Vocabulary
    unique: bool = False

    main: ClassVar[str] = "provider"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; provider, locale, arguments and size of the pool."""
        provider, _, inline = str(definition["provider"]).partition(".")
        if not provider.isidentifier() or provider.startswith("_"):
            raise (place / "provider").error(f"'{provider}' is not a provider", "write a method name, such as company")
        args = definition.get("args", [])
        kwargs = dict(args) if isinstance(args, dict) else {}
        positional = tuple(args) if isinstance(args, list) else ()
        for part in inline.split(",") if inline else ():
            key, equals, value = part.partition("=")
            if not equals:
                raise (place / "provider").error(
                    f"'{part}' is not an argument", "write arguments as pyint.min_value=1,max_value=9, or under args:"
                )
            kwargs[key.strip()] = _literal(value.strip())
        vocabulary = Vocabulary(
            provider,
            definition.get("locale", "en_US"),
            tuple(_frozen(arg) for arg in positional),
            tuple(sorted((key, _frozen(value)) for key, value in kwargs.items())),
            definition.get("pool", 1000),
            definition.get("weighted", False),
        )
        return cls(vocabulary, definition.get("unique", False))

    def draw(self, block: Block) -> Column:
        """A random value of the pool; if `unique`, the row's own distinct value."""
        if self.unique:
            seed = streams.seed_of(Stream(block.seed, block.path, "faker"))
            return block.sources.distinct(self.vocabulary, seed, block.start, block.stop)
        # Fields with the same vocabulary share one pool, because drawing it is expensive.
        pool = block.sources.pool(self.vocabulary, streams.seed_of(Stream(block.seed, str(self.vocabulary), "faker")))
        return pool.take(block.index_below(self.vocabulary.size))


def _literal(text: str) -> object:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class FromFile(Independent):
    """A column of a user's CSV or Parquet file.

    Fields with the same file, draw and group use the same row, so that related values stay together.
    `draw` is "with_replacement", "without_replacement" (each row at most once, in a random order), "in_order", or
    "in_order_then_random" (the file's rows first, then rows drawn with replacement).
    """

    path: Path
    column: str
    how: str = "with_replacement"
    group: str = ""

    main: ClassVar[str] = "path"

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; path, column, draw and group."""
        path = place.document.folder / str(definition["path"])
        column = definition.get("column", str(place.path[-1]) if place.path else "")
        return cls(path, column, definition.get("draw", "with_replacement"), definition.get("group", ""))

    def draw(self, block: Block) -> Column:
        """The cell of the drawn row."""
        table = block.sources.table(self.path)
        if self.column not in table:
            raise ConfigError(
                f"{self.path} has no column '{self.column}', which the field {block.path} refers to",
                f"its columns are: {', '.join(table)}",
            )
        cells = table[self.column]
        rows = self._rows(block.at(f"file {self.path.name} {self.how} {self.group}"), len(cells), block.path)
        return cells.take(rows)

    def _rows(self, block: Block, height: int, path: str) -> Ints:
        if self.how == "with_replacement":
            return block.index_below(height)
        if self.how == "in_order_then_random":
            rows = block.rows()
            return np.where(rows < height, rows, block.index_below(height))
        if block.total > height:
            raise ConfigError(
                f"the field {path} uses each row of {self.path} once: it has {height:,}, {block.total:,} are needed",
                f"generate at most {height:,} rows, or draw with_replacement",
            )
        return block.rows() if self.how == "in_order" else block.permuted(height)


KINDS: dict[str, KindType] = {"faker": Fake, "from_file": FromFile}

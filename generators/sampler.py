"""Draws the columns of a spec in blocks of rows."""

import math
from collections.abc import Mapping
from dataclasses import replace

from generators import portable, streams
from generators.block import Block
from generators.columns import Column, column_of, with_missing
from generators.sources import Sources
from generators.spec import Field, Spec
from generators.streams import Floats, Stream
from harness.model.errors import ConfigError, PipeswarmError

_MAX_REDRAWS = 1000


class Sampler:
    """Draws the `total` rows of a spec and a seed.

    Any block can be drawn on its own, unless the spec is `sequential`: then blocks are drawn in order, from the first.

    Raises:
        ConfigError: a unique field has fewer values than there are rows.
    """

    def __init__(self, spec: Spec, seed: int, total: int, sources: Sources | None = None) -> None:
        self._spec = spec
        self._fields = {field.name: field for field in spec.fields}
        self._seed = seed
        self._total = total
        self.sources = sources or Sources()
        self._seen: dict[str, dict[object, int]] = {f.name: {} for f in spec.fields if f.unique}
        for field in spec.fields:
            size = getattr(field.kind, "size", None) if getattr(field.kind, "unique", False) else None
            if size is not None and size < total:
                raise ConfigError(
                    f"{spec.source}: fields.{field.name} is unique but has only {size:,} values for {total:,} rows",
                    "widen it, generate fewer rows, or drop `unique`",
                )

    def block(self, start: int, stop: int) -> dict[str, Column]:
        """The columns of rows [start, stop), in the order of the file.

        Raises:
            ConfigError: a field can't be drawn; the message names it.
        """
        drawn: dict[str, Column] = {}
        whole = Block(start, stop, self._total, self._seed, self.sources, drawn, ranks=self._ranks(start, stop))
        for name in self._spec.order:
            drawn[name] = self._column(self._fields[name], whole.at(name))
        return {name: drawn[name] for name in self._spec.columns}

    def _column(self, field: Field, block: Block) -> Column:
        try:
            column = field.kind.draw(block)
            if field.unique:
                column = self._made_unique(field, block, column)
        except PipeswarmError:
            raise
        except (ValueError, ArithmeticError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigError(
                f"{self._spec.source}: fields.{field.name}: {first}", "fix the definition, or the fields it refers to"
            ) from error
        if not field.nullable:
            return column
        return with_missing(column, streams.uniform(block.words("null")) < field.nullable)

    def _ranks(self, start: int, stop: int) -> Mapping[str, Floats]:
        """The uniforms of correlated fields: a Gaussian copula over the fields' own uniforms."""
        latent: dict[str, Floats] = {}

        def normal(name: str) -> Floats:
            if name not in latent:
                field = self._fields[name]
                own = portable.normal_quantile(streams.uniform(streams.words(Stream(self._seed, name), start, stop)))
                if field.correlated_with is not None:
                    # Spearman's rho of a Gaussian copula is 6/pi asin(r/2) (Pearson, 1907).
                    r = min(1.0, max(-1.0, 2.0 * math.sin(math.pi * field.rank / 6.0)))
                    own = r * normal(field.correlated_with) + math.sqrt(1.0 - r * r) * own
                latent[name] = own
            return latent[name]

        chosen = [field.name for field in self._spec.fields if field.correlated_with is not None]
        return {name: portable.normal_cdf(normal(name)) for name in chosen}

    def _made_unique(self, field: Field, block: Block, column: Column) -> Column:
        """Redraws values that an earlier row has, row by row, so that later rows never change a prefix."""
        values = column.to_list()
        seen = self._seen[field.name]
        changed = False
        for index, drawn in enumerate(values):
            value, row, attempt = drawn, block.start + index, 0
            while value in seen and seen[value] != row:
                attempt += 1
                if field.kind.derived or getattr(field.kind, "unique", False) or attempt > _MAX_REDRAWS:
                    raise self._not_unique(field, value, seen[value], row)
                (value,) = field.kind.draw(block.row(row, attempt)).to_list()
                values[index], changed = value, True
            seen[value] = row
        return replace(column_of(values, column.values.dtype), is_json=column.is_json) if changed else column

    def _not_unique(self, field: Field, value: object, earlier: int, row: int) -> ConfigError:
        where = f"{self._spec.source}: fields.{field.name}"
        return ConfigError(
            f"{where} is unique, but rows {earlier + 1:,} and {row + 1:,} are both {value!r}",
            "make one of the fields that it is derived from unique"
            if field.kind.derived
            else "widen its range, give it more decimals, or generate fewer rows",
        )

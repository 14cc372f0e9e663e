"""Infers a spec from a sample of scenarios: each column's kind and marginal distribution, and rank correlations."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from generators.inference.compose import composed
from generators.inference.draft import Definition, Draft
from generators.inference.learn import learned, pattern_of
from generators.streams import Floats
from harness.model.errors import ConfigError
from harness.targets.table import rows_of

_MAX_ROWS = 100_000  # a larger sample adds nothing to a marginal distribution
_MIN_CORRELATION = 0.25  # weaker rank correlations are ignored
_MIN_PAIRS = 30
_MONOTONE = ("uniform", "normal", "lognormal", "quantiles")


def read_sample(path: Path, most: int | None = _MAX_ROWS) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of a CSV, at most the first `most`.

    Raises:
        ConfigError: it is not a CSV with a header and rows of one length.
    """
    lines = rows_of(path, "check the sample's file name")
    _, header = next(lines, (0, []))
    rows = list(itertools.islice(lines, most))
    if not header or not rows:
        raise ConfigError(f"{path} has {'no rows' if header else 'no header'}", "a sample needs a header and rows")
    duplicates = [name for name, count in Counter(header).items() if count > 1 or not name]
    if duplicates:
        raise ConfigError(
            f"{path}: the column '{duplicates[0]}' is duplicated or unnamed", "give columns distinct names"
        )
    for number, cells in rows:
        if len(cells) != len(header):
            raise ConfigError(f"{path}, row {number}: {len(cells)} cells, but the header has {len(header)}", "fix it")
    return header, [dict(zip(header, cells, strict=True)) for _, cells in rows]


def draft_from(header: Sequence[str], rows: Sequence[Mapping[str, str]], source: Path) -> Draft:
    """A draft of the sample's columns. Text without a recognisable pattern is drawn from the sample, `source`."""
    draft = Draft(reserved=frozenset(header))
    found = {name: learned(name, [row[name] for row in rows], draft) for name in header}
    known = [name for name in header if found[name] is not None]
    for name in header:
        definition = found[name]
        if definition is None:
            definition = _text(name, rows, known, draft, source)
            known += [name] if "from_file" not in definition else []
        draft.columns[name] = {**definition, **_missing([row[name] for row in rows])}
    _correlate(draft, {name: _numbers(name, rows) for name in header if set(_MONOTONE) & draft.columns[name].keys()})
    return draft


def _text(name: str, rows: Sequence[Mapping[str, str]], known: Sequence[str], draft: Draft, source: Path) -> Definition:
    """Text with many distinct values: composed of other columns, of one pattern, or drawn from the sample."""
    template = composed(name, rows, known, draft)
    if template is not None:
        return template
    pattern = pattern_of(name, [row[name] for row in rows if row[name]], draft)
    if pattern is not None:
        return {"template": pattern}
    draft.notes.append(f"{name} has no recognisable pattern: its values are drawn from {source.name}")
    return {"from_file": str(source.resolve()), "column": name, "group": name}


def _missing(cells: Sequence[str]) -> Definition:
    empty = sum(not cell for cell in cells)
    return {"nullable": round(empty / len(cells), 4)} if 0 < empty < len(cells) else {}


def _numbers(name: str, rows: Sequence[Mapping[str, str]]) -> Floats:
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


def _correlate(draft: Draft, numbers: Mapping[str, Floats]) -> None:
    """Correlate each numeric column with the earlier column of the strongest rank correlation."""
    names = list(numbers)
    for index, name in enumerate(names):
        ranked = [(abs(rho), rho, other) for other in names[:index] if (rho := spearman(numbers[other], numbers[name]))]
        if ranked and max(ranked)[0] >= _MIN_CORRELATION:
            _, rho, other = max(ranked)
            draft.columns[name]["correlation"] = {"with": other, "rank": round(rho, 3)}


def spearman(left: Floats, right: Floats) -> float:
    """Spearman's rank correlation over rows where both are present; 0 for fewer than 30 rows or a constant."""
    both = ~(np.isnan(left) | np.isnan(right))
    if both.sum() < _MIN_PAIRS:
        return 0.0
    a, b = _ranks(left[both]), _ranks(right[both])
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Floats) -> Floats:
    """Ranks from 0; ties share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Any = last - (counts + 1) / 2
    ranks: Floats = means[inverse]
    return ranks

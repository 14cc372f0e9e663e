"""Infers the kind and the marginal distribution of one column of a sample."""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from generators import portable
from generators.inference.draft import Definition, Draft, neat
from generators.kinds.text import escaped
from generators.streams import Floats

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DIGITS = re.compile(r"\d{1,15}")
_INSTANTS = (
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d",
)  # fmt: skip
_MAX_CHOICES = 20  # up to this many distinct values, each seen several times, are a list to choose from
_MAX_LABELS = 200
_STEPS = (86_400, 3600, 1800, 900, 600, 300, 60, 1)
_FIT = 1.63  # Kolmogorov's bound at 1 %: a distribution with a distance above this / sqrt(n) is rejected
_QUANTILES = 101


def learned(name: str, cells: Sequence[str], draft: Draft) -> Definition | None:
    """A definition of the column's non-empty cells; None for text with many distinct values."""
    present = [cell for cell in cells if cell]
    if not present:
        return {"choice": [None]}
    sequence = _sequence(present) if len(present) == len(cells) else None
    return sequence or _by_type(name, present, draft)


def _by_type(name: str, present: list[str], draft: Draft) -> Definition | None:
    if {cell.lower() for cell in present} <= {"true", "false"}:
        return {"boolean": round(sum(cell.lower() == "true" for cell in present) / len(present), 4)}
    if all(_UUID.fullmatch(cell) for cell in present):
        return {"kind": "uuid"}
    if all(_is_number(cell) for cell in present):
        return _numbers(name, present, draft)
    return _instants(present) or _documents(name, present, draft) or _labels(present)


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell)) and not _padded(cell) and math.isfinite(float(cell))


def _padded(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == "0" and cell[1].isdigit()


def _sequence(cells: list[str]) -> Definition | None:
    if len(cells) < 2 or not all(_INTEGER.fullmatch(cell) for cell in cells):
        return None
    start, second = int(cells[0]), int(cells[1])
    step = second - start
    if step == 0 or any(int(cell) != start + index * step for index, cell in enumerate(cells)):
        return None
    return {"sequence": start} | ({"step": step} if step != 1 else {})


def _numbers(name: str, present: list[str], draft: Draft) -> Definition:
    whole = all(_INTEGER.fullmatch(cell) for cell in present)
    values = np.array([float(cell) for cell in present])
    counts = Counter(present)
    if len(counts) <= _MAX_CHOICES and len(present) >= 3 * len(counts):
        return _weighted({_scalar(cell): count for cell, count in counts.items()})
    decimals = 0 if whole else min(max(len(cell.lower().partition("e")[0].partition(".")[2]) for cell in present), 15)
    if any("e" in cell.lower() for cell in present):
        decimals = 15
    if not whole:
        return {**_distribution(values), "decimals": decimals}
    low, high = values.min() - 0.5, values.max() + 0.5
    if _distance((np.sort(values) - low) / (high - low)) <= _FIT / math.sqrt(len(values)) + 0.5 / (high - low):
        return {"integer": [int(values.min()), int(values.max())]}
    definition = _distribution(values)
    source = draft.helper(name, definition)
    return {"expression": f"round({source})"}


def _scalar(cell: str) -> Any:
    return int(cell) if _INTEGER.fullmatch(cell) else float(cell) if _NUMBER.fullmatch(cell) else cell


def _weighted(counts: dict[Any, int]) -> Definition:
    """The levels of a sweep if all are equally frequent, otherwise a weighted choice."""
    numeric = all(isinstance(value, int | float) for value in counts)
    levels = sorted(counts) if numeric else list(counts)
    if numeric and len(counts) > 1 and max(counts.values()) - min(counts.values()) <= 1:
        return {"scale": levels}
    return {"choice": {level: counts[level] for level in levels}}


def _distribution(values: Floats) -> Definition:
    """The best-fitting named distribution, or the sample's quantiles if none fits."""
    low, high = float(values.min()), float(values.max())
    candidates: list[tuple[Definition, Floats]] = []
    ordered = np.sort(values)
    candidates.append(({"uniform": [low, high]}, np.clip((ordered - low) / (high - low or 1.0), 0, 1)))
    with np.errstate(over="ignore"):
        mean, sd = float(values.mean()), float(values.std())
    if 0 < sd < math.inf:
        candidates.append(({"normal": [neat(mean), neat(sd)]}, portable.normal_cdf((ordered - mean) / sd)))
    if low > 0:
        logs = portable.log(ordered)
        centre, spread = float(logs.mean()), float(logs.std())
        if spread > 0:
            definition = {"lognormal": [neat(math.exp(centre)), neat(spread)]}
            candidates.append((definition, portable.normal_cdf((logs - centre) / spread)))
    distance, best = min(((_distance(cdf), index) for index, (_, cdf) in enumerate(candidates)), default=(1.0, 0))
    if distance <= _FIT / math.sqrt(len(values)):
        return candidates[best][0]
    points = np.quantile(values, np.linspace(0, 1, min(_QUANTILES, len(values))))
    return {"quantiles": [neat(float(point), 10) for point in points]}


def _distance(cdf: Floats) -> float:
    """Kolmogorov's distance between the sample and a distribution; `cdf` is its values at the ordered sample."""
    steps = np.arange(len(cdf) + 1) / len(cdf)
    return float(max(np.max(cdf - steps[:-1]), np.max(steps[1:] - cdf)))


def _instants(present: list[str]) -> Definition | None:
    for form in _INSTANTS:
        try:
            moments = [dt.datetime.strptime(cell, form).replace(tzinfo=dt.UTC) for cell in present]
        except ValueError:
            continue
        first, last = min(moments), max(moments)
        if "%H" not in form:
            days = [f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"]
            return {"datetime": days} if form == "%Y-%m-%d" else {"datetime": days, "step": "1d", "format": form}
        seconds = [int((moment - first).total_seconds()) for moment in moments]
        step = next(step for step in _STEPS if all(second % step == 0 for second in seconds))
        end = last + dt.timedelta(seconds=step)
        ends = [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (first, end)]
        return {"datetime": ends, "step": step} | ({} if form == _INSTANTS[1] else {"format": form})
    return None


def _documents(name: str, present: list[str], draft: Draft) -> Definition | None:
    if not all(cell[0] in "{[" for cell in present):
        return None
    try:
        values = [orjson.loads(cell) for cell in present]
    except orjson.JSONDecodeError:
        return None
    part = _part(name, values, draft)
    return None if part is None else {"json": part}


def _part(name: str, values: list[Any], draft: Draft) -> Any:
    """The common structure of JSON values; None if there is none."""
    first = values[0]
    if all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        parts = {key: _part(key, [value[key] for value in values], draft) for key in first}
        return None if any(part is None for part in parts.values()) else parts
    if all(isinstance(value, list) and len(value) == len(first) for value in values):
        items = [_part(name, [value[index] for value in values], draft) for index in range(len(first))]
        return None if any(item is None for item in items) else items
    if any(isinstance(value, dict | list) for value in values):
        return None
    if len({str(value) for value in values}) <= _MAX_CHOICES or any(value is None for value in values):
        counts = Counter(orjson.dumps(value) for value in values)
        return {"$": {"choice": [orjson.loads(value) for value in counts], "weights": list(counts.values())}}
    cells = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values]
    definition = _by_type(name, cells, draft)
    return None if definition is None else {"$": definition}


def _labels(present: list[str]) -> Definition | None:
    counts = Counter(present)
    if len(counts) > min(_MAX_LABELS, max(len(present) // 2, 1)):
        return None
    return {"choice": [*counts], "weights": [*counts.values()]} if len(counts) > 1 else {"choice": [*counts]}


def pattern_of(name: str, present: list[str], draft: Draft) -> str | None:
    """A template of texts that differ only in their numbers; None for other texts."""
    skeletons = {tuple(_DIGITS.split(cell)) for cell in present}
    pieces = skeletons.pop()
    if skeletons or len(pieces) < 2:
        return None
    columns = list(zip(*(_DIGITS.findall(cell) for cell in present), strict=True))
    if any(_mixed(digits) for digits in columns):
        return None
    pattern = escaped(pieces[0])
    for digits, piece in zip(columns, pieces[1:], strict=True):
        plain = [str(int(number)) for number in digits]
        definition = _sequence(plain) or _numbers(name, plain, draft)
        form = f":0{len(digits[0])}d" if any(_padded(number) for number in digits) else ""
        pattern += f"{{{draft.helper(name, definition)}{form}}}" + escaped(piece)
    return pattern


def _mixed(digits: Sequence[str]) -> bool:
    """Whether some numbers are zero-padded, but not all to the same width."""
    return any(_padded(number) for number in digits) and len({len(number) for number in digits}) > 1

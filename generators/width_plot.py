"""The width of a workload over time, as an SVG that needs no library: stacked steps, one colour for each tenant."""

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from generators.workload import Arrivals
from harness.model.errors import ConfigError
from harness.model.units import format_duration

# Okabe & Ito's palette, which people with colour vision deficiencies can tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_WIDTH, _HEIGHT = 960, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 50, 60
_BINS = 100


def plot(arrivals: Arrivals, stage_s: float, duration_s: float, phases: Sequence[tuple[str, float]] = ()) -> str:
    """The SVG. `phases` are (name, start in seconds after the first arrival)."""
    stages = max(1, math.ceil(duration_s / stage_s - 1e-9))
    names = list(dict.fromkeys(sorted(arrivals.tenants)))
    counts = np.zeros((len(names), stages), dtype=np.int64)
    index = {name: row for row, name in enumerate(names)}
    for due_s, tenant in zip(arrivals.due_s, arrivals.tenants, strict=True):
        counts[index[tenant], min(int(due_s / stage_s + 1e-9), stages - 1)] += 1
    totals = counts.sum(axis=0)
    step = _round_up(max(int(totals.max(initial=1)), 1) / 5)
    top = step * math.ceil(max(int(totals.max(initial=1)), 1) / step)
    title = f"Runs started in each stage of {format_duration(stage_s)}"
    runs = f"{len(arrivals.due_s)} runs over {format_duration(duration_s)}, at most {totals.max(initial=0)} in a stage"
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f"<desc>{runs}</desc>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="15">{title}</text>',
        *_scales(top, step, duration_s),
        *_phases(phases, duration_s),
        *_areas(counts, top, stages),
        *_legend(names),
        "</svg>",
        "",
    ])  # fmt: skip


def picture_format(path: Path) -> Callable[[str], bytes]:
    """What makes the file's bytes of an SVG, told by the file's ending.

    Raises:
        ConfigError: the ending is neither .svg nor .png, or the library that draws a PNG is not installed.
    """
    match path.suffix.lower():
        case ".svg":
            return str.encode
        case ".png":
            try:
                from resvg_py import svg_to_bytes
            except ImportError:
                raise ConfigError(
                    f"{path}: a PNG is drawn by resvg, which is not installed",
                    "pip install 'pipeswarm[png]', or use .svg",
                ) from None
            return lambda svg: bytes(svg_to_bytes(svg_string=svg, zoom=2.0))
        case _:
            raise ConfigError(f"{path} ends neither in .svg nor in .png", f"name it {path.stem}.svg or {path.stem}.png")


def stage_for(duration_s: float) -> float:
    """A round length of stage that makes about a hundred of them."""
    return float(_round_up(max(duration_s, 1.0) / _BINS))


def _x(share: float) -> float:
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(share: float) -> float:
    return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def _round_up(value: float) -> int:
    """The next number of the form 1, 2 or 5 times a power of ten, at least 1."""
    power = 10 ** max(0, math.floor(math.log10(max(value, 1))))
    return int(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value))


def _scales(top: int, step: int, duration_s: float) -> list[str]:
    lines = []
    for width in range(0, top + 1, step):
        y = _y(width / top)
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{width}</text>')
    for tick in range(7):
        share = tick / 6
        label = format_duration(share * duration_s) if tick else "0"
        lines.append(f'<text x="{_x(share)}" y="{_y(0) + 18}" text-anchor="middle">{label}</text>')
    return lines


def _phases(phases: Sequence[tuple[str, float]], duration_s: float) -> list[str]:
    lines = []
    for name, start_s in phases:
        x = _x(start_s / duration_s)
        lines.append(f'<line x1="{x}" x2="{x}" y1="{_TOP - 14}" y2="{_y(0)}" stroke="#888" stroke-dasharray="3 3"/>')
        lines.append(f'<text x="{x + 4}" y="{_TOP - 6}" fill="#555">{escape(name)}</text>')
    return lines


def _areas(counts: np.ndarray[tuple[int, int], np.dtype[np.int64]], top: int, stages: int) -> list[str]:
    shapes = []
    floor = np.zeros(stages, dtype=np.int64)
    for row, count in enumerate(counts):
        ceiling = floor + count
        upper = [f"{_x((k + side) / stages)},{_y(ceiling[k] / top)}" for k in range(stages) for side in (0, 1)]
        lower = [f"{_x((k + side) / stages)},{_y(floor[k] / top)}" for k in reversed(range(stages)) for side in (1, 0)]
        colour = _COLOURS[row % len(_COLOURS)]
        shapes.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" fill-opacity="0.8"/>')
        floor = ceiling
    return shapes


def _legend(names: Sequence[str]) -> list[str]:
    lines = []
    x = float(_LEFT)
    for row, name in enumerate(names):
        colour = _COLOURS[row % len(_COLOURS)]
        lines.append(f'<rect x="{x}" y="{_HEIGHT - 22}" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="{_HEIGHT - 12}">{escape(name) or "all"}</text>')
        x += 40 + 7 * len(name)
    return lines

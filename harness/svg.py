"""Plots as SVG, without a drawing library: a frame, two axes, and shapes in pixels; written as .svg or .png."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from math import log
from pathlib import Path

from harness.model.errors import ConfigError

# Okabe & Ito's palette, which people with colour vision deficiencies can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#999999")
INK, MUTED, _GRID = "#1d2329", "#59636e", "#d8d8d4"

Pixels = Iterable[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high`, clamped, to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value, rounded to a tenth."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = log(value / self.low) / log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * share, 1)


class Plot:
    """A titled plot. Shapes appear in the order in which they are drawn.

    Keyword arguments of the drawing methods are SVG attributes (`stroke_width=2`); `tooltip` appears under the mouse.

    Attributes:
        left: edge of the plot area in pixels, as are `right`, `top` and `bottom`.
    """

    def __init__(self, title: str, description: str, size: tuple[int, int], margins: tuple[int, int, int, int]) -> None:
        """`size` is width and height, `margins` are left, right, top and bottom, all in pixels."""
        width, height = size
        self.left, self.top = margins[0], margins[2]
        self.right, self.bottom = width - margins[1], height - margins[3]
        look = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="{INK}"'
        self._shapes = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {look} role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
        ]
        self.rectangle(0, 0, width, height, fill="white")
        self.text(self.left, 28, title, font_size=18, font_weight=600)

    def svg(self) -> str:
        """The whole document as SVG text."""
        return "\n".join([*self._shapes, "</svg>", ""])

    def x_scale(self, low: float, high: float, *, logarithmic: bool = False) -> Scale:
        """Values across the plot area."""
        return Scale(low, high, self.left, self.right, logarithmic)

    def y_scale(self, low: float, high: float, *, logarithmic: bool = False) -> Scale:
        """Values up the plot area."""
        return Scale(low, high, self.bottom, self.top, logarithmic)

    def x_axis(self, scale: Scale, ticks: Iterable[tuple[float, str]], *, grid: bool = True) -> None:
        """Labels below the plot area, each with a grid line."""
        for value, label in ticks:
            x = scale(value)
            if grid:
                self.line([(x, self.top), (x, self.bottom)], stroke=_GRID)
            self.text(x, self.bottom + 19, label, text_anchor="middle")

    def y_axis(self, scale: Scale, ticks: Iterable[tuple[float, str]]) -> None:
        """Labels to the left of the plot area, each with a grid line."""
        for value, label in ticks:
            y = scale(value)
            self.line([(self.left, y), (self.right, y)], stroke=_GRID)
            self.text(self.left - 9, y + 4.5, label, text_anchor="end")

    def text(self, x: float, y: float, content: str, **style: str | float) -> None:
        """`content` on the base line `y`."""
        self._draw("text", {"x": x, "y": y, **style}, escape(content))

    def line(self, points: Pixels, **style: str | float) -> None:
        """An open line through the points."""
        self._draw("polyline", {"points": _joined(points), "fill": "none", **style})

    def polygon(self, points: Pixels, tooltip: str = "", **style: str | float) -> None:
        """A closed, filled shape through these points (in pixels)."""
        self._draw("polygon", {"points": _joined(points), **style}, _titled(tooltip))

    def rectangle(self, x: float, y: float, width: float, height: float, **style: str | float) -> None:
        """`x` and `y` are the upper left corner."""
        self._draw("rect", {"x": x, "y": y, "width": round(width, 1), "height": round(height, 1), **style})

    def dot(self, x: float, y: float, tooltip: str = "", **style: str | float) -> None:
        """A small filled circle at a point (in pixels)."""
        self._draw("circle", {"cx": x, "cy": y, "r": 4.5, **style}, _titled(tooltip))

    def _draw(self, tag: str, attributes: dict[str, str | float], content: str = "") -> None:
        given = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self._shapes.append(f"<{tag} {given}>{content}</{tag}>" if content else f"<{tag} {given}/>")


def encoder(path: Path) -> Callable[[str], bytes]:
    """What turns an SVG into the file's bytes, by the file's ending.

    Raises:
        ConfigError: the ending is neither .svg nor .png, or resvg, which renders PNG, is not installed.
    """
    match path.suffix.lower():
        case ".svg":
            return str.encode
        case ".png":
            try:
                from resvg_py import svg_to_bytes
            except ImportError:
                raise ConfigError(
                    f"{path}: rendering PNG needs resvg, which is not installed",
                    "pip install 'pipeswarm[png]', or use .svg",
                ) from None
            return lambda svg: bytes(svg_to_bytes(svg_string=svg, zoom=2.0))
        case _:
            raise ConfigError(f"{path} ends neither in .svg nor in .png", f"name it {path.stem}.svg or {path.stem}.png")


def _joined(points: Pixels) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _titled(tooltip: str) -> str:
    return f"<title>{escape(tooltip)}</title>" if tooltip else ""

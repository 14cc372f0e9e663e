"""An answered capacity question as a picture, .svg or .png, or as an offline page around it, .html."""

from collections.abc import Callable
from pathlib import Path

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answered, amount, interval, sentence
from harness.model import ConfigError, counted
from harness.svg import encoder
from reports.capacity_plot import draw, picture


def writer(path: Path) -> Callable[[Answered], None]:
    """What writes the picture, by the file's ending.

    Raises:
        ConfigError: the ending is none of .svg, .png and .html, or the library for it is not installed.
    """
    if path.suffix.lower() not in {".svg", ".png", ".html"}:
        raise ConfigError(f"--plot {path} ends in none of .svg, .png and .html", "for example: --plot capacity.svg")
    page = path.suffix.lower() == ".html"
    encode = str.encode if page else encoder(path)

    def write(answered: Answered) -> None:
        svg = draw(picture(answered))
        try:
            path.write_bytes(_page(answered, svg) if page else encode(svg))
        except OSError as error:
            raise ConfigError(f"--plot {path} can't be written: {error.strerror}", "give another file") from error

    return write


def _page(answered: Answered, svg: str) -> bytes:
    from markupsafe import Markup

    from reports.page import offline_page

    cells = answered.grid or (answered.first,)
    asked = answered.first.asked
    names = [name for name in (RUNS, NODES, WITHIN) if name != asked]
    rows = [
        (*(amount(name, getattr(c, name)) for name in names),
         *(amount(asked, value) or "none" for value in (c.value, c.low, c.high)),
         answered.binding(c), "; ".join(c.warnings))
        for c in cells
    ]  # fmt: skip
    titles = {RUNS: "Runs", NODES: f"{cells[0].unit.capitalize()}s", WITHIN: "Time"}
    heads = (*(titles[name] for name in names), titles[asked], "At least", "At most", "Binding", "Warnings")
    return offline_page(
        "capacity.html.j2", {}, headline=sentence(answered.first), answered=answered, heads=heads, rows=rows,
        interval=interval(answered.first),
        observations=counted(answered.model.fitted_on.observations, "observation"),
        svg=Markup(svg),  # noqa: S704  # our own drawing, its texts escaped
    )  # fmt: skip

"""``report.html``: one offline file, the verdict and its evidence first."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import orjson
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from harness.model.schedules import in_words
from harness.model.units import format_duration
from reports.costs import cost_table, kinds_table
from reports.figures import Figure, figures
from reports.raw import raw_tables
from reports.report import Report
from reports.summary import baseline_word, measured_text, slo_word
from reports.tables import bound_table, error_table, latency_table, phase_table, seconds_text, worker_table


@dataclass(frozen=True, slots=True)
class Tile:
    """One key figure of the head of the page."""

    name: str
    value: str
    note: str = ""


def render(report: Report) -> bytes:
    """The page as UTF-8. The same report gives the same bytes: no clock, no random ids."""
    drawn = figures(report)
    plan = report.timeline.plan
    return offline_page(
        "report.html.j2",
        drawn,
        report=report,
        plan=plan,
        ledger=report.ledger,
        slos=[(result.slo.text, slo_word(report, result), measured_text(result)) for result in report.slos],
        started=when(report.timeline.start_at),
        tiles=tiles(report),
        store_keys=[key for key in drawn if key.startswith("store-")],
        phase_table=phase_table(report),
        latency_table=latency_table(report),
        error_table=error_table(report),
        cost_table=cost_table(report),
        kinds_table=kinds_table(report),
        bound_table=bound_table(report),
        worker_table=worker_table(report),
        raw=raw_tables(report),
        schedule=in_words(plan.schedule),
        baseline_word=baseline_word(report.regression).lower() if report.regression else "",
        command=shlex.join(plan.command),
        options=sorted((name, value) for name, value in plan.target_options.items() if value not in {"", None}),
    )


def offline_page(template: str, drawn: Mapping[str, Figure], **values: object) -> bytes:
    """A page of ours with its figures, style and scripts inside; `template` is a file beside this one."""
    specs = orjson.dumps({key: f.spec for key, f in drawn.items()}, option=orjson.OPT_SORT_KEYS).decode()
    page = _template(template).render(
        figures=drawn,
        # Inside a script element only "</" could end it early; "<" may be written as an escape in JSON.
        specs=Markup(specs.replace("<", "\\u003c")),  # noqa: S704  # JSON of our own figures, escaped here
        css=_asset("report.css"),
        js=_asset("report.js"),
        plotly=_plotly() if drawn else "",
        **values,
    )
    return page.encode()


def tiles(report: Report) -> list[Tile]:
    """The figures everyone asks for first."""
    counts, flow = report.ledger, report.throughput
    p50, p95 = report.latencies.duration.at(0.5), report.latencies.duration.at(0.95)
    since = "from its creation to its end" if report.observed else "from due to over"
    answer = seconds_text(report.latencies.latency.at(0.95).value) or "unknown"
    answered = Tile("19 of 20 answers", answer, "of the API at most (p95), from due")
    return [
        Tile(
            "Runs succeeded", f"{counts.succeeded:,}",
            f"of {counts.intended:,} {'observed' if report.observed else 'intended'}",
        ),
        Tile("Throughput", f"{flow.per_hour:,.0f}/h", f"over {format_duration(flow.makespan_s)}"),
        Tile("A typical run", seconds_text(p50.value) or "unknown", "half of the runs took longer"),
        Tile("19 of 20 runs", seconds_text(p95.value) or "unknown", f"at most (p95), {since}"),
        _machines(report),
        *(() if report.observed or report.timeline.answers_are_results else (answered,)),
    ]  # fmt: skip


def _machines(report: Report) -> Tile:
    if report.workers is not None:
        return Tile("Replicas", f"{len(report.workers.workers):,}", "that named themselves in their answers")
    if report.peak_nodes is None:
        return Tile("Nodes", "unknown", "none was observed")
    return Tile("Nodes", f"{report.peak_nodes:,}", "ready at once, at most")


def when(instant: int) -> str:
    """An instant for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(instant // 10**9)) if instant else "time unknown"


@cache
def _template(name: str) -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False, keep_trailing_newline=True)
    return environment.from_string((files("reports") / "templates" / name).read_text(encoding="utf-8"))


def _asset(name: str) -> Markup:
    return Markup((files("reports") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704  # our own file


@cache
def _plotly() -> Markup:
    """Plotly's own script, once, so that the page needs no network."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())  # noqa: S704  # the library's script

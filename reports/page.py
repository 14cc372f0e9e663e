"""``report.html``: one offline file, the verdict and its evidence first."""

import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import orjson
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from harness.analysis.result import Result
from harness.model.schedules import in_words
from harness.model.text.inert import one_line, visible
from harness.model.units import format_duration
from reports.costs import allocation_table, cost_table, kinds_table
from reports.figures import Figure, figures
from reports.not_judged import less_table, silent_table
from reports.processes import reported_table
from reports.raw import raw_tables
from reports.spot import spot_tables
from reports.summary import banner, baseline_word, effect_bars, effect_text, measured_text, ranked_by, slo_word
from reports.tables import bound_table, error_table, latency_table, phase_table, seconds_text, worker_table
from reports.tenants import tenant_table
from reports.throughput import throughput_table

# An option with its value: a browser would break the line after any of its dashes.
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*(?:[= ](?!-)(?:'[^']*'|[^\s|;']+))?")


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure at the top of the page."""

    name: str
    value: str
    note: str = ""


def render(result: Result) -> bytes:
    """The page as UTF-8. The same result gives the same bytes: no clock, no random ids."""
    drawn = figures(result)
    plan = result.plan
    return offline_page(
        "report.html.j2",
        drawn,
        result=result,
        plan=plan,
        ledger=result.ledger,
        effect_bars=effect_bars(result),
        ranked_by=ranked_by(result),
        effects={finding.name: effect_text(result, finding.name) for finding in result.diagnosis.findings},
        banner=banner(result),
        slos=[(slo.slo.text, slo_word(result, slo), measured_text(slo)) for slo in result.slos],
        started=when(result.timeline.start_at),
        tiles=tiles(result),
        store_keys=[key for key in drawn if key.startswith("store-")],
        throughput_table=throughput_table(result),
        phase_table=phase_table(result),
        latency_table=latency_table(result),
        error_table=error_table(result),
        cost_table=cost_table(result),
        allocation_table=allocation_table(result),
        kinds_table=kinds_table(result),
        spot_tables=spot_tables(result),
        silent_table=silent_table(result),
        less_table=less_table(result),
        bound_table=bound_table(result),
        worker_table=worker_table(result),
        reported_table=reported_table(result),
        tenant_table=tenant_table(result),
        raw=raw_tables(result),
        schedule=in_words(plan.schedule),
        baseline_word=baseline_word(result.regression).lower() if result.regression else "",
        command=shlex.join(map(one_line, plan.command)),
        options=sorted((name, value) for name, value in plan.target_options.items() if value not in {"", None}),
    )


def offline_page(template: str, drawn: Mapping[str, Figure], **values: object) -> bytes:
    """A page with its figures, style and scripts inside; `template` is a file in ``templates``."""
    specs = orjson.dumps({key: f.spec for key, f in drawn.items()}, option=orjson.OPT_SORT_KEYS).decode()
    page = _template(template).render(
        figures=drawn,
        # Inside a script element only "</" could end it early; "<" may be written as an escape in JSON.
        specs=Markup(specs.replace("<", "\\u003c")),  # noqa: S704  # JSON of our own figures, escaped here
        css=_asset("report.css"),
        js=_asset("report.js"),
        plot=_asset("plot.js", "harness") if drawn else "",
        **values,
    )
    return page.encode()


def tiles(result: Result) -> list[Tile]:
    """The key figures that everyone asks for first."""
    counts, flow, duration = result.ledger, result.throughput, result.latencies.duration
    p50, p95 = (seconds_text(duration.at(level).value) or "unknown" for level in (0.5, 0.95))
    since = "from creation to end" if result.observed else "from due to end"
    latency = seconds_text(result.latencies.latency.at(0.95).value) or "unknown"
    observed = "observed" if result.observed else "intended"
    return [
        Tile("Runs succeeded", f"{counts.succeeded:,}", f"of {counts.intended:,} {observed}"),
        Tile("Throughput", f"{flow.per_hour:,.0f}/h", f"over {format_duration(flow.makespan_s)}"),
        Tile("Run duration p50", p50, since),
        Tile("Run duration p95", p95, since),
        _hosts(result),
        *(
            ()
            if result.observed or result.timeline.answers_are_results
            else (Tile("Submit latency p95", latency, "from due to answered"),)
        ),
    ]


def _hosts(result: Result) -> Tile:
    if result.processes is not None:
        return Tile("CPU time per run", format_duration(result.processes.cpu_s), "with all processes of the run")
    if result.workers is not None:
        return Tile("Replicas", f"{len(result.workers.workers):,}", "named in responses")
    if result.peak_nodes is None:
        return Tile("Nodes", "unknown", "not observed")
    return Tile("Nodes", f"{result.peak_nodes:,}", "peak, ready at once")


def when(instant: int) -> str:
    """An instant (UTC ns) as text; 0 is unknown."""
    return (
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(instant // 10**9)) if 0 < instant < 2**62 else "time unknown"
    )


@cache
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=False, keep_trailing_newline=True, finalize=_inert
    )
    environment.filters["unbroken"] = _unbroken
    return environment.from_string((files("reports") / "templates" / name).read_text(encoding="utf-8"))


def _inert(value: object) -> object:
    """Text without control characters, which a browser would hide, and a terminal obey when they are pasted."""
    return visible(value) if type(value) is str else value


def _unbroken(text: str) -> Markup:
    """The text as HTML whose lines break before options, not within them."""
    shown, parts, end = visible(text), [], 0
    for match in _OPTION.finditer(shown):
        parts += [escape(shown[end : match.start()]), Markup('<span class="unbroken">%s</span>') % match[0]]
        end = match.end()
    return Markup("").join([*parts, escape(shown[end:])])


def _asset(name: str, folder: str = "reports/templates") -> Markup:
    package, *path = folder.split("/")
    return Markup(files(package).joinpath(*path, name).read_text(encoding="utf-8"))  # noqa: S704  # our own file

"""The page at ``/``: what the simulated platform is doing, for people who look at it in a browser."""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from aiohttp import web

from harness.model.units import format_duration
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan
from harness.simulator.wall import WallClock

_REFRESH_S = 2
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1b2733 }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .8rem .25rem 0;
border-bottom: 1px solid #dde3e9 } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.late { background: #b3261e; color: #fff; padding: .5rem 1rem } .muted { color: #5c6b7a }
@media (prefers-color-scheme: dark) { body { background: #14181d; color: #e6ebf0 } td, th { border-color: #323a43 } }
"""

Row = Sequence[str | int]


class Page:
    """Renders itself anew for each request; a browser asks again by itself."""

    def __init__(self, platform: Platform, faults: Sequence[FaultPlan], clock: WallClock) -> None:
        self._platform = platform
        self._faults = (*platform.profile.faults, *faults)
        self._clock = clock

    def mount(self, app: web.Application) -> None:
        """Register the route."""
        app.router.add_get("/", self._get)

    async def _get(self, _: web.Request) -> web.Response:
        self._clock.advance()
        return web.Response(text=self.render(), content_type="text/html")

    def render(self) -> str:
        """The whole page."""
        platform = self._platform
        name, title = platform.profile.name, platform.profile.title
        late = self._clock.lag_s
        warning = f'<p class="late">{late:.1f} s behind the wall clock</p>' if late > 1 else ""
        planted = ", ".join(f"{each.name} (from {format_duration(each.at_s)})" for each in self._faults) or "none"
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: simulated platform'
            f'</title><meta http-equiv="refresh" content="{_REFRESH_S}"><style>{_STYLE}</style></head><body>'
            f"<h1>Simulated platform {escape(name)}</h1><p>{escape(title)}</p>{warning}"
            f'<p class="muted">up for {format_duration(platform.loop.now)} · planted faults: {escape(planted)}</p>'
            f"{_table('Runs', ('state', 'runs'), sorted(_states(platform).items()))}"
            f"{_table('Pods of runs', ('phase', 'pods'), sorted(_phases(platform).items()))}"
            f"{_table('Nodes', ('pool', 'ready', 'coming', 'at most', 'cores requested', 'cores'), _pools(platform))}"
            f"{_table('Queues', ('where', 'waiting'), _queues(platform))}"
            f"{_table('Volumes', ('what', 'GiB used', 'GiB'), _volumes(platform))}</body></html>"
        )


def _table(title: str, columns: Sequence[str], rows: Iterable[Row]) -> str:
    head = _cells("th", columns)
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body or '<tr><td>none</td></tr>'}</table>"


def _cells(tag: str, values: Row) -> str:
    """The first one names the row, the others are numbers."""
    first, *others = (escape(str(value)) for value in values)
    return f"<{tag}>{first}</{tag}>" + "".join(f'<{tag} class="n">{each}</{tag}>' for each in others)


def _states(platform: Platform) -> Counter[str]:
    return Counter(run.state for run in platform.server.runs.values())


def _phases(platform: Platform) -> Counter[str]:
    return Counter(pod.phase for pod in platform.cluster.pods.values() if pod.role)


def _pools(platform: Platform) -> list[Row]:
    rows: list[Row] = []
    scaler = platform.cluster.autoscaler
    for pool in platform.profile.pools:
        nodes = platform.cluster.pool_nodes(pool)
        ready = [node for node in nodes if node.ready is not None]
        coming = len(nodes) - len(ready) + (scaler.upcoming[pool.name] if scaler is not None else 0)
        most = scaler.most[pool.name] if scaler is not None else len(nodes)
        cores = sum(node.cpu for node in ready) / 1000
        taken = cores - sum(node.cpu_free for node in ready) / 1000
        rows.append((pool.name, len(ready), coming, most, f"{taken:.1f}", f"{cores:.1f}"))
    return rows


def _queues(platform: Platform) -> list[Row]:
    now = platform.loop.now
    return [
        ("submissions at the API server", platform.server.in_flight),
        ("workflows at the controller", platform.controller.queue_depth),
        ("pods to be made, for tokens of the controller's client", round(platform.controller.bucket.backlog(now))),
        ("pods without a node", platform.cluster.scheduler.waiting),
        ("reports at the persistence agent", platform.agent.backlog),
        ("transfers at the artifact store", platform.store.link.jobs),
    ]


def _volumes(platform: Platform) -> list[Row]:
    store, database = platform.store, platform.server.database
    return [
        (what, f"{used / 2**30:.2f}", f"{capacity / 2**30:.0f}")
        for what, used, capacity in (
            ("artifact store", store.used, store.capacity),
            ("database", database.used, database.capacity),
        )
    ]

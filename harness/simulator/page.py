"""The page at ``/``: what the simulated platform is doing, for people who look at it in a browser.

It works without scripts; with them it looks again in place, so that nothing flickers and nobody loses their place.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from aiohttp import web

from harness.model.units import format_duration
from harness.simulator.cluster import Node
from harness.simulator.kfp.records import OVER
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan, Pool
from harness.simulator.serving.wall import WallClock

_LOOK_S = 2.0  # between two looks, of the page and at the platform
_REMEMBERED = 300  # looks: the chart's ten minutes
_WIDTH, _HEIGHT, _MARGIN = 1000, 100, 2  # of the chart, in its own units
_MOST_CELLS = 400  # nodes of a pool that are drawn one by one
_STYLE = (files("harness.simulator") / "page.css").read_text(encoding="utf-8")
_AGAIN = (
    "setInterval(async () => { try { const text = await (await fetch(location.href)).text();"
    " const page = new DOMParser().parseFromString(text, 'text/html');"
    " document.querySelector('main').replaceWith(page.querySelector('main')) } catch { } }, %d)"
)


class Look(NamedTuple):
    """What the chart shows of one instant (`at`, simulated seconds)."""

    at: float
    active: int  # runs, or executions of hetida designer
    pods: int  # of runs that have a node, or cores that runtimes use
    nodes: int


class Page:
    """Renders itself anew for each request, and remembers what it saw."""

    def __init__(self, platform: Platform, faults: Sequence[FaultPlan], clock: WallClock) -> None:
        self._platform = platform
        self._faults = (*platform.profile.faults, *faults)
        self._clock = clock
        self._seen: deque[Look] = deque(maxlen=_REMEMBERED)

    def mount(self, app: web.Application) -> None:
        """Register the route; from now on the platform is looked at."""
        app.router.add_get("/", self._get)
        self._look()

    def _look(self) -> None:
        self._seen.append(_now(self._platform))
        self._platform.loop.after(_LOOK_S, self._look)

    async def _get(self, _: web.Request) -> web.Response:
        self._clock.advance()
        return web.Response(text=self.render(), content_type="text/html")

    def render(self) -> str:
        """The whole page."""
        platform = self._platform
        name, title = escape(platform.profile.name), escape(platform.profile.title)
        late = self._clock.lag_s
        warning = f'<p class="late">{late:.1f} s behind the wall clock</p>' if late > 1 else ""
        sections = _hetida(platform) if platform.hetida is not None else _pipelines(platform)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}: simulated platform</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            f'<noscript><meta http-equiv="refresh" content="{_LOOK_S:g}"></noscript><style>{_STYLE}</style></head>'
            f"<body><main><header><h1>Simulated platform {name}</h1>"
            f'<span class="up">up for {format_duration(round(platform.loop.now))}</span></header><p>{title}</p>'
            f"{_planted(self._faults, platform.loop.now)}{warning}"
            f"{_tiles(platform)}{_chart(self._seen, hetida=platform.hetida is not None)}"
            f'{_nodes(platform)}<div class="columns">{sections}</div></main>'
            f"<script>{_AGAIN % (1000 * _LOOK_S)}</script></body></html>"
        )


def _now(platform: Platform) -> Look:
    nodes = platform.cluster.nodes.values()
    ready = sum(node.ready is not None for node in nodes)
    if platform.hetida is not None:
        replicas = platform.hetida.replicas
        return Look(platform.loop.now, sum(r.open for r in replicas), round(sum(r.cores for r in replicas)), ready)
    controller = platform.controller
    placed = sum(1 for node in nodes for pod in node.pods.values() if pod.role)
    return Look(platform.loop.now, controller.running + controller.pending, placed, ready)


def _planted(faults: Sequence[FaultPlan], now: float) -> str:
    chips = [
        f'<li class="{"active" if each.at_s <= now else "later"}">{escape(each.name)}'
        f"{f' × {each.strength:g}' if each.strength != 1 else ''} from {format_duration(each.at_s)}</li>"
        for each in faults
    ]
    return f'<ul class="faults" aria-label="planted faults">{"".join(chips) or "<li>no fault is planted</li>"}</ul>'


def _tiles(platform: Platform) -> str:
    look = _now(platform)
    if platform.hetida is not None:
        done = sum(platform.hetida.executed.values())
        tiles = [("executions under way", str(look.active)), ("executions begun", f"{done:,}")]
        tiles.append(("runtime replicas", str(len(platform.hetida.replicas))))
        tiles.append(("cores computing", str(look.pods)))
    else:
        states = Counter(run.state for run in platform.server.runs.values())
        tiles = [("runs in progress", f"{sum(states.values()) - sum(states[each] for each in OVER):,}")]
        tiles += [("succeeded", f"{states['SUCCEEDED']:,}"), ("failed", f"{states['FAILED']:,}")]
        tiles.append(("pods on nodes", f"{look.pods:,}"))
        tiles.append(("pods without a node", f"{platform.cluster.scheduler.waiting:,}"))
    tiles.append(("nodes ready", f"{look.nodes:,}"))
    return f"<dl>{''.join(f'<div><dt>{what}</dt><dd>{value}</dd></div>' for what, value in tiles)}</dl>"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


# --- the chart --------------------------------------------------------------------------------------------------


def _chart(seen: Sequence[Look], *, hetida: bool) -> str:
    """The last minutes: each line on a scale of its own, whose top its legend names."""
    names = ("executions under way", "cores computing", "nodes") if hetida else ("runs in progress", "pods", "nodes")
    if len(seen) < 2:
        return _section("The last minutes", "<p>nothing seen yet</p>")
    begun, ended = seen[0].at, seen[-1].at
    lines, legend = [], []
    for index, (name, colour) in enumerate(zip(names, ("runs", "pods", "nodes"), strict=True), start=1):
        values = [int(look[index]) for look in seen]
        top = max(1, *values)
        points = " ".join(
            f"{(look.at - begun) / (ended - begun) * _WIDTH:.1f},{_HEIGHT - value / top * (_HEIGHT - _MARGIN):.1f}"
            for look, value in zip(seen, values, strict=True)
        )
        lines.append(f'<polyline points="{points}" stroke="var(--{colour})"/>')
        legend.append(
            f'<span><i style="color:var(--{colour})"></i>{name}: {values[-1]:,}, at most {max(values):,}</span>'
        )
    drawing = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{", ".join(names)} over time">{"".join(lines)}</svg>'
        f'<div class="time"><span>{format_duration(ended - begun)} ago</span><span>now</span></div>'
    )
    return _section("The last minutes", f'<div class="legend">{"".join(legend)}</div>{drawing}')


# --- nodes, queues, volumes -------------------------------------------------------------------------------------


def _nodes(platform: Platform) -> str:
    return _section("Nodes, filled as far as pods request their cores", "".join(_pools(platform)))


def _pools(platform: Platform) -> Iterable[str]:
    scaler = platform.cluster.autoscaler
    for pool in platform.profile.pools:
        nodes = platform.cluster.pool_nodes(pool)
        ready = [node for node in nodes if node.ready is not None]
        coming = len(nodes) - len(ready) + (scaler.upcoming[pool.name] if scaler is not None else 0)
        most = scaler.most[pool.name] if scaler is not None else len(nodes)
        cores = sum(node.cpu for node in ready) / 1000
        taken = cores - sum(node.cpu_free for node in ready) / 1000
        facts = f"{len(ready)} of at most {most} ready, {coming} coming · {taken:.1f} of {cores:.1f} cores requested"
        cells = [_cell(node) for node in ready[:_MOST_CELLS]] + ['<i class="coming"></i>'] * min(coming, _MOST_CELLS)
        yield (
            f'<div class="pool"><h3>{escape(_pool_name(pool))}<span>{facts}</span></h3>'
            f'<div class="cells">{"".join(cells)}</div></div>'
        )


def _pool_name(pool: Pool) -> str:
    return f"{pool.name} (spot)" if pool.spot else pool.name


def _cell(node: Node) -> str:
    full = 100 * (1 - node.cpu_free / (node.cpu or 1))
    kind = ' class="cordoned"' if node.cordoned else ""
    return f'<i{kind} style="--full:{full:.0f}%" title="{escape(node.name)}: {full:.0f} % of its cores requested"></i>'


def _pipelines(platform: Platform) -> str:
    states = Counter(run.state for run in platform.server.runs.values())
    phases = Counter(pod.phase for pod in platform.cluster.pods.values() if pod.role)
    return (
        f"{_section('Queues', _table(_queues(platform), 'waits'))}"
        f"{_section('Runs by state', _table(sorted(states.items())))}"
        f"{_section('Pods of runs by phase', _table(sorted(phases.items())))}"
        f"{_section('Volumes', ''.join(_volumes(platform)))}"
    )


def _hetida(platform: Platform) -> str:
    service = platform.hetida
    assert service is not None
    replicas = [(f"replica {each.index}", each.open) for each in service.replicas]
    waiting = [(f"requests at the adapter {name}", each.servers.waiting) for name, each in service.adapters.items()]
    waiting.append(("executions at the backend", service.backend.waiting))
    waiting.append(("connections no worker has taken", sum(len(each.backlog) for each in service.replicas)))
    return (
        f"{_section('Queues', _table(waiting, 'waits'))}{_section('Executions under way by replica', _table(replicas))}"
    )


def _table(rows: Iterable[tuple[str, int]], kind: str = "") -> str:
    """Rows of a name and a count; those that are not 0 are of the given kind."""
    body = "".join(
        f'<tr class="{"failed" if name in {"FAILED", "Failed"} else kind if count else ""}">'
        f'<th scope="row">{escape(name)}</th><td>{count:,}</td></tr>'
        for name, count in rows
    )
    return f"<table>{body or '<tr><th>none</th></tr>'}</table>"


def _queues(platform: Platform) -> list[tuple[str, int]]:
    now = platform.loop.now
    return [
        ("submissions at the API server", platform.server.in_flight),
        ("calls at the database", platform.server.database.held),
        ("workflows at the controller", platform.controller.queue_depth),
        ("pods that wait for the controller's client", round(platform.controller.bucket.backlog(now))),
        ("pods without a node", platform.cluster.scheduler.waiting),
        ("reports at the persistence agent", platform.agent.backlog),
        ("transfers at the artifact store", platform.store.link.jobs),
    ]


def _volumes(platform: Platform) -> Iterable[str]:
    store, database = platform.store, platform.server.database
    for what, used, capacity in (
        ("artifact store", store.used, store.capacity),
        ("database", database.used, database.capacity),
    ):
        share = used / capacity if capacity else 1.0
        yield (
            f'<div class="volume"><div>{what}<span>{used / 2**30:.2f} of {capacity / 2**30:.0f} GiB</span></div>'
            f'<meter value="{share:.4f}" high="0.8" optimum="0" aria-label="{what}">{share:.0%}</meter></div>'
        )

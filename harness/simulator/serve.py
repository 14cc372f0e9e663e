"""The served simulator: the KFP, hetida and Kubernetes APIs of one platform, in one process on one port."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from aiohttp import web

from harness.model.errors import ConfigError, PipeswarmError
from harness.simulator.engine.calendar import Calendar
from harness.simulator.faults import inject
from harness.simulator.hetida.rest import Endpoints
from harness.simulator.kfp.rest import Gateway
from harness.simulator.kube_api.routes import mount
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.logs import Logs
from harness.simulator.kube_objects.proxy import Proxies
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan, Profile
from harness.simulator.serving import Collector, ListenOptions, StopSignal, WallClock, announce, listening

_CHECK_S = 1.0  # interval for checking the parent process, the lag and the garbage


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Which platform to serve, and where."""

    profile: Profile
    faults: tuple[FaultPlan, ...] = ()
    listen: ListenOptions = ListenOptions()
    seed: int = 0
    kubeconfig: Path | None = None  # none: a temporary file
    advertise: str = ""  # the address for clients, if it differs from the listening address
    strict: bool = False  # exit with an error if simulated time falls behind wall time


def serve(options: ServeOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent process if that counts."""
    asyncio.run(_serve(options))


async def _serve(options: ServeOptions) -> None:
    stop = StopSignal(options.listen)
    app, clock = build(options)
    # Not patient: otherwise an abandoned watch, which is mostly silent, would go unnoticed.
    async with listening(app, options.listen, "the simulated platform", patient=False) as (here, requests):
        with tempfile.TemporaryDirectory(prefix="pipeswarm-") as folder:
            url = options.advertise.rstrip("/") or here
            kubeconfig = options.kubeconfig or Path(folder) / "kubeconfig"
            write_kubeconfig(kubeconfig, url, options.profile)
            _announce(options, url, kubeconfig)
            await _until(stop, clock, requests, strict=options.strict)


def build(options: ServeOptions, clock: WallClock | None = None) -> tuple[web.Application, WallClock]:
    """The application that serves the platform, and the clock that drives the simulation."""
    clock = clock or WallClock()
    calendar = Calendar(clock.origin_at)
    view = KubernetesView(calendar, metrics_server=options.profile.metrics_server)
    platform = Platform(options.profile, options.seed, view)
    platform.workflow_watchers.append(view.workflow_changed)
    view.follow(platform)
    calendar.skew = platform.skew
    for fault in (*options.profile.faults, *options.faults):
        inject(platform, fault)
    clock.drive(platform.loop)
    app = web.Application(client_max_size=64 * 2**20)
    gateway = Gateway(platform.server, calendar, clock.advance)
    gateway.mount(app)
    if platform.hetida is not None:
        Endpoints(platform.hetida, clock.advance, clock.origin_at, options.seed).mount(app)
    app.router.add_get("/", _index(options))
    actions = ClusterActions(view, clock.advance)
    mount(app, view.store, actions, lambda: clock.now_at)
    Proxies(view, gateway, clock.advance).mount(app)
    Logs(view, clock.advance).mount(app)
    return app, clock


def _index(options: ServeOptions) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Answers with a plain-text list of the APIs and faults, for people with a browser."""
    profile = options.profile
    faults = ", ".join(map(str, (*profile.faults, *options.faults))) or "none"
    apis = {"/api, /apis": "Kubernetes", "/apis/v2beta1": "Kubeflow Pipelines", "/metrics": "KFP API server's metrics"}
    if profile.hetida is not None:
        apis |= {"/api, /hdapi": "hetida designer backend", "/engine": "hetida designer runtime"}
    lines = [f"Simulated platform {profile.name}: {profile.title}", f"Faults injected: {faults}", ""]
    text = "\n".join(lines + [f"{path:<16}{name}" for path, name in apis.items()]) + "\n"

    async def index(_: web.Request) -> web.Response:
        return web.Response(text=text)

    return index


async def _until(stop: StopSignal, clock: WallClock, requests: Callable[[], int], *, strict: bool) -> None:
    collector = Collector()
    driving = asyncio.create_task(clock.run())
    stopping = asyncio.create_task(stop.event.wait())
    was_late = False
    try:
        while not stop:
            await asyncio.wait({driving, stopping}, timeout=_CHECK_S, return_when=asyncio.FIRST_COMPLETED)
            if driving.done():
                driving.result()  # ends only with an error
            late_s = clock.lateness()
            lag = f"the simulation was {late_s:.1f} s behind the wall clock"
            if late_s and strict:
                raise PipeswarmError(lag, "give it its own core, reduce the load, or drop --strict")
            if late_s and not was_late:
                print(f"warning: {lag}: measurements are invalid until it catches up", file=sys.stderr, flush=True)
            was_late = bool(late_s)
            collector.collect_if_idle(requests(), clock.quiet_s)
    finally:
        for task in (driving, stopping):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _announce(options: ServeOptions, url: str, kubeconfig: Path) -> None:
    announce(
        options.listen,
        {
            "url": url,
            "kubeconfig": str(kubeconfig),
            "profile": options.profile.name,
            "fault": ",".join(str(fault) for fault in options.faults) or "none",
            "seed": options.seed,
        },
    )
    hetida = f"  export PIPESWARM_HETIDA_BACKEND={url}/api\n" if options.profile.hetida is not None else ""
    print(
        f"The simulated platform '{options.profile.name}' is served at {url} until interrupted.\n"
        f"  export KF_PIPELINES_ENDPOINT={url}\n{hetida}"
        f"  export KUBECONFIG={kubeconfig}",
        file=sys.stderr,
        flush=True,
    )


def write_kubeconfig(path: Path, url: str, profile: Profile) -> None:
    """Write a file with one context, whose user may do everything."""
    name = "pipeswarm-simulated"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": "simulated"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": profile.namespace}}],
        "current-context": name,
    }
    try:
        path.write_text(yaml.safe_dump(document))
        path.chmod(0o600)
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written: {error.strerror}", "give a writable path to --kubeconfig"
        ) from error

"""The served simulator: one process, one port, KFP and Kubernetes behind it, until it is told to end."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from aiohttp import web

from harness.model.errors import ConfigError, PipeswarmError
from harness.simulator import kubeapi
from harness.simulator.faults import plant
from harness.simulator.hetida.rest import Endpoints
from harness.simulator.kfp.rest import Gateway
from harness.simulator.kfp.view import Calendar
from harness.simulator.kube.actions import ClusterActions
from harness.simulator.kube.proxy import Proxies
from harness.simulator.kube.view import KubernetesView
from harness.simulator.page import Page
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan, Profile
from harness.simulator.wall import WallClock

_LATE = "the simulation was {:.1f} s behind the wall clock"
_LOOK_S = 1.0  # how often the parent and the lag are looked at


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How to serve. Port 0 is any free one; `ready_file` gets the first line of the output as soon as it answers."""

    profile: Profile
    faults: tuple[FaultPlan, ...] = ()
    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 0
    ready_file: Path | None = None
    die_with_parent: bool = False
    kubeconfig: Path | None = None  # none: in a folder of its own that goes away with it
    advertise: str = ""  # the address others reach it at, where that is not the one it listens on
    strict: bool = False  # end with an error when simulated time can't keep up with the wall's


def serve(options: ServeOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the parent's end."""
    asyncio.run(_serve(options))


async def _serve(options: ServeOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    app, clock = build(options)
    # A full collection of a large model stops it for 100 ms. What a run holds is freed without one when it is deleted.
    gc.freeze()
    gc.set_threshold(20_000, 50, 1_000)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, reuse_address=True, backlog=2048)
        try:
            await site.start()
        except OSError as error:
            message = f"the simulated platform can't listen on {options.host}:{options.port}: {error.strerror}"
            raise ConfigError(message, "give another --port; 0 takes any free one") from error
        with tempfile.TemporaryDirectory(prefix="pipeswarm-") as folder:
            url = options.advertise.rstrip("/") or f"http://{options.host}:{runner.addresses[0][1]}"
            kubeconfig = options.kubeconfig or Path(folder) / "kubeconfig"
            _write_kubeconfig(kubeconfig, url)
            _announce(options, url, kubeconfig)
            await _until_stopped(clock, stop, os.getppid() if options.die_with_parent else None, strict=options.strict)
    finally:
        await runner.cleanup()


def build(options: ServeOptions) -> tuple[web.Application, WallClock]:
    """The platform behind its HTTP routes, and the clock that drives it."""
    clock = WallClock()
    calendar = Calendar(clock.origin_at)
    view = KubernetesView(calendar)
    platform = Platform(options.profile, options.seed, view)
    platform.workflow_watchers.append(view.workflow_changed)
    view.follow(platform)
    calendar.ahead = platform.skew.at
    for fault in (*options.profile.faults, *options.faults):
        plant(platform, fault)
    clock.drive(platform.loop)
    app = web.Application(client_max_size=64 * 2**20)
    gateway = Gateway(platform.server, calendar, clock.advance)
    gateway.mount(app)
    if platform.hetida is not None:
        Endpoints(platform.hetida, clock.advance, clock.origin_at, options.seed).mount(app)
    Page(platform, options.faults, clock).mount(app)
    Proxies(view, gateway, clock.advance).mount(app)
    kubeapi.mount(app, view.store, ClusterActions(view, clock.advance), lambda: clock.now_at)
    return app, clock


async def _until_stopped(clock: WallClock, stop: asyncio.Event, parent: int | None, *, strict: bool) -> None:
    driving = asyncio.create_task(clock.run())
    stopping = asyncio.create_task(stop.wait())
    was_late = False
    try:
        while not stopping.done():
            await asyncio.wait({driving, stopping}, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            if driving.done():
                driving.result()  # it never ends but by an error
            if parent is not None and os.getppid() != parent:
                return
            late_s = clock.lateness()
            if late_s and strict:
                raise PipeswarmError(_LATE.format(late_s), "give it a core of its own, a smaller load, or no --strict")
            if late_s and not was_late:
                print(f"warning: {_LATE.format(late_s)}: what is measured now is not the platform", file=sys.stderr)
                sys.stderr.flush()
            was_late = bool(late_s)
    finally:
        for task in (driving, stopping):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _announce(options: ServeOptions, url: str, kubeconfig: Path) -> None:
    line = json.dumps(
        {
            "url": url,
            "kubeconfig": str(kubeconfig),
            "profile": options.profile.name,
            "fault": ",".join(_written(fault) for fault in options.faults) or "none",
            "seed": options.seed,
            "pid": os.getpid(),
        }
    )
    print(line, flush=True)
    if options.ready_file is not None:
        unfinished = options.ready_file.with_name(f"{options.ready_file.name}.{os.getpid()}")
        unfinished.write_text(line + "\n")
        unfinished.replace(options.ready_file)
    hetida = f"  export PIPESWARM_HETIDA_BACKEND={url}/api\n" if options.profile.hetida is not None else ""
    print(
        f"The simulated platform '{options.profile.name}' answers at {url} until it is interrupted.\n"
        f"  export KF_PIPELINES_ENDPOINT={url}\n{hetida}"
        f"  export KUBECONFIG={kubeconfig}",
        file=sys.stderr,
        flush=True,
    )


def _written(fault: FaultPlan) -> str:
    when = f"@{fault.at_s:g}s" if fault.at_s else ""
    strength = f":{fault.strength:g}" if fault.strength != 1 else ""
    return f"{fault.name}{when}{strength}"


def _write_kubeconfig(path: Path, url: str) -> None:
    name = "pipeswarm-simulated"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": "simulated"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "kubeflow"}}],
        "current-context": name,
    }
    try:
        path.write_text(yaml.safe_dump(document))
        path.chmod(0o600)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}", "give --kubeconfig a writable place") from error

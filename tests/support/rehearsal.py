"""A simulated platform for a test, the commands of a finding, and the same test again."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from harness.analysis.timeline import Timeline
from harness.model import Plan, Scenario
from harness.simulator.cluster import Change, ClusterListener, Node, Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.recorder import Recorder
from harness.simulator.fast.records import Arrival
from harness.simulator.fast.runs import SAMPLE_S, simulate_runs
from harness.simulator.fast.submitting import pipelines
from harness.simulator.faults import inject, parse_fault
from harness.simulator.kube_api.routes import mount
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.logs import Logs
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from tests.support.injection.case import ORIGIN_AT, read_back
from tests.support.injection.packages import PACKAGE
from tests.support.servers import kubeconfig
from tests.support.whole_objects import whole

# While commands run, simulated time passes ten times as fast: rollouts finish soon, and even on a slow machine the
# autoscaler does not remove idle nodes yet.
_TICK_S, _TICKS_WALL_S = 0.1, 0.01


class _Listeners:
    """Passes each change to all listeners."""

    def __init__(self, *listeners: ClusterListener) -> None:
        self.all = list(listeners)

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        for each in self.all:
            each.pod_changed(pod, change, detail)

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        for each in self.all:
            each.node_changed(node, reason, message)


class Rehearsal:
    """A simulated platform that persists from one test to the next."""

    def __init__(self, profile: Profile, seed: int = 0) -> None:
        self._view = KubernetesView(Calendar(ORIGIN_AT))
        self._listeners = _Listeners(self._view)
        self.platform = Platform(profile, seed, self._listeners)
        self._view.follow(self.platform)

    def inject(self, fault: str) -> None:
        """Inject a fault five seconds from now."""
        plan = parse_fault(fault)
        assert plan is not None
        self.platform.loop.after(5.0, inject, self.platform, plan)

    def load(self, runs: int, over_s: float, package: bytes = PACKAGE) -> Timeline:
        """Run a test of a pipeline, and read its run folder; the platform is idle when it ends."""
        loop, recorder = self.platform.loop, Recorder(ORIGIN_AT)
        begun_s = loop.now
        recorder.follow(self.platform)
        for node in self.platform.cluster.nodes.values():
            recorder.node_changed(node)
        self._listeners.all.append(recorder)
        dues = [begun_s + 10.0 + over_s * number / runs for number in range(runs)]
        arrivals = [Arrival(due, Scenario(str(number), "injected", {}, {})) for number, due in enumerate(dues)]
        calendar = Calendar(ORIGIN_AT)
        plan = Plan(
            "kfp", "simulated", {"name": "constant"}, runs, 0, simulated=True, started_at=calendar.ns(begun_s)
        )  # fmt: skip
        try:
            submit = pipelines(self.platform, package)
            return read_back(plan, simulate_runs(recorder, submit, arrivals, calendar, dues[-1] + 600.0, SAMPLE_S))
        finally:
            self._listeners.all.remove(recorder)
            for pipeline in list(self.platform.server.catalogue.pipelines):  # each test uploads its own
                self.platform.server.catalogue.delete_pipeline(pipeline, cascade=True)

    def objects(self, plural: str) -> list[dict[str, Any]]:
        """The manifests of all objects of a type in the cluster."""
        store = self._view.store
        (resource,) = (each for each in store.resources if each.plural == plural and each.listing is None)
        return [whole(each, resource) for each in store.objects(resource)]

    @contextmanager
    def shell(self, folder: Path) -> Iterator["Shell"]:
        """A shell whose `kubectl` is configured for the cluster; simulated time passes meanwhile."""
        with _served(self._view) as url:
            yield Shell.on(folder, url)


class Shell:
    """Runs commands with a `kubectl` that is configured for one cluster."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @classmethod
    def on(cls, folder: Path, url: str) -> "Shell":
        """With a kubeconfig for the address."""
        return cls({"KUBECONFIG": kubeconfig(folder / "kubeconfig", url)})

    def run(self, command: str, editor: str = "true") -> subprocess.CompletedProcess[str]:
        """Run a command as is; `editor` is the command that `kubectl edit` opens a file with."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            check=False,
            env=os.environ | {**self._environment, "KUBE_EDITOR": editor},
            capture_output=True,
            text=True,
            timeout=90,
        )


@contextmanager
def _served(view: KubernetesView) -> Iterator[str]:
    """Serve a view's Kubernetes API from a thread in which its time passes; yields the address."""
    loop = asyncio.new_event_loop()
    urls: list[str] = []
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        clock = view.platform.loop
        app = web.Application()
        actions = ClusterActions(view, lambda: None)
        Logs(view, lambda: None).mount(app)
        mount(app, view.store, actions, lambda: ORIGIN_AT + int(clock.now * 1e9))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        while not over.is_set():
            clock.run(clock.now + _TICK_S)
            await asyncio.sleep(_TICKS_WALL_S)
        await runner.cleanup()

    thread = threading.Thread(target=partial(loop.run_until_complete, serve()), name="served", daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)
        loop.close()

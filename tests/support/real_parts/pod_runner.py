"""A kubelet that runs the containers of a namespace's pods as local processes, and answers for logs and commands.

A container's paths are those of its volumes' folders here; its image is this machine. Names of Services lead to
loopback.
"""

import asyncio
import base64
import os
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import STRATEGIC, Kube, Manifest, RefusedError

_STDOUT, _ERROR = b"\x01", b"\x03"  # channels of v4.channel.k8s.io
_PROTOCOL = "v4.channel.k8s.io"
_TICK_S = 0.1
_NOT_FOUND = 404


@dataclass
class _Container:
    process: subprocess.Popen[bytes]
    log: Path
    places: Mapping[str, Path]  # folders by mount path
    began: str
    ended: str = ""


@dataclass
class PodRunner:
    """Runs pods of `namespace` below `folder`; `environment` is added to each container's.

    Attributes:
        errors: of this stand-in; a test with any shows nothing.
        pods: their containers, by pod and name.
        port: of its API.
    """

    kube: Kube
    namespace: str
    folder: Path
    environment: Mapping[str, str]
    errors: list[str] = field(default_factory=list)
    pods: dict[str, dict[str, _Container]] = field(default_factory=dict)
    port: int = 0
    seen: set[str] = field(default_factory=set)

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    def see(self, change: str, pod: Manifest) -> None:
        """Run a pod that was placed; end one that is deleted."""
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if "deletionTimestamp" in pod["metadata"] or change == "DELETED":
            self.end(name)
        elif node and name not in self.seen:
            self.seen.add(name)
            self.kube.patch(f"/api/v1/nodes/{node}/status", {"status": self._leads_here()})
            threading.Thread(target=self._run, args=(pod,), daemon=True).start()

    def _leads_here(self) -> Manifest:
        return {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }

    def end(self, name: str = "") -> None:
        """End the processes of one pod, or of all."""
        for pod, containers in self.pods.items():
            for each in containers.values():
                if name in {"", pod} and each.process.poll() is None:
                    each.process.terminate()

    def _run(self, pod: Manifest) -> None:
        try:
            name = pod["metadata"]["name"]
            self.pods[name] = self._started(pod)
            self._report(name)
            going = dict(self.pods[name])
            pause = threading.Event()
            while going:
                pause.wait(_TICK_S)
                over = [each for each, container in going.items() if container.process.poll() is not None]
                for each in over:
                    going.pop(each).ended = _now()
                if over:
                    self._report(name)
        except RefusedError as error:
            if error.status != _NOT_FOUND:  # it was deleted
                self.errors.append(repr(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the test must not go on unnoticed
            self.errors.append(repr(error))

    def _started(self, pod: Manifest) -> dict[str, _Container]:
        home = self.folder / pod["metadata"]["name"]
        volumes = {each["name"]: self._volume(home, each) for each in pod["spec"].get("volumes", ())}
        services = {each["metadata"]["name"] for each in self.kube.get(f"{self._path}/services")["items"]}
        started = {}
        for container in pod["spec"]["containers"]:
            places = {each["mountPath"]: volumes[each["name"]] for each in container.get("volumeMounts", ())}
            given = [*container["command"], *container.get("args", ())]
            command = ["127.0.0.1" if word in services else _local(word, places) for word in given]
            log = home / f"{container['name']}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as out:
                process = subprocess.Popen(
                    command, stdout=out, stderr=subprocess.STDOUT, cwd=home, env=self._variables(container)
                )
            started[container["name"]] = _Container(process, log, places, _now())
        return started

    def _volume(self, home: Path, volume: Manifest) -> Path:
        claim = volume.get("persistentVolumeClaim")
        place = self.folder / "claims" / claim["claimName"] if claim else home / "volumes" / volume["name"]
        place.mkdir(parents=True, exist_ok=True)
        if "configMap" in volume:
            found = self.kube.get(f"{self._path}/configmaps/{volume['configMap']['name']}")
            for name, text in found.get("data", {}).items():
                (place / name).write_text(text)
            for name, text in found.get("binaryData", {}).items():
                (place / name).write_bytes(base64.b64decode(text))
        return place

    def _variables(self, container: Manifest) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        mine = {
            "PATH": path,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONUNBUFFERED": "1",
            "HOME": str(self.folder),
        }
        for each in container.get("envFrom", ()):
            mine |= self._secret(each["secretRef"]["name"])
        for each in container.get("env", ()):
            chosen = each.get("valueFrom", {}).get("secretKeyRef")
            mine[each["name"]] = self._secret(chosen["name"])[chosen["key"]] if chosen else each["value"]
        return {**mine, **self.environment}

    def _secret(self, name: str) -> dict[str, str]:
        found = self.kube.get(f"{self._path}/secrets/{name}")["data"]
        return {key: base64.b64decode(value).decode() for key, value in found.items()}

    def _report(self, name: str) -> None:
        containers = self.pods[name]
        codes = [each.process.returncode for each in containers.values()]
        phase = "Running" if None in codes else "Failed" if any(codes) else "Succeeded"
        statuses = [_status(each, container) for each, container in containers.items()]
        status = {"phase": phase, "containerStatuses": statuses}
        self.kube.patch(f"{self._path}/pods/{name}/status", {"status": status}, STRATEGIC)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        """``/containerLogs/NAMESPACE/POD/CONTAINER``."""
        container = self.pods[request.match_info["pod"]][request.match_info["container"]]
        response = web.StreamResponse()
        await response.prepare(request)
        with container.log.open("rb") as log, suppress(ConnectionError):  # the reader may go
            while True:
                over = container.process.poll() is not None or "follow" not in request.query
                if written := log.read():
                    await response.write(written)
                elif over:
                    return response
                else:
                    await asyncio.sleep(_TICK_S)
        return response

    async def execute(self, request: web.Request) -> web.StreamResponse:
        """``/exec/NAMESPACE/POD/CONTAINER``: a command, its output on a WebSocket."""
        container = self.pods[request.match_info["pod"]][request.match_info["container"]]
        command = [_local(word, container.places) for word in request.query.getall("command")]
        socket = web.WebSocketResponse(protocols=(_PROTOCOL,))
        await socket.prepare(request)
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        while chunk := await process.stdout.read(2**14):
            await socket.send_bytes(_STDOUT + chunk)
        code = await process.wait()
        causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
        told = {"status": "Success"} if code == 0 else {"status": "Failure", "details": causes}
        await socket.send_bytes(_ERROR + web.json_response(told).body)  # type: ignore[operator]
        await socket.close()
        return socket


def _local(word: str, places: Mapping[str, Path]) -> str:
    for mounted, place in places.items():
        word = re.sub(
            rf"(^|[= ]){re.escape(mounted)}(?=[/ ]|$)", lambda found, place=place: found[1] + str(place), word
        )
    return word


def _status(name: str, container: _Container) -> dict[str, Any]:
    code = container.process.returncode
    state: dict[str, Any] = {"running": {"startedAt": container.began}}
    if code is not None:
        reason = "Completed" if code == 0 else "Error"
        code = code if code >= 0 else 128 - code
        state = {"terminated": {
            "exitCode": code, "reason": reason, "startedAt": container.began, "finishedAt": container.ended or _now(),
        }}  # fmt: skip
    return {
        "name": name, "image": "this machine", "imageID": "", "ready": "running" in state, "restartCount": 0,
        "state": state,
    }  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def running_pods(
    cluster: RealCluster, namespace: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[PodRunner]:
    """Make the namespace, and run its pods until the end of the block."""
    kube = admin(cluster)
    kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    runner = PodRunner(kube, namespace, folder, environment)
    over = threading.Event()
    with _serving(runner, cluster.ca):
        node = f"{namespace}-node"
        cluster.add_node(node, cpu="8")
        watching = threading.Thread(
            target=kube.follow, args=(f"/api/v1/namespaces/{namespace}/pods", runner.see, over), daemon=True
        )
        watching.start()
        try:
            yield runner
        finally:
            over.set()
            runner.end()
            path = f"/api/v1/namespaces/{namespace}"
            kube.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs?propagationPolicy=Background")
            kube.delete(f"{path}/pods?gracePeriodSeconds=0")
            kube.delete(path)
            cluster.remove_node(node)
            watching.join()
    assert not runner.errors, runner.errors


@contextmanager
def _serving(runner: PodRunner, certificate: Path) -> Iterator[None]:
    """Serve the kubelet's API; sets the runner's port."""
    loop = asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", runner.logs)
    app.router.add_get("/exec/{namespace}/{pod}/{container}", runner.execute)
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        served = web.AppRunner(app, shutdown_timeout=1.0)
        await served.setup()
        site = web.TCPSite(served, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        runner.port = served.addresses[0][1]
        ready.set()
        await over.wait()
        await served.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="kubelet", daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()

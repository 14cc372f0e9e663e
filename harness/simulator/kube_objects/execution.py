"""`kubectl exec` in the pods of the installation, over WebSockets as used by clients since Kubernetes 1.30."""

import json
from collections.abc import Callable

from aiohttp import web

from harness.simulator.kube_api import ApiError
from harness.simulator.kube_objects.mysql import Output, mysql
from harness.simulator.kube_objects.snapshots import Labels
from harness.simulator.kube_objects.view import KubernetesView

# Each message is one byte for the channel, followed by the data (kubernetes/apimachinery, remotecommand).
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_OUT, _ERR, _STATUS = b"\x01", b"\x02", b"\x03"
_NOT_FOUND = 127


class Executions:
    """Runs clients' commands: only the database client in the database's pod."""

    def __init__(self, view: KubernetesView, advance: Callable[[], None]) -> None:
        self._view = view
        self._advance = advance

    def mount(self, app: web.Application) -> None:
        """Add the route to the application."""
        app.router.add_route("*", "/api/v1/namespaces/{namespace}/pods/{pod}/exec", self._exec)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        self._advance()
        command = request.query.getall("command", [])
        if not command:
            raise ApiError(400, "BadRequest", "you must specify at least 1 command for the container")
        output = self._run(request.match_info["namespace"], request.match_info["pod"], command)
        socket = web.WebSocketResponse(protocols=_PROTOCOLS)
        if not socket.can_prepare(request).ok:
            raise ApiError(400, "BadRequest", "Upgrade request required: to WebSocket, which kubectl 1.31 and later do")
        await socket.prepare(request)
        for channel, text in ((_OUT, output.out), (_ERR, output.err), (_STATUS, _status(output))):
            if text:
                await socket.send_bytes(channel + text.encode())
        await socket.close()
        return socket

    def _run(self, namespace: str, name: str, command: list[str]) -> Output:
        pod = self._view.platform.cluster.pods.get(name)
        if pod is None or pod.namespace != namespace:
            raise ApiError(404, "NotFound", f'pods "{name}" not found', {"name": name, "kind": "pods"})
        if pod.started is None or pod.over:
            raise ApiError(400, "BadRequest", f"pod {name} does not run")
        if isinstance(pod.owner, Labels) and pod.owner.app == command[0] == "mysql":
            return mysql(self._view.platform, command[1:])
        return Output(err=f"{command[0]}: not found: the simulated containers have no files\n", code=_NOT_FOUND)


def _status(output: Output) -> str:
    if not output.code:
        return json.dumps({"metadata": {}, "status": "Success"})
    return json.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {output.code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(output.code)}]},
        }
    )

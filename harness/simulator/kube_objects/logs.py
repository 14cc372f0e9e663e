"""Pod logs, with the options of `kubectl logs`."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiohttp import web

from harness.simulator.cluster import Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import ApiError
from harness.simulator.kube_api.listing import flag, number
from harness.simulator.kube_objects.pod_status import WAIT, init_containers
from harness.simulator.kube_objects.snapshots import main_container, pod_snapshot
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.workflows.graph import EXECUTOR
from harness.simulator.workflows.launcher import WAIT_FAILED, Launch
from harness.simulator.workflows.workflow import Workflow

_MAIN, _LAUNCHER, _STORE = "main.go", "launcher_v2.go", "object_store.go"


class Line(NamedTuple):
    """One log line, written at `at` (simulated seconds); `source` is the file of a glog line, "" for others."""

    at: float
    level: str
    text: str
    source: str = ""


class Logs:
    """Serves the pod logs of one platform: what KFP's launcher logs, and other containers' start and end."""

    def __init__(self, view: KubernetesView, advance: Callable[[], None]) -> None:
        self._view = view
        self._advance = advance

    def mount(self, app: web.Application) -> None:
        """Add the route to the application."""
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/log", self._get)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        self._advance()
        query, namespace, name = request.query, request.match_info["namespace"], request.match_info["pod"]
        pod = self._view.platform.cluster.pods.get(name)
        if pod is None or pod.namespace != namespace:
            raise ApiError(404, "NotFound", f'pods "{name}" not found', {"name": name, "kind": "pods"})
        container = _container(pod, query.get("container", ""))
        if flag(query, "previous"):
            raise ApiError(400, "BadRequest", f'previous terminated container "{container}" in pod "{name}" not found')
        begun = pod.pulled if container not in {main_container(pod), WAIT} else pod.started
        if begun is None:
            why = "PodInitializing" if pod.node is not None else "ContainerCreating"
            raise ApiError(400, "BadRequest", f'container "{container}" in pod "{name}" is waiting to start: {why}')
        return web.Response(text=self._text(_lines(pod, container), query))

    def _text(self, lines: list[Line], query: Mapping[str, str]) -> str:
        calendar, since = self._view.calendar, number(query, "sinceSeconds")
        now = self._view.platform.loop.now
        chosen = [line for line in lines if not since or line.at >= now - since]
        if query.get("tailLines"):
            chosen = chosen[max(0, len(chosen) - number(query, "tailLines")) :]
        text = ""
        for line in chosen:
            before = f"{calendar.fine_stamp(line.at)} " if flag(query, "timestamps") else ""
            text += f"{before}{_written(line, calendar)}\n"
        limit = number(query, "limitBytes")
        return text[:limit] if limit else text


def _container(pod: Pod, asked: str) -> str:
    """The requested container.

    Raises:
        ApiError: 400: no such container, or none named out of several.
    """
    steps = isinstance(pod.owner, Workflow)
    main = main_container(pod)
    containers = [WAIT, main] if steps else [main]
    inits = [name for name, _ in init_containers(pod_snapshot(pod, ""))] if steps else []
    if asked in (*containers, *inits):
        return asked
    if asked:
        raise ApiError(400, "BadRequest", f"container {asked} is not valid for pod {pod.name}")
    if len(containers) == 1:
        return containers[0]
    choice = f"a container name must be specified for pod {pod.name}, choose one of: [{' '.join(containers)}]"
    raise ApiError(400, "BadRequest", f"{choice} or one of the init containers: [{' '.join(inits)}]")


def _written(line: Line, calendar: Calendar) -> str:
    if not line.source:
        message = line.text.replace('"', "'")
        return f'time="{calendar.stamp(line.at)}" level={line.level} msg="{message}"'
    # glog: severity, month and day, time, process, place in the source.
    day, _, time = calendar.fine_stamp(line.at).partition("T")
    return f"{line.level}{day[5:].replace('-', '')} {time[:15]}       1 {line.source}:1] {line.text}"


def _lines(pod: Pod, container: str) -> list[Line]:
    begun, ended, code = pod.started, pod.finished, WAIT_FAILED if pod.wait_error else 0
    message = pod.wait_error
    if container == main_container(pod):
        ended, code, message = pod.main_ended, pod.exit_code, pod.message
    elif container != WAIT:
        begun, ended, code = pod.pulled, pod.started, 0
    by_launcher = isinstance(pod.launch, Launch) and pod.role == EXECUTOR and container == main_container(pod)
    if begun is not None and by_launcher:
        assert isinstance(pod.launch, Launch)
        return _launcher_lines(pod.launch, begun, ended)
    lines = []
    if begun is not None:
        lines.append(Line(begun, "info", f"{pod.task or pod.name}: {container} started"))
    if ended is not None:
        lines.append(Line(ended, "error" if code else "info", (message if code else "") or f"exit code {code}"))
    return lines


def _launcher_lines(launch: Launch, begun: float, ended: float | None) -> list[Line]:
    """The lines around the command's own, of which the simulated one has none."""
    lines = [Line(begun, "I", "Setting log level to: '1'", _MAIN)]
    if launch.uploading is not None:
        begun = launch.uploading
        missing = "output metadata file does not exist in /tmp/kfp_outputs/output_metadata.json"
        lines.append(Line(begun, "I", missing, _LAUNCHER))
        lines.append(Line(begun, "I", "Executing uploadOutputArtifacts attempt: 1", _LAUNCHER))
        lines.append(Line(begun, "I", "outputArtifact in uploadOutputArtifacts call: output", _LAUNCHER))
    if launch.uploaded is not None:
        copied = 'uploadFile(localFilePath="/minio/mlpipeline/output", blobFilePath="output")'
        lines.append(Line(launch.uploaded, "I", copied, _STORE))
    if ended is None:
        return lines
    if launch.error and launch.uploading is not None:
        lines.append(Line(ended, "E", f"All upload artifact attempts failed: {launch.error}", _LAUNCHER))
    lines.append(Line(ended, "I", "publish success.", _LAUNCHER))
    if launch.error:
        lines.append(Line(ended, "F", f"failed to execute component: {launch.error}", _MAIN))
    return lines

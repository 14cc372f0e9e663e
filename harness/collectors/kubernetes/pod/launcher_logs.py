"""What KFP's launcher logged in a few pods: when it stored the outputs, and why it failed.

The launcher runs the step's command within the container ``main``: it downloads the inputs, runs the command, uploads
the outputs, and ends with exit code 1 when any of that fails. Kubernetes shows only when it started and ended, so its
log is read, at one request per pod, of a sample of the pods that have ended.

Relevant lines, as glog writes them (source: kubeflow/pipelines, backend/src/v2/component/launcher_v2.go, unchanged
from 2.0 to 2.17 but for the first, which is new in 2.17)::

    Executing uploadOutputArtifacts attempt: 1      the command has ended, the upload begins
    ExecutorOutput: …                               the same; or, without such a file:
    output metadata file does not exist in …
    uploadFile(localFilePath="…", blobFilePath="…") one file has been uploaded
    failed to execute component: …                  with severity F: why the launcher ended

When downloads end is not logged.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.source_health import UnreachableError
from harness.model.phases import LAUNCHER_ERROR, NOT_REACHABLE, POD_LOGS, UPLOAD_SECONDS
from harness.model.records import Event, Sample
from harness.model.sampling import of_failures, of_uploads

_LAUNCHER = "kfp-launcher"  # the init container that brings the launcher
_LINES, _BYTES = 200, 2**18  # of the log's end: the command may have written much
_FORBIDDEN, _SERVER_ERROR = 403, 500
_TICK_S = 0.5
# Severity and day, time, process, place. Not at the line's beginning where the command's last line has no end.
_GLOG = r"{}\d{{4}} \d\d:\d\d:\d\d\.\d+ +\d+ \w+\.go:\d+\] "
_COMMAND_ENDED = re.compile(
    _GLOG.format("I")
    + r"(?:Executing uploadOutputArtifacts attempt: 1$|ExecutorOutput: |output metadata file does not exist)"
)
_UPLOADED = re.compile(_GLOG.format("I") + r"uploadFile\(localFilePath=")
_FATAL = re.compile(_GLOG.format("F") + r"(?:failed to execute component: )?(.*)")


@dataclass(frozen=True, slots=True)
class LauncherLog:
    """What a launcher's log shows; instants are UTC ns.

    Attributes:
        uploading_at: when the command had ended and the upload began; none if it didn't come to that.
        uploaded_at: when the last file had been uploaded; none without files.
        error: why the launcher failed; "" if it did not.
        ended_at: of the last line.
    """

    uploading_at: int | None
    uploaded_at: int | None
    error: str
    ended_at: int


def read_log(text: str) -> LauncherLog | None:
    """Read a log in which every line begins with a timestamp; none if no line has one."""
    uploading = uploaded = ended = None
    error = ""
    for line in text.splitlines():
        moment, _, said = line.partition(" ")
        try:
            at = stamp(moment)
        except ValueError:
            continue  # the first line may be cut off
        if at is None:
            continue
        ended = at.at
        if _COMMAND_ENDED.search(said):
            # The last such group counts: a step may print another launcher's log.
            uploading = at.at if uploading is None or uploaded is not None else uploading
            uploaded = None
        elif uploading is not None and _UPLOADED.search(said):
            uploaded = at.at
        elif match := _FATAL.search(said):
            error = match[1]
    return None if ended is None else LauncherLog(uploading, uploaded, error, ended)


@dataclass(frozen=True, slots=True)
class EndedPod:
    """A pod that ran KFP's launcher and has ended."""

    namespace: str
    name: str
    uid: str
    run: str
    task: str
    failed: bool


Learned = Callable[[str, LauncherLog], None]  # called with the pod's uid


class LauncherLogs:
    """Reads the logs of some pods, one after the other. `offer` is called by other threads."""

    def __init__(self, api: KubeApi, journal: Journal) -> None:
        self._api = api
        self._journal = journal
        self._waiting: deque[EndedPod] = deque()
        self._failures, self._uploads = of_failures(), of_uploads()
        self._forbidden = self._noted = False

    def offer(self, pod: EndedPod) -> None:
        """A pod has ended; its log will be read if the sampling chooses it."""
        sampling = self._failures if pod.failed else self._uploads
        if not self._forbidden and sampling.chooses(pod.task):
            self._waiting.append(pod)

    def follow(self, stop: threading.Event, learned: Learned) -> None:
        """Read what is offered until `stop` is set, and then what is left."""
        while not stop.wait(_TICK_S):
            self._read_all(learned)
        self._read_all(learned)

    def _read_all(self, learned: Learned) -> None:
        while self._waiting:
            pod = self._waiting.popleft()
            try:
                log = self._read(pod)
            except UnreachableError:
                return  # nothing answers; the next round may be luckier, and the last one ends here
            if log is not None:
                self._record(pod, log)
                learned(pod.uid, log)

    def _read(self, pod: EndedPod) -> LauncherLog | None:
        """The log of a pod; none if it may not be read or is gone.

        Raises:
            UnreachableError: there was no response.
        """
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
        query = {"container": "main", "timestamps": "true", "tailLines": str(_LINES), "limitBytes": str(_BYTES)}
        try:
            return read_log(self._api.get_text(path, query))
        except UnreachableError as error:
            if not error.status:
                raise
            if error.status == _FORBIDDEN:
                self._forbidden = True
                self._waiting.clear()
            # The API server answers for a kubelet that it does not reach.
            if error.status == _FORBIDDEN or (error.status >= _SERVER_ERROR and not self._noted):
                self._noted = True
                self._journal.note(NOT_REACHABLE, POD_LOGS, str(error))
            return None  # the pod may be gone: others will do

    def _record(self, pod: EndedPod, log: LauncherLog) -> None:
        if log.uploading_at is not None and log.uploaded_at is not None and not log.error:
            seconds = (log.uploaded_at - log.uploading_at) / 1e9
            self._journal.write(Sample(UPLOAD_SECONDS, log.uploaded_at, seconds, {"task": pod.task, "pod": pod.name}))
        if log.error:
            self._journal.write(
                Event(
                    log.ended_at, "Pod", pod.name, LAUNCHER_ERROR, log.error, "kubernetes", pod.run or None,
                    type="Warning",
                )
            )  # fmt: skip


def ended_pod(manifest: Mapping[str, Any], run: str, task: str) -> EndedPod | None:
    """The pod if it ran the launcher and has ended by itself; none otherwise."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    phase = status.get("phase")
    launched = any(container.get("name") == _LAUNCHER for container in spec.get("initContainers") or ())
    if not launched or not run or phase not in {"Succeeded", "Failed"}:
        return None
    return EndedPod(
        str(metadata.get("namespace", "")), str(metadata["name"]), str(metadata["uid"]), run, task, phase == "Failed"
    )

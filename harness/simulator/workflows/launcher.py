"""What happens around a step's command: KFP's launcher within ``main``, and Argo's ``wait`` beside it.

The launcher downloads the inputs, runs the command, uploads the outputs, and exits with code 1 if any of that fails.
Kubernetes learns nothing of it but the exit code; times and reasons are in the log. ``wait`` stores the log once
``main`` has ended (``archiveLogs``, which KFP sets) and leaves its error in its termination message.

Source: kubeflow/pipelines, backend/src/v2/component/launcher_v2.go and objectstore/object_store.go of July 2026;
argo-workflows 4.0.8, cmd/argoexec/commands/wait.go. The texts have not been recorded from a real platform.
"""

from harness.simulator.cluster import Pod
from harness.simulator.cluster.kubelet import Kubelet
from harness.simulator.workflows.artifact_store import ArtifactStore, Refusal

FAILED = 1
WAIT_FAILED = 64  # argoexec's exit code
CFS_PERIODS_PER_S = 10.0  # Kubernetes' default, --cpu-cfs-quota-period=100ms


class Launch:
    """One run of the launcher.

    Attributes:
        core_s: core-seconds that the command used.
        throttled: it would use more cores than its limit.
        uploading: when it began to upload the outputs, simulated seconds; none before that.
        uploaded: when that had succeeded.
        error: it ended with; "" for none.
    """

    __slots__ = ("core_s", "error", "throttled", "uploaded", "uploading")

    def __init__(self) -> None:
        self.core_s = 0.0
        self.throttled = False
        self.uploading: float | None = None
        self.uploaded: float | None = None
        self.error = ""


def download_error(why: Refusal) -> str:
    """The launcher's error for an input that it could not read."""
    return f'failed to download input artifact "input" from remote storage URI "{_URI}": {_request("GetObject", why)}'


def upload_error(why: Refusal) -> str:
    """The launcher's error for an output that it could not write."""
    copying = "uploadFile(): unable to complete copying: failed to close Writer for bucket"
    return (
        f'failed to upload output artifact "output" to remote storage URI "{_URI}": {copying}: '
        f"{_request('PutObject', why)}"
    )


_URI = "minio://mlpipeline/v2/artifacts"


def _request(operation: str, why: Refusal) -> str:
    """An error of the S3 client, which retries: the store's answer, or that it gave none."""
    said = (
        f"StatusCode: {why.status}, api error {why.code}: {why.message}"
        if why.status
        else f"StatusCode: 0, request send failed, {why.message}"
    )
    return f"operation error S3: {operation}, exceeded maximum number of attempts, 3, https response error {said}"


class LogArchive:
    """Argo's ``wait`` containers, which store the logs of ``main``, and its outputs where no launcher does."""

    def __init__(self, store: ArtifactStore, kubelet: Kubelet) -> None:
        self._store = store
        self._kubelet = kubelet

    def end(self, pod: Pod, exit_code: int = 0, reason: str = "Completed", *, output: float = 0.0) -> None:
        """End the main container; the pod ends once its output (bytes) and its log are stored.

        No effect on a deleted or ended pod.
        """
        if pod.deleting is not None or pod.finished is not None:
            return
        self._kubelet.end_main(pod, exit_code, reason)
        pod.station = pod.job = None
        if output:
            self._store.write(pod, output, self._stored)
        else:
            self._store.archive(pod, self._archived)

    def _stored(self, pod: Pod, _: float, why: Refusal | None) -> None:
        pod.station = pod.job = None
        if why is None:
            self._store.archive(pod, self._archived)
        else:
            self._archived(pod, why)

    def _archived(self, pod: Pod, why: Refusal | None) -> None:
        if pod.measured is not None and pod.measured.ending:
            self._store.loop.after(pod.measured.ending, self._over, pod, why)
        else:
            self._over(pod, why)

    def _over(self, pod: Pod, why: Refusal | None) -> None:
        if pod.deleting is None and pod.finished is None:
            pod.wait_error = f"timed out waiting for the condition: failed to put file: {why.message}" if why else ""
            self._kubelet.finish(pod)

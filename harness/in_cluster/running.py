"""A load test that runs in a cluster: started, followed, ended early, and its run folder brought home."""

import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from harness.in_cluster import pod
from harness.in_cluster.manifests import KEEPER, LOAD, RUNS, STATE, ClusterTest, Manifest, belongings, job, owned
from harness.in_cluster.pod_state import PodState, Step, state_of
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.plan.whole_answer import lines_of, read_whole

_TIMEOUT_S = 30.0
_PAUSE_S = 1.0
_STDOUT = 1  # channel of a command's output
_OF_ACCOUNT = frozenset({"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
_EXISTS, _NOT_FOUND, _FORBIDDEN = 409, 404, 403


def start(api: Any, test: ClusterTest, account: Sequence[Manifest]) -> "RunningTest":
    """Create what the test needs; `account`, if any, only where the service account does not exist.

    Raises:
        ConfigError: the service account is missing, or the cluster refuses an object: it names the right that is
            missing. No Job is left.
        TargetUnreachableError: the cluster does not answer.
    """
    from kubernetes import client

    with _told():
        if not _has_account(client, api, test):
            if not account:
                missing = f"there is no service account {test.account} in namespace {test.namespace}"
                raise ConfigError(missing, "create it, or leave --service-account out")
            for manifest in account:
                _create(api, manifest, may_exist=True)
        made = _create(api, job(test))
        try:
            owner = {"name": made.metadata.name, "uid": made.metadata.uid}
            for manifest in belongings(test):
                _create(api, owned(manifest, owner))
        except BaseException:
            RunningTest(api, test).remove()
            raise
    return RunningTest(api, test)


def follow(
    test: "RunningTest", write: Callable[[str], None], say: Callable[[str], None], pause: Callable[[float], None]
) -> PodState:
    """Pass on the load's log line by line until it has ended or can't start; `say` gets the reason why it waits.

    A cluster that does not answer is asked again: the test goes on without us.

    Raises:
        ConfigError: the pod or its log may not be read.
    """
    said = ""
    while True:
        try:
            state = test.state()
            if state.step is Step.RUNNING or state.exit_code is not None:
                test.pass_on_log(write)
        except TargetUnreachableError as error:
            state = PodState(Step.WAITING, error.message)
        if state.step in {Step.STUCK, Step.ENDED}:
            return state
        if state.step is Step.WAITING and state.said != said:
            said = state.said
            say(said)
        pause(_PAUSE_S)


class RunningTest:
    """The Job of `test`, and its pod."""

    def __init__(self, api: Any, test: ClusterTest) -> None:
        from kubernetes import client

        self._test = test
        self._core = client.CoreV1Api(api)
        self._batch = client.BatchV1Api(api)
        self._pod = ""
        self._lines = 0  # of the log, passed on

    def state(self) -> PodState:
        """How far it is.

        Raises:
            ConfigError: this may not be read.
            TargetUnreachableError: the cluster does not answer.
        """
        test = self._test
        with _told():
            pods = self._core.list_namespaced_pod(
                test.namespace, label_selector=f"job-name={test.name}", _preload_content=False,
                _request_timeout=_TIMEOUT_S,
            )  # fmt: skip
            found = json.loads(read_whole(pods, _TIMEOUT_S))["items"]
            if found:
                self._pod = found[0]["metadata"]["name"]
                return state_of(found[0])
            return self._without_pod()

    def _without_pod(self) -> PodState:
        from kubernetes.client.exceptions import ApiException

        test = self._test
        try:
            self._batch.read_namespaced_job(test.name, test.namespace, _request_timeout=_TIMEOUT_S)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return PodState(Step.ENDED, "the Job was deleted")
            raise
        if self._pod:
            return PodState(Step.ENDED, "the pod was deleted")
        selector = f"involvedObject.name={test.name},type=Warning"
        events = self._core.list_namespaced_event(
            test.namespace, field_selector=selector, _request_timeout=_TIMEOUT_S
        ).items
        return PodState(Step.WAITING, f"{events[-1].reason}: {events[-1].message}") if events else state_of(None)

    def pass_on_log(self, write: Callable[[str], None]) -> None:
        """Write the log's further lines until the load has ended, or the connection.

        Raises:
            ConfigError: the log may not be read.
            TargetUnreachableError: the connection broke; a further call goes on where this one ended.
        """
        with _told():
            log = self._core.read_namespaced_pod_log(
                self._pod, self._test.namespace, container=LOAD, follow=True, _preload_content=False,
            )  # fmt: skip
            for number, line in enumerate(lines_of(log.stream(2**14))):
                if number >= self._lines:
                    write(line.decode(errors="replace"))
                    self._lines = number + 1

    def interrupt(self) -> None:
        """End the load as Ctrl-C does: it cleans up, writes its report and exits."""
        self._execute(LOAD, pod.stop_command(STATE), None)

    def bring_home(self, runs_dir: Path) -> Path | None:
        """Copy the run folder to `runs_dir` and let the pod end; none where the load made no folder.

        Raises:
            ConfigError: it can't be copied or written.
            TargetUnreachableError: the cluster does not answer.
        """
        runs_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".arriving-", dir=runs_dir) as place:
            packed = Path(place) / "packed"
            with packed.open("wb") as out:
                code = self._execute(KEEPER, pod.pack_command(RUNS, self._test.run), out)
            home = _unpacked(packed, Path(place), self._test.run, runs_dir) if code == 0 else None
        self._execute(KEEPER, pod.taken_command(STATE), None)
        return home

    def remove(self) -> None:
        """Delete the Job and all that belongs to it."""
        with _told():
            self._batch.delete_namespaced_job(
                self._test.name, self._test.namespace, propagation_policy="Background", _request_timeout=_TIMEOUT_S
            )

    def _execute(self, container: str, command: Sequence[str], out: IO[bytes] | None) -> int:
        """Run a command in a container of the pod; its stdout goes to `out`. Returns its exit code."""
        from kubernetes.stream import stream
        from kubernetes.stream.ws_client import websocket_call
        from websocket import WebSocketException

        # As `stream` does, but without gathering all output in memory.
        execute = partial(stream.func, partial(websocket_call, capture_all=False), None)
        with _told():
            try:
                channels = execute(
                    self._core.connect_get_namespaced_pod_exec, self._pod, self._test.namespace, container=container,
                    command=list(command), stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
                    binary=True,
                )  # fmt: skip
                while channels.is_open():
                    channels.update(timeout=_TIMEOUT_S)
                    if (written := channels.read_channel(_STDOUT)) and out is not None:
                        out.write(written)
                return int(channels.returncode)
            except (WebSocketException, TypeError) as error:  # TypeError: it ended without a status
                raise TargetUnreachableError(f"the connection to the pod broke: {error}") from error


def _unpacked(packed: Path, place: Path, run: str, runs_dir: Path) -> Path:
    try:
        with tarfile.open(packed) as archive:
            _demand_room(sum(member.size for member in archive), runs_dir)
            archive.extractall(place / "unpacked", filter="data")  # nothing outside of it
        return Path(shutil.move(place / "unpacked" / run, runs_dir / run))
    except (tarfile.TarError, EOFError) as error:
        raise ConfigError(f"the run folder arrived damaged: {error}", "see where else it is kept") from error


def _demand_room(size: int, runs_dir: Path) -> None:
    free = shutil.disk_usage(runs_dir).free
    if size > free:
        raise ConfigError(
            f"the run folder has {size / 2**20:,.0f} MiB, {runs_dir} has room for {free / 2**20:,.0f}", "make room"
        )


def _has_account(client: Any, api: Any, test: ClusterTest) -> bool:
    """Whether the service account exists; who may not look is taken to know it."""
    from kubernetes.client.exceptions import ApiException

    try:
        client.CoreV1Api(api).read_namespaced_service_account(test.account, test.namespace, _request_timeout=_TIMEOUT_S)
    except ApiException as error:
        if error.status == _NOT_FOUND:
            return False
        if error.status != _FORBIDDEN:
            raise
    return True


def _create(api: Any, manifest: Manifest, *, may_exist: bool = False) -> Any:
    """Create one object of any kind; none if there was one already.

    Raises:
        ConfigError: it is refused.
    """
    from kubernetes.utils import FailToCreateError, create_from_dict

    try:
        return create_from_dict(api, manifest)[0]
    except FailToCreateError as error:
        refused = error.api_exceptions[0]
        if refused.status == _EXISTS and may_exist:
            return None
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        raise ConfigError(f"{name} can't be created: {_message(refused)}", _hint(refused.status, manifest)) from error


def _hint(status: int, manifest: Mapping[str, Any]) -> str:
    if status == _EXISTS:
        return "give another --run-name, or delete it"
    if status == _FORBIDDEN and manifest["kind"] in _OF_ACCOUNT:
        return "have an administrator apply what --dry-run prints, or name an account with --service-account"
    return "ask for this right, or give another --namespace" if status == _FORBIDDEN else "see the message"


@contextmanager
def _told() -> Iterator[None]:
    """Turns what the client raises into errors for the user."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        if error.status:
            raise ConfigError(f"the cluster refuses: {_message(error)}", "check rights and namespace") from error
        raise TargetUnreachableError(f"the cluster does not answer: {error.reason}", _CHECK) from error
    except (HTTPError, ConnectionError) as error:
        raise TargetUnreachableError(f"the cluster does not answer: {error}", _CHECK) from error


def _message(error: Any) -> str:
    """The message of the API's Status object, or the HTTP reason."""
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, TypeError, KeyError):
        return str(error.reason)


_CHECK = "check the kubeconfig and its context: kubectl cluster-info"

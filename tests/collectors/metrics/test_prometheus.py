"""Metric profiles, against a real Prometheus and against pages scraped directly."""

import math
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.metrics import prometheus, scraping
from harness.collectors.metrics.profiles_file import Kind, Metric, load, names
from harness.collectors.metrics.scraping import Scrape, parse, quantile, samples
from harness.collectors.source_health import UnreachableError
from harness.model import ConfigError, Event, Sample
from harness.model.http import HttpAnswer
from harness.model.plan import ObserverPlan
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.targets.credentials import Credentials
from tests.support.prometheus_server import observation, real_prometheus
from tests.support.servers import Answer, Served, until

PAGE = """\
# HELP argo_workflows_queue_depth_count old name
# TYPE argo_workflows_queue_depth_count gauge
argo_workflows_queue_depth_count{queue_name="workflow_queue"} 7
argo_workflows_queue_depth_count{queue_name="pod \\"cleanup\\" {q}"} 2 1700000000000
argo_workflows_workers_busy{worker_type="a"} NaN
argo_workflows_error_count{cause="x"} 1e3 # {trace_id="1"} 1 2
broken{ line
"""


class TestProfiles:
    @pytest.mark.parametrize("name", names())
    def test_every_built_in_profile_loads(self, name: str) -> None:
        profile = load(name, ("kubeflow",))
        assert profile.metrics
        assert "$" not in "".join(q for m in profile.metrics for q in m.queries(m.any_of[0], 60).values())

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("metrics: 1", "no list 'metrics'"),
            ("metrics: [{name: a}]", r"metrics\[0\]: 'any_of'"),
            ("metrics: [{name: a, any_of: [b]}, {name: c, any_of: ['d-e']}]", r"metrics\[1\]: 'any_of'"),
            ("metrics: [{name: a, any_of: [b], kind: timer}]", "'timer' is not a kind"),
            ("metrics: [{name: a, any_of: [b], label: []}]", "unknown key 'label'"),
            ("metrics: [{name: a, any_of: [b], where: [c]}]", "'where' is not a mapping"),
            ("metrics: [{name: a, any_of: [b], by: c}]", "'by' is not a list"),
            ("metrics: [{name: a, any_of: [b], fold: avg}]", "'avg' is not a fold"),
            ("metrics: [", "not valid YAML"),
        ],
    )
    def test_an_invalid_profile_is_reported_with_place_and_reason(self, tmp_path: Path, text: str, says: str) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError, match=says):
            load(str(path))

    def test_a_profile_of_ones_own_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "own.yaml").write_text(
            "title: mine\nmetrics: [{name: a_s, any_of: [a, b], kind: histogram, by: [verb]}]"
        )
        (metric,) = load(str(tmp_path / "own.yaml")).metrics
        assert metric == Metric(name="a_s", any_of=("a", "b"), kind=Kind.HISTOGRAM, by=("verb",))

    def test_an_unknown_profile_is_reported_with_the_known_ones(self) -> None:
        with pytest.raises(ConfigError, match=r"profiles are: .*kfp"):
            load("kpf")


class TestScraping:
    def test_the_text_format_is_parsed(self) -> None:
        page = parse(PAGE)
        assert page["argo_workflows_queue_depth_count"] == {
            (("queue_name", "workflow_queue"),): 7.0,
            (("queue_name", 'pod "cleanup" {q}'),): 2.0,
        }
        assert page["argo_workflows_error_count"] == {(("cause", "x"),): 1000.0}
        assert math.isnan(page["argo_workflows_workers_busy"][("worker_type", "a"),])
        assert "broken" not in page

    def test_the_name_that_exists_is_taken(self) -> None:
        metric = next(each for each in load("argo").metrics if each.name == "argo_queue_depth")
        found = {sample.labels["queue_name"]: sample.value for sample in samples(metric, Scrape(5, parse(PAGE)), None)}
        assert found == {"workflow_queue": 7.0, 'pod "cleanup" {q}': 2.0}

    def test_counters_are_rates_between_scrapes_across_a_restart(self) -> None:
        metric = Metric(name="r", any_of=("c_total",), kind=Kind.COUNTER, by=("code",))
        before = Scrape(0, parse('c_total{code="1",pod="a"} 10\nc_total{code="1",pod="b"} 100'))
        now = Scrape(2 * 10**9, parse('c_total{code="1",pod="a"} 30\nc_total{code="1",pod="b"} 4\nc_total{code="2"} 6'))
        assert {s.labels["code"]: s.value for s in samples(metric, now, before)} == {"1": 12.0, "2": 3.0}
        assert not samples(metric, now, None)

    def test_labels_are_selected_and_renamed(self) -> None:
        volumes = {each.name: each for each in load("volumes", ("kubeflow", "my-ns")).metrics}
        page = parse(
            'kubelet_volume_stats_available_bytes{namespace="kubeflow",persistentvolumeclaim="minio-pvc"} 5\n'
            'kubelet_volume_stats_available_bytes{namespace="other",persistentvolumeclaim="x"} 6\n'
        )
        assert samples(volumes["store_available_bytes"], Scrape(1, page), None) == [
            Sample("store_available_bytes", 1, 5.0, {"volume": "minio-pvc", "namespace": "kubeflow"})
        ]

    @given(st.lists(st.floats(0.01, 99), min_size=1, max_size=50), st.floats(0.01, 0.99))
    def test_a_quantile_lies_in_the_bucket_of_the_true_one(self, values: list[float], share: float) -> None:
        bounds = [0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, math.inf]
        found = quantile(share, [(bound, float(sum(value <= bound for value in values))) for bound in bounds])
        assert found is not None
        true = sorted(values)[math.ceil(share * len(values) - 1e-9) - 1]
        upper = next(bound for bound in bounds if true <= bound)
        lower = max([0.0, *(bound for bound in bounds if bound < upper)])
        assert lower - 1e-9 <= found <= upper + 1e-9

    def test_an_unreachable_page_is_noted_and_others_are_scraped(self, tmp_path: Path) -> None:
        def answer(path: str, _query: dict[str, str]) -> Answer:
            return (200, PAGE) if path == "/metrics" else (404, "no")

        with Served(answer) as server, RunFolder(tmp_path).recorder() as recorder:
            pages = (("argo", f"{server.url}/metrics"), ("kfp", f"{server.url}/nothing"))
            collector = scraping.open_collector(observation(tmp_path, recorder, metrics=pages))
            assert collector is not None
            stop = threading.Event()
            stop.set()
            collector.collect(stop)
        folder = RunFolder(tmp_path)
        assert {sample.metric for sample in folder.records(Sample)} >= {"argo_queue_depth"}
        assert [(e.reason, e.object) for e in folder.records(Event)] == [("NotReachable", "metrics of kfp")]


class Counted:
    """A page whose counter and histogram grow by ten per second."""

    def __init__(self) -> None:
        self._begun_s = time.time()

    def __call__(self, _path: str, _query: dict[str, str]) -> Answer:
        count = 10 * (time.time() - self._begun_s)
        lines = [
            f"run_server_create_requests {count!r}",
            "run_server_run_count 42",
            f'grpc_server_handled_total{{grpc_service="api.RunService",grpc_method="CreateRun",grpc_code="OK",pod="a"}} {count!r}',
            f'grpc_server_handled_total{{grpc_service="api.RunService",grpc_method="CreateRun",grpc_code="OK",pod="b"}} {count!r}',
        ]
        for bound, share in (("0.1", 0.0), ("0.5", 0.5), ("1", 1.0), ("+Inf", 1.0)):
            lines.append(
                f'grpc_server_handling_seconds_bucket{{grpc_service="api.RunService",grpc_method="CreateRun",le="{bound}"}} {share * count!r}'
            )
        lines.append(
            f'grpc_server_handled_total{{grpc_service="etcdserverpb.KV",grpc_method="Txn",grpc_code="OK"}} {count}'
        )
        lines.append("resource_manager_workflow_gc 0")
        return 200, "\n".join(lines) + "\n"


def test_a_real_prometheus_is_queried_for_existing_metrics_and_each_sample_is_recorded_once(tmp_path: Path) -> None:
    with (
        Served(Counted()) as served,
        real_prometheus(tmp_path, served.url) as url,
        RunFolder(tmp_path).recorder() as recorder,
    ):
        about = observation(tmp_path, recorder, prometheus=url, scrape_every_s=1.0)
        collector = prometheus.open_collector(about)
        assert collector is not None
        stop = threading.Event()
        thread = threading.Thread(target=collector.collect, args=(stop,), daemon=True)
        thread.start()
        folder = RunFolder(tmp_path)
        until(
            lambda: sum(s.metric == "kfp_create_runs_per_s" for s in folder.records(Sample)) >= 6,
            "six samples of a rate",
        )
        stop.set()
        thread.join(20)
        again = prometheus.open_collector(replace(about, plan=about.plan))  # an observer that is started again
        assert again is not None
        again.collect(stop)
    found = folder.records(Sample)
    assert {sample.metric for sample in found} == {
        "kfp_create_runs_per_s",
        "kfp_runs",
        "kfp_requests_per_s",
        "kfp_request_seconds",
        "kfp_workflows_deleted_per_s",
    }
    assert sum(sample.metric == "kfp_workflows_deleted_per_s" for sample in found) <= 2  # once by each observer
    keys = [(sample.metric, sample.at, tuple(sorted(sample.labels.items()))) for sample in found]
    assert len(keys) == len(set(keys))
    last = {(s.metric, s.labels.get("quantile", "")): s for s in found}
    assert last["kfp_create_runs_per_s", ""].value == pytest.approx(10, rel=0.25)
    assert last["kfp_requests_per_s", ""].value == pytest.approx(20, rel=0.25)
    assert last["kfp_requests_per_s", ""].labels == {"grpc_method": "CreateRun", "grpc_code": "OK"}
    # Half of the observations lie up to 0.5 s, the others between 0.5 s and 1 s: linear within the bucket.
    assert last["kfp_request_seconds", "0.5"].value == pytest.approx(0.5, abs=0.01)
    assert last["kfp_request_seconds", "0.99"].value == pytest.approx(0.99, abs=0.01)
    assert {s.value for s in found if s.metric == "kfp_runs"} == {42.0}
    assert not [event for event in folder.records(Event) if event.kind == "Observer"]


def test_nothing_before_the_test_is_asked_for_and_the_first_windows_begin_with_it(tmp_path: Path) -> None:
    asked: list[tuple[int, int, str]] = []

    def answer(path: str, query: dict[str, str]) -> Answer:
        if path.endswith("/query"):
            names_here = ("argo_workflows_queue_adds_count", "argo_workflows_queue_depth_gauge")
            found = [{"metric": {"__name__": name}, "value": [0, "1"]} for name in names_here]
            return 200, {"status": "success", "data": {"resultType": "vector", "result": found}}
        asked.append((int(query["start"]), int(query["end"]), query["query"]))
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": []}}

    with Served(answer) as served, RunFolder(tmp_path).recorder() as recorder:
        about = observation(tmp_path, recorder, prometheus=served.url, scrape_every_s=15.0, metric_profiles=("argo",))
        started_s = (time.time_ns() // 10**9 - 120) // 15 * 15
        collector = prometheus.open_collector(replace(about, plan=replace(about.plan, started_at=started_s * 10**9)))
        assert collector is not None
        stop = threading.Event()
        stop.set()
        collector.collect(stop)
    assert min(start for start, _, _ in asked) > started_s
    gauges = [(start - started_s) for start, _, query in asked if "rate(" not in query]
    assert gauges[:1] == [15]
    windows = {
        start - started_s: (end - start, query.partition("[")[2].partition("]")[0])
        for start, end, query in asked
        if "rate(" in query
    }
    assert windows[30] == (0, "30s")
    assert windows[45] == (0, "45s")
    assert windows[60][1] == "60s"
    assert windows[60][0] >= 45


def test_long_ranges_are_queried_in_chunks_without_duplicate_points() -> None:
    asked: list[tuple[int, int]] = []

    def answer(_path: str, query: dict[str, str]) -> Answer:
        start, end, step = int(query["start"]), int(query["end"]), int(query["step"])
        asked.append((start, end))
        assert (end - start) // step < 11_000
        values = [[at, "1"] for at in range(start, end + 1, step)]
        return 200, {
            "status": "success",
            "data": {"resultType": "matrix", "result": [{"metric": {}, "values": values}]},
        }

    from harness.collectors.http import Http, Timeouts

    with Served(answer) as server:
        journal = Journal.__new__(Journal)
        journal.count = lambda _endpoint: None  # type: ignore[method-assign]
        api = prometheus.PrometheusApi(
            Http("prometheus", server.url, Credentials(), Timeouts(5, 5), count=journal.count)
        )
        stamps = [at for _, at, _ in api.series("up", 1000, 1000 + 25_000 * 15, 15)]
    assert len(asked) == 3
    assert stamps == [(1000 + 15 * k) * 10**9 for k in range(25_001)]


def test_its_token_comes_from_the_environment_and_goes_to_it_alone(tmp_path: Path) -> None:
    def answer(_path: str, _query: dict[str, str]) -> Answer:
        return 200, {"status": "success", "data": {"result": []}}

    with Served(answer) as server, RunFolder(tmp_path).recorder() as recorder:
        plan = replace(
            plan_observation("kfp", "http://127.0.0.1:1", {}, 0), observer=ObserverPlan(prometheus=server.url)
        )
        settings = ObserverSettings.of(plan, Credentials("the platform's"), {"PIPESWARM_PROMETHEUS_TOKEN": "its own"})
        stop = threading.Event()
        stop.set()
        collector = prometheus.open_collector(replace(observation(tmp_path, recorder), settings=settings))
        assert collector is not None
        collector.collect(stop)
    assert set(server.tokens) == {"Bearer its own"}


def test_an_unreachable_prometheus_is_noted(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with RunFolder(tmp_path).recorder() as recorder:
        collector = prometheus.open_collector(observation(tmp_path, recorder, prometheus="http://127.0.0.1:1"))
        assert collector is not None
        collector.collect(stop)
    assert [(e.reason, e.object) for e in RunFolder(tmp_path).records(Event)] == [("NotReachable", "prometheus")]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>Sign in", "an HTML page"),
        (b"[]", "answered 200"),
        (b'{"status": "error", "error": "too many samples"}', "too many samples"),
        (b'{"status": "success"}', "as a Prometheus does"),
        (b'{"status": "success", "data": []}', "as a Prometheus does"),
        (b'{"status": "success", "data": {"result": [7]}}', "as a Prometheus does"),
        (b'{"status": "success", "data": {"result": [{"metric": []}]}}', "as a Prometheus does"),
        (b'{"status": "success", "data": {"result": [{"metric": {}, "value": [1e300, "1"]}]}}', "as a Prometheus does"),
        (b'{"status": "success", "data": {"result": [{"metric": {}, "value": [1, "many"]}]}}', "as a Prometheus does"),
    ],
)
def test_a_server_that_is_not_a_prometheus_is_unreachable(body: bytes, said: str) -> None:
    api = prometheus.PrometheusApi(lambda _request: HttpAnswer(200, body))
    with pytest.raises(UnreachableError, match=said):
        api.existing(["up"])

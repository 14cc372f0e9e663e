"""``--otel``: Locust's own option also exports the runs as traces."""

import json

from harness.model.trace_ids import trace_id
from tests.support.e2e import FEW, QUICK
from tests.support.trace_collector import over_grpc

NOT_OF_LOCUST = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


def test_a_test_exports_its_runs_under_the_ids_that_its_requests_named(locust):
    with over_grpc() as collector:
        test = ("--simulate", QUICK, *FEW, "--schedule", "spread", "--runs", "5", "--over", "1s", "--otel")
        done = locust.headless(*test, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **NOT_OF_LOCUST)
    assert done.code == 0, done.out + done.err
    assert f"traces: exported 5 runs as {len(collector.spans)} spans" in done.out
    plan = json.loads((done.folder / "manifest.json").read_text())
    traces = {int.from_bytes(span.trace_id) for span in collector.spans}
    assert traces == {trace_id(plan["id"], seq) for seq in range(5)}
    assert plan["traced"] is True


def test_an_exporter_that_can_not_work_is_refused_before_the_first_arrival(locust):
    done = locust.headless("--simulate", QUICK, *FEW, "--runs", "5", "--otel", OTEL_EXPORTER_OTLP_PROTOCOL="http/json")
    assert (done.code, done.folder) == (2, None), done.err
    assert "error: --otel: OTLP has no protocol http/json here" in done.err

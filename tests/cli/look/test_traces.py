import json

import pytest

from harness.cli import main
from harness.model.errors import ConfigError
from harness.plan.trace_exporter import exporter_module
from tests.support.timelines import burst
from tests.support.trace_collector import over_grpc, over_http

WAYS = {"grpc": over_grpc, "http/protobuf": over_http}


@pytest.fixture
def folder(tmp_path):
    return burst(30).write(tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A collector that is not there is given up soon."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")


@pytest.fixture(params=WAYS)
def collector(request, monkeypatch):
    with WAYS[request.param]() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        yield collector


def test_a_collector_gets_every_run_with_its_pods(folder, collector, capsys):
    code = main(["report", str(folder.path), "--otel"])
    assert f"traces: exported 30 runs as {len(collector.spans)} spans" in capsys.readouterr().out
    assert len(collector.requests) == 2, "it comes in pieces"
    assert code == main(["report", str(folder.path)]), "the exit code is the run's own"
    by_id = {(span.trace_id, span.span_id): span for span in collector.spans}
    roots = [span for span in collector.spans if not span.parent_span_id]
    assert len(by_id) == len(collector.spans)
    assert len(roots) == len({span.trace_id for span in roots}) == 30
    assert all((span.trace_id, span.parent_span_id) in by_id for span in collector.spans if span.parent_span_id)
    (submission, *_) = [span for span in collector.spans if span.name == "submit"]
    assert submission.kind == submission.SPAN_KIND_CLIENT
    assert collector.resource["service.name"] == "pipeswarm"
    assert collector.resource["pipeswarm.test"] == folder.path.name


def test_the_environment_names_the_service(folder, collector, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=staging")
    main(["report", str(folder.path), "--otel"])
    assert collector.resource["service.name"] == "nightly"
    assert collector.resource["deployment.environment"] == "staging"


def test_without_the_option_nothing_is_exported(folder, collector):
    main(["report", str(folder.path)])
    assert collector.requests == []


def test_where_stdout_is_a_document_the_note_is_beside_it(folder, collector, capsys):
    main(["report", str(folder.path), "--otel", "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out)
    assert "traces: exported 30 runs" in said.err


def test_a_collector_that_stops_taking_them_is_named_and_the_report_is_written(folder, collector, capsys):
    expected = main(["report", str(folder.path), "--quiet"])
    collector.refuses_after = 1
    assert main(["report", str(folder.path), "--otel"]) == expected
    assert "traces: exported only 512 spans: Failed to export" in capsys.readouterr().out
    assert (folder.path / "report.html").is_file()


@pytest.mark.parametrize("protocol", WAYS)
def test_a_collector_that_is_not_there_is_named(protocol, folder, monkeypatch, capsys):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    main(["report", str(folder.path), "--otel"])
    said = capsys.readouterr()
    assert "traces: not exported: " in said.out
    assert "refused" in said.out
    assert not said.err


def test_a_missing_package_is_named_before_anything_is_done(folder, monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("harness.plan.trace_exporter.find_spec", missing)
    assert main(["report", str(folder.path), "--otel"]) == 2
    assert "pip install 'pipeswarm[otel]'" in capsys.readouterr().err
    assert not (folder.path / "report.html").exists()


def test_it_can_be_switched_off_as_for_locust(folder, monkeypatch, capsys):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    main(["report", str(folder.path), "--otel"])
    assert "traces: not exported: OTEL_TRACES_EXPORTER is none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_TRACES_EXPORTER", "console"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")],
)
def test_what_is_not_supported_is_refused(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=value):
        exporter_module()


def test_the_protocol_of_traces_counts_before_that_of_all_signals(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert ".grpc." in exporter_module()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    assert ".http." in exporter_module()

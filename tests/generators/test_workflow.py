import csv
import datetime as dt
import json
from pathlib import Path

import pytest

from generators.cli import main
from generators.inference.workflow import read_workflow
from harness.model.errors import ConfigError
from harness.targets.scenarios import Input, ParamMode, read_scenarios

# The shape of an export (GET /api/transformations/<id>) of hetida designer 0.9.8, with the wirings that its backend takes.
EXPORT = {
    "id": "33333333-3333-4333-8333-333333333333",
    "revision_group_id": "44444444-4444-4444-8444-444444444444",
    "name": "Volatility",
    "category": "Anomaly Detection",
    "version_tag": "1.0.0",
    "state": "RELEASED",
    "type": "WORKFLOW",
    "io_interface": {
        "inputs": [
            {"id": "1", "name": "series", "data_type": "SERIES", "type": "REQUIRED"},
            {"id": "2", "name": "live", "data_type": "SERIES", "type": "REQUIRED"},
            {"id": "3", "name": "busy_ms", "data_type": "INT", "type": "REQUIRED"},
            {"id": "4", "name": "threshold", "data_type": "FLOAT", "type": "REQUIRED"},
            {"id": "5", "name": "window", "data_type": "STRING", "type": "OPTIONAL", "value": "180min"},
            {"id": "6", "name": "strict", "data_type": "BOOLEAN", "type": "REQUIRED"},
            {"id": "7", "name": "frame", "data_type": "DATAFRAME", "type": "REQUIRED"},
            {"id": "8", "name": "anything", "data_type": "ANY", "type": "REQUIRED"},
            {"id": "9", "name": "", "data_type": "INT", "type": "REQUIRED"},
        ],
        "outputs": [{"id": "10", "name": "score", "data_type": "SERIES"}],
    },
    "test_wiring": {
        "input_wirings": [
            {
                "workflow_input_name": "live",
                "adapter_id": "slow",
                "ref_id": "plant.7.temperature",
                "ref_id_type": "SOURCE",
                "type": "timeseries(float)",
                "filters": {
                    "timestampFrom": "2026-01-01T00:00:00.000000000Z",
                    "timestampTo": "2026-01-02T12:00:00.000000000Z",
                },
            },
            {
                "workflow_input_name": "series",
                "adapter_id": "direct_provisioning",
                "filters": {"value": '{"2026-01-01T00:00:00Z": 100.0, "2026-01-01T00:01:00Z": 250}'},
            },
            {"workflow_input_name": "busy_ms", "adapter_id": "direct_provisioning", "filters": {"value": "200"}},
            {"workflow_input_name": "threshold", "adapter_id": "direct_provisioning", "filters": {"value": "800"}},
            {"workflow_input_name": "frame", "filters": {"value": '[{"a": 1}, {"a": 2}]'}},
        ],
        "output_wirings": [],
    },
    "content": {},
}


@pytest.fixture
def export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(EXPORT))
    return path


def rows(path, n=100):
    assert main(["--from-workflow", str(path), "--n", str(n), "--quiet"]) == 0
    with Path("scenarios.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_input_has_its_columns(export):
    assert list(rows(export)[0]) == [
        "id", "scenario_name", "series", "busy_ms", "threshold", "window", "strict", "frame", "anything",
        "live.ref_id", "live.timestampFrom", "live.timestampTo",
    ]  # fmt: skip


def test_values_are_near_what_the_test_wiring_has(export):
    found = rows(export)
    assert all(100 <= int(row["busy_ms"]) <= 300 for row in found)
    assert 600 < sorted(float(row["threshold"]) for row in found)[50] < 1000
    assert all(set(row["live.ref_id"]) <= set("plant.0123456789temperature") for row in found)
    assert len({row["live.ref_id"] for row in found}) > 20
    for row in found:
        series = json.loads(row["series"])
        assert list(series) == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]
        assert all(abs(value / near - 1) < 0.5 for value, near in zip(series.values(), (100, 250), strict=True))
        assert [list(record) for record in json.loads(row["frame"])] == [["a"], ["a"]]


def test_a_time_range_keeps_its_length(export):
    for row in rows(export):
        start, end = (dt.datetime.fromisoformat(row[f"live.timestamp{side}"]) for side in ("From", "To"))
        assert end - start == dt.timedelta(hours=36)


def test_the_cells_of_direct_inputs_have_the_types_of_the_interface(export):
    rows(export)
    parameters, _ = read_workflow(export)
    inputs = [Input(p.name, p.type, p.required) for p in parameters.inputs]
    assert len(read_scenarios(Path("scenarios.csv"), inputs, ParamMode())) == 100


@pytest.mark.parametrize(
    ("content", "said"), [("{", "not JSON"), ("[]", "not a transformation"), ('{"a": 1}', "no io_interface")]
)
def test_other_documents_are_not_transformations(tmp_path, content, said):
    path = tmp_path / "w.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        read_workflow(path)

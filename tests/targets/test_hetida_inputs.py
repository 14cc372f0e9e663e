"""The inputs that a scenario may provide; invalid options are errors before the first request."""

import json

import pytest

from harness.model.errors import ConfigError
from harness.targets import hetida
from harness.targets.scenarios import InputType
from tests.support.hetida_platform import EXAMPLE, RECORDED, TEXTS, Platform, example, run_of, target, written


def test_direct_inputs_are_values_and_adapter_inputs_are_parts_of_their_wiring():
    _, inputs = target(transformation=str(EXAMPLE))
    assert {name: each.type for name, each in inputs.items()} == {
        "window": InputType.INTEGER, "threshold": InputType.DOUBLE,
        "series.ref_id": InputType.STRING, "series.timestampFrom": InputType.STRING,
        "series.timestampTo": InputType.STRING, "anomalies.ref_id": InputType.STRING,
    }  # fmt: skip
    assert not any(each.required for each in inputs.values()), "the test wiring has a value for each"


def test_a_scenario_fills_the_wiring_and_leaves_the_rest_as_it_was():
    platform = Platform()
    backend, _ = target(transformation=str(EXAMPLE), platform=platform)
    values = {"window": 5, "series.ref_id": "p7", "series.timestampTo": "2026-02-01T00:00:00Z", "anomalies.ref_id": "s"}
    backend.submit(run_of(**values), platform)
    wired = {each["workflow_input_name"]: each for each in platform.sent["wiring"]["input_wirings"]}
    assert wired["window"]["filters"] == {"value": "5"}
    assert wired["threshold"]["filters"] == {"value": "3.0"}
    assert wired["series"] == {
        **example()["test_wiring"]["input_wirings"][0],
        "ref_id": "p7",
        "filters": {"timestampFrom": "2026-01-01T00:00:00.000000000Z", "timestampTo": "2026-02-01T00:00:00Z"},
    }
    assert {w["workflow_output_name"]: w.get("ref_id") for w in platform.sent["wiring"]["output_wirings"]} == {
        "score": None, "anomalies": "s",
    }  # fmt: skip
    backend.submit(run_of(), platform)
    assert platform.sent["wiring"]["input_wirings"][1]["filters"]["value"] == "30", "one scenario leaves no trace"


def test_an_input_without_a_wiring_needs_a_column(tmp_path):
    transformation = example(test_wiring={"input_wirings": [], "output_wirings": []})
    _, inputs = target(transformation=written(tmp_path / "t.json", transformation))
    assert {name: (each.type, each.required) for name, each in inputs.items()} == {
        "series": (InputType.STRUCT, True), "window": (InputType.INTEGER, True), "threshold": (InputType.DOUBLE, True),
    }  # fmt: skip


def test_an_optional_input_needs_none(tmp_path):
    transformation = example(test_wiring={})
    transformation["io_interface"]["inputs"][1]["type"] = "OPTIONAL"
    _, inputs = target(transformation=written(tmp_path / "t.json", transformation))
    assert not inputs["window"].required


@pytest.mark.parametrize(
    ("texts", "document", "says"),
    [
        ({}, None, "no transformation to execute"),
        ({"transformation": "none.json"}, None, "does not exist"),
        ({}, b"{\n  nope", "line 2"),
        ({}, {"name": "x"}, "io_interface"),
        ({}, [1, 2], "not a transformation"),
        ({"mode": "runtime"}, {"id": "1", "type": "WORKFLOW", "io_interface": {"inputs": [], "outputs": []}}, "workflow without"),
        ({"revision-group": "g", "mode": "runtime"}, None, "only the backend"),
        ({"transformation": "6b1f0c52-7c0e-4f55-9a53-6f1f3a1b7d01", "mode": "runtime"}, None, "no stored transformations"),
        ({"transformation": str(EXAMPLE), "expect-output": "score <"}, None, "--expect-output"),
        ({"transformation": str(EXAMPLE), "expect-output": "score < three"}, None, "three"),
        ({"transformation": str(RECORDED / "runtime_request.json")}, None, "--mode runtime"),
    ],
)  # fmt: skip
def test_invalid_options_are_errors_before_the_first_request(tmp_path, texts, document, says):
    if document is not None:
        path = tmp_path / "t.json"
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        texts = {**texts, "transformation": str(path)}
    with pytest.raises(ConfigError, match=says):
        hetida.prepare({**TEXTS, **texts}, simulated=False)


def test_the_error_for_a_wrong_wiring_lists_what_exists(tmp_path):
    wiring = {"input_wirings": [{"workflow_input_name": "serie", "adapter_id": "plants"}]}
    with pytest.raises(ConfigError, match=r"'serie'.*\n.*series, window, threshold"):
        target(transformation=str(EXAMPLE), wiring=written(tmp_path / "w.json", wiring))
    wiring = {"input_wirings": [{"workflow_input_name": "window", "filters": {"value": "wide"}}]}
    with pytest.raises(ConfigError, match="'wide', which is not INT"):
        target(transformation=str(EXAMPLE), wiring=written(tmp_path / "w.json", wiring))


def test_an_unknown_adapter_is_a_configuration_error(tmp_path):
    transformation = json.loads(json.dumps(example()).replace('"plants"', '"lost"'))
    with pytest.raises(ConfigError, match=r"lost.*\n.*plants, slow"):
        target(transformation=written(tmp_path / "t.json", transformation))

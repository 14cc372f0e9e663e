"""Redacted documents keep their structure, but not the hidden values."""

import orjson
import pytest
import yaml
from kfp import compiler, dsl

from harness.model.text.redaction import Redaction
from harness.targets import hetida, kfp
from harness.targets.kfp.pipeline import read_pipeline
from harness.targets.target import Redactable

SECRET = 's3://plant-north/confidential\'s, "quoted" and long enough to be folded by whoever writes YAML, twice over'


@dsl.component(base_image="python:3.11")
def load(url: str, rows: int, note: str = "none"):
    pass


@dsl.pipeline
def inner(url: str, rows: int = 77_001):
    load(url=url, rows=rows, note=f"again {SECRET}")


@dsl.pipeline
def outer(url: str = SECRET, rows: int = 77_002, options: dict = {"depth": 77_003}, kept: str = "as it was"):  # noqa: B006
    inner(url=url, rows=77_004)
    load(url=url, rows=rows)


@pytest.fixture
def compiled(tmp_path):
    path = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(outer, str(path))
    return path


def test_a_pipeline_without_values_is_still_a_pipeline(compiled, tmp_path):
    before = read_pipeline(compiled)
    bare = kfp.without_values(compiled.read_bytes(), Redaction([SECRET], ["url", "rows", "options"]))
    (tmp_path / "bare.yaml").write_bytes(bare)
    after = read_pipeline(tmp_path / "bare.yaml")
    assert [(each.name, each.type, each.required) for each in after.inputs] == [
        (each.name, each.type, each.required) for each in before.inputs
    ]
    assert {each.name: each.default for each in after.inputs} == {
        "url": "***", "rows": "***", "options": "***", "kept": "as it was",
    }  # fmt: skip
    assert not [n for n in range(77_001, 77_005) if str(n).encode() in bare], "nested defaults and constants, too"
    assert b"confidential" not in bare


def test_only_named_parameters_are_hidden(compiled):
    whole = compiled.read_bytes()
    assert yaml.safe_load(kfp.without_values(whole, Redaction())) == yaml.safe_load(whole)


def test_values_in_a_runtime_configuration_are_hidden_whatever_their_type():
    job = {"runtimeConfig": {"parameterValues": {"rows": 5, "tags": ["a"], "more": {"x": 1}, "kept": 7}}}
    bare = yaml.safe_load(kfp.without_values(yaml.dump(job).encode(), Redaction(names=["rows", "tags", "more"])))
    assert bare["runtimeConfig"]["parameterValues"] == {"rows": "***", "tags": "***", "more": "***", "kept": 7}


def test_a_wiring_without_values():
    wiring = {
        "input_wirings": [
            {"workflow_input_name": "limit", "adapter_id": "direct_provisioning", "filters": {"value": "3.5"}},
            {"workflow_input_name": "window", "adapter_id": "direct_provisioning", "filters": {"value": "30"}},
            {"workflow_input_name": "series", "adapter_id": "a", "ref_id": "p/x", "filters": {"timestampFrom": "2026"}},
        ],
        "output_wirings": [{"workflow_output_name": "out", "adapter_id": "a", "ref_id": "q/y", "filters": None}],
    }
    redaction = Redaction(names=["limit", "series.ref_id", "series.timestampFrom", "out.ref_id"])
    bare = orjson.loads(hetida.without_values(orjson.dumps(wiring), redaction))
    limit, window, series = bare["input_wirings"]
    assert limit["filters"]["value"] == "***"
    assert window == wiring["input_wirings"][1]
    assert (series["ref_id"], series["adapter_id"], series["filters"]["timestampFrom"]) == ("***", "a", "***")
    assert bare["output_wirings"][0]["ref_id"] == "***"


def test_the_default_of_an_optional_input_is_a_value():
    exported = {
        "io_interface": {"inputs": [{"name": "limit", "type": "OPTIONAL", "value": "3.5"}, {"name": "x", "value": 1}]}
    }
    bare = orjson.loads(hetida.without_values(orjson.dumps(exported), Redaction(names=["limit"])))
    assert [each["value"] for each in bare["io_interface"]["inputs"]] == ["***", 1]


@pytest.mark.parametrize("platform", [kfp, hetida])
def test_both_platforms_are_redactable(platform):
    assert isinstance(platform, Redactable)

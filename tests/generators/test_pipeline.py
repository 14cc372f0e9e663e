"""Against the output of the real KFP compiler."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from generators.cli import main
from generators.inference.parameter import draft_of
from generators.inference.pipeline import read_pipeline
from generators.sampler import Sampler
from generators.spec import read_spec
from harness.documents import Document
from harness.model.errors import ConfigError
from harness.model.text.redaction import HIDDEN
from harness.targets.kfp.pipeline import read_pipeline as read_as_the_load_does
from harness.targets.scenarios import ParamMode, read_scenarios
from tests.support.compiled import POOLS

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Pipelines compiled once, by name."""
    from kfp import compiler, dsl

    @dsl.container_component
    def show(text: str, count: int):
        return dsl.ContainerSpec(image="busybox", command=["echo"], args=[text, count])

    @dsl.container_component
    def read(data: dsl.Input[dsl.Dataset]):
        return dsl.ContainerSpec(image="busybox", command=["cat"], args=[data.path])

    @dsl.pipeline(name="inner")
    def inner(word: str, times: int = 3, tags: list = ["a", "b"]):  # noqa: B006  # how KFP writes defaults
        with dsl.ParallelFor(tags, parallelism=2) as tag:
            show(text=tag, count=times)
        show(text=word, count=times)

    @dsl.pipeline(name="every-type")
    def every_type(  # a parameter of each type
        word: str,
        data_multiplier: int = 4000,
        url: str = "https://data.example:8443/v2/2025-03-01/part-0007.parquet",
        s3: str = "s3://bucket/raw/train.csv",
        learning_rate: float = 0.01,
        ratio: float = 0.8,
        debug: bool = False,
        config: dict = {"depth": 5, "nested": {"rates": [0.1, 0.2], "on": True}, "plant": "north-1"},  # noqa: B006
        tags: list = ["a", "b"],  # noqa: B006
        scenario: str = "{}",
        seed: int = 7,
        algorithm: str = "forest",
        empty: int = 0,
        offset: float = -2.5,
    ):
        inner(word=word, times=data_multiplier, tags=tags)
        show(text=url, count=seed).set_caching_options(False)

    @dsl.pipeline(name="needs-data")
    def needs_data(data: dsl.Input[dsl.Dataset], n: int = 1):
        read(data=data)

    folder = tmp_path_factory.mktemp("compiled")
    paths = {}
    for pipeline in (every_type, needs_data):
        paths[pipeline.name] = folder / f"{pipeline.name}.yaml"
        compiler.Compiler().compile(pipeline, str(paths[pipeline.name]))
    return paths


def scenarios(path, tmp_path, *more, n=60):
    out = tmp_path / "scenarios.csv"
    assert main(["--from-pipeline", str(path), "--n", str(n), "--seed", "5", "-o", str(out), "--quiet", *more]) == 0
    with out.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_the_columns_are_exactly_id_name_and_the_inputs_of_the_root(compiled, tmp_path):
    rows = scenarios(compiled["every-type"], tmp_path)
    inputs = yaml.safe_load(compiled["every-type"].read_text())["root"]["inputDefinitions"]["parameters"]
    assert list(rows[0]) == ["id", "scenario_name", *inputs]


def test_the_load_reads_every_cell(compiled, tmp_path):
    scenarios(compiled["every-type"], tmp_path)
    inputs = read_as_the_load_does(compiled["every-type"]).inputs
    read = read_scenarios(tmp_path / "scenarios.csv", inputs, ParamMode())
    assert len(read) == 60
    assert all(len(scenario.values) == len(inputs) for scenario in read)
    assert main(["--check", str(tmp_path / "scenarios.csv"), "--from-pipeline", str(compiled["every-type"])]) == 0


def test_values_are_near_the_defaults_and_in_their_format(compiled, tmp_path):
    rows = scenarios(compiled["every-type"], tmp_path, n=600)
    counts = {level: sum(row["data_multiplier"] == level for row in rows) for level in ("4000", "5000", "6000")}
    assert set(counts.values()) == {200}
    assert all(row["url"].startswith("https://data.example:8443/v2/2025-") for row in rows)
    assert all(row["url"].endswith(".parquet") and len(row["url"]) == 57 for row in rows)
    assert {row["s3"] for row in rows} == {f"s3://bucket/raw/train-{k}.csv" for k in range(1, 601)}
    rates = sorted(float(row["learning_rate"]) for row in rows)
    assert 0.008 < rates[300] < 0.0125
    assert all(0.4 <= float(row["ratio"]) <= 1 for row in rows)
    assert 0.1 < sum(row["debug"] == "true" for row in rows) / 600 < 0.4
    assert {row["algorithm"] for row in rows} == {"linear", "forest", "boosting", "network"}
    assert all(float(row["offset"]) <= 0 for row in rows)
    assert len({row["seed"] for row in rows}) > 590


def test_structs_lists_and_json_text_keep_their_shape(compiled, tmp_path):
    rows = scenarios(compiled["every-type"], tmp_path)
    for row in rows:
        config = json.loads(row["config"])
        assert list(config) == ["depth", "nested", "plant"]
        assert 3 <= config["depth"] <= 7
        assert [type(rate) for rate in config["nested"]["rates"]] == [float, float]
        assert isinstance(config["nested"]["on"], bool)
        assert config["plant"].startswith("north-")
        assert json.loads(row["tags"]) == ["a", "b"]
        scenario = json.loads(row["scenario"])
        assert scenario["id"] == int(row["id"])
        assert scenario["name"] == row["scenario_name"]
    assert len({row["scenario"] for row in rows}) == 60


def test_an_artifact_as_input_is_rejected_with_a_fix(compiled, capsys):
    assert main(["--from-pipeline", str(compiled["needs-data"])]) == 2
    said = capsys.readouterr().err
    assert "needs an artifact as input: data" in said
    assert "dsl.importer" in said


def test_enums_come_from_the_literals_of_the_ir(compiled, tmp_path):
    # The IR has had `literals` since KFP 2.16; the compiler of the SDK does not write them yet. The protobuf
    # message of the installed SDK says that this is how they are spelled.
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    spec = yaml.safe_load(compiled["every-type"].read_text())
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    parameters["word"]["literals"] = ["fast", "slow"]
    parameters["seed"]["literals"] = [7.0, 9.0]
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    path = tmp_path / "literals.yaml"
    path.write_text(yaml.safe_dump(spec))
    rows = scenarios(path, tmp_path)
    assert {row["word"] for row in rows} == {"fast", "slow"}
    assert {row["seed"] for row in rows} == {"7", "9"}
    (tmp_path / "bad.csv").write_text("id,scenario_name,word,seed\n1,a,fast,7\n2,b,quick,8\n")
    assert main(["--check", str(tmp_path / "bad.csv"), "--from-pipeline", str(path)]) == 2


def test_the_platform_spec_document_adds_no_inputs(compiled, tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(compiled["every-type"].read_text() + "\n---\nplatforms:\n  kubernetes: {}\n")
    assert read_pipeline(path).inputs == read_pipeline(compiled["every-type"]).inputs


def test_a_parameter_that_places_pods_keeps_its_default():
    found = read_pipeline(POOLS)
    assert [each.name for each in found.inputs] == ["n"]
    assert "'pool', which places pods, is left out: each run takes its default" in found.notes


def test_a_spec_overrides_what_is_inferred_but_not_the_columns(compiled, tmp_path, capsys):
    spec = tmp_path / "more.yaml"
    spec.write_text("fields:\n  word: {template: 'w-{k}'}\n  k: {integer: [5, 5], hidden: true}\n")
    rows = scenarios(compiled["every-type"], tmp_path, "--spec", str(spec))
    assert {row["word"] for row in rows} == {"w-5"}
    assert "k" not in rows[0]
    spec.write_text("fields:\n  wrod: uuid\n")
    assert (
        main(["--from-pipeline", str(compiled["every-type"]), "--spec", str(spec), "-o", str(tmp_path / "x.csv")]) == 2
    )
    assert "more.yaml:2: fields.wrod:" in capsys.readouterr().err


def test_the_written_spec_generates_the_same_scenarios(compiled, tmp_path):
    inferred = scenarios(compiled["every-type"], tmp_path)
    spec = tmp_path / "inferred.yaml"
    assert main(["--from-pipeline", str(compiled["every-type"]), "--write-spec", str(spec)]) == 0
    out = tmp_path / "again.csv"
    assert main(["--spec", str(spec), "--n", "60", "--seed", "5", "-o", str(out), "--quiet"]) == 0
    assert out.read_bytes() == (tmp_path / "scenarios.csv").read_bytes()
    assert inferred


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.py", "def x(): pass", "Python source, not a compiled pipeline"),
        ("p.yaml", "a: 1\n", "not a compiled pipeline"),
        ("p.yaml", "- 1\n", "not a compiled pipeline"),
        ("p.yaml", "a: [\n", "p.yaml:2: not valid YAML"),
        ("p.yaml", "\x00\x01", "not valid YAML"),
        ("p.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n", "KFP v1"),
        ("p.yaml", "pipelineInfo: {name: x}\nroot: {inputDefinitions: {parameters: {a: {parameterType: MAP}}}}\n", "unknown type MAP"),
    ],
)  # fmt: skip
def test_other_files_are_not_compiled_pipelines(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=said):
        read_pipeline(tmp_path / name)


def test_without_a_default_the_name_decides(tmp_path):
    names = ["region", "start_date", "dataset_url", "email", "run_id", "team", "config", "plant", "anything"]
    parameters = {name: {"parameterType": "STRING"} for name in names}
    path = tmp_path / "names.yaml"
    path.write_text(
        yaml.safe_dump({"pipelineInfo": {"name": "n"}, "root": {"inputDefinitions": {"parameters": parameters}}})
    )
    draft = draft_of(read_pipeline(path))
    columns = Sampler(read_spec(Document(draft.document(), "n")), 1, 30).block(0, 30)
    first = {name: str(column.text().to_list()[0]) for name, column in columns.items()}
    assert first["start_date"].startswith("2025-")
    assert first["dataset_url"].startswith("s3://training/")
    assert "@" in first["email"]
    assert len(first["run_id"]) == 36
    assert first["team"] in {"alpha", "beta", "gamma", "delta"}
    assert json.loads(first["config"])["plant"]
    assert first["anything"] == "anything-1"


def test_a_redacted_default_counts_as_none(tmp_path):
    types = {"rows": "NUMBER_INTEGER", "share": "NUMBER_DOUBLE", "fast": "BOOLEAN", "columns": "LIST"}
    parameters = {name: {"parameterType": kind, "defaultValue": HIDDEN} for name, kind in types.items()}
    path = tmp_path / "redacted.yaml"
    path.write_text(
        yaml.safe_dump({"pipelineInfo": {"name": "n"}, "root": {"inputDefinitions": {"parameters": parameters}}})
    )
    draft = draft_of(read_pipeline(path))
    columns = Sampler(read_spec(Document(draft.document(), "n")), 1, 5).block(0, 5)
    shown = [text for column in columns.values() for text in column.text().to_list()]
    assert not any(HIDDEN in str(text) for text in shown)


def test_the_example_pipeline_can_be_loaded(tmp_path):
    import subprocess
    import sys

    source = Path(__file__).parents[2] / "examples" / "training.py"
    path = tmp_path / "training.yaml"
    code = f"import runpy; from kfp import compiler; m = runpy.run_path({str(source)!r}, run_name='m'); compiler.Compiler().compile(m['training'], {str(path)!r})"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    rows = scenarios(path, tmp_path, n=200)
    assert list(rows[0]) == ["id", "scenario_name", "data_multiplier", "scenario", "url"]
    assert len({row["scenario"] for row in rows}) > 100

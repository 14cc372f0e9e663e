import csv

import pytest

from generators.cli import main
from harness.model.argo.manifest import spec_of
from harness.targets import argo
from harness.targets.argo.manifest import inputs_of, read_manifests
from harness.targets.scenarios import ParamMode, read_scenarios

TEMPLATE = """
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: nightly}
spec:
  entrypoint: main
  arguments:
    parameters:
      - {name: rows, value: 4000}
      - {name: rate, value: "0.5"}
      - {name: fast, default: "true"}
      - {name: code, value: "007"}
      - {name: size, value: small, enum: [small, large]}
      - {name: owner, valueFrom: {configMapKeyRef: {name: c, key: k}}}
  templates: [{name: main, container: {image: a}}]
"""


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


def generated(template, tmp_path, *more, n=60):
    out = tmp_path / "s.csv"
    line = ["--from-workflow-template", str(template), "--n", str(n), "-o", str(out), "--quiet", *more]
    assert main(line) == 0
    with out.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_columns_are_the_parameters_but_those_that_the_cluster_fills_in(template, tmp_path):
    assert list(generated(template, tmp_path)[0]) == ["id", "scenario_name", "rows", "rate", "fast", "code", "size"]


def test_values_are_near_the_defaults_and_within_the_choices(template, tmp_path):
    rows = generated(template, tmp_path, n=300)
    assert all(2000 <= int(row["rows"]) <= 8000 for row in rows)
    assert all(0 <= float(row["rate"]) <= 1 for row in rows)
    assert {row["fast"] for row in rows} == {"true", "false"}
    assert {row["size"] for row in rows} == {"small", "large"}
    assert len({row["rows"] for row in rows}) > 1


def test_the_load_reads_every_cell(template, tmp_path):
    rows = generated(template, tmp_path)
    inputs = inputs_of(spec_of(read_manifests(template)[0]))
    assert len(read_scenarios(tmp_path / "s.csv", inputs, ParamMode())) == len(rows)
    assert main(["--check", str(tmp_path / "s.csv"), "--from-workflow-template", str(template)]) == 0


def test_the_example_of_the_target_can_be_generated_from(tmp_path):
    assert list(generated(argo.EXAMPLE, tmp_path, n=5)[0])[2:] == ["scenario", "rows", "model"]


def test_a_workflow_that_only_refers_to_a_template_is_refused(template, tmp_path, capsys):
    template.write_text(TEMPLATE.replace("entrypoint: main", "workflowTemplateRef: {name: hourly}"))
    assert main(["--from-workflow-template", str(template), "-o", str(tmp_path / "s.csv")]) == 2
    assert "refers to the template hourly" in capsys.readouterr().err


def test_the_parameters_of_a_template_beside_the_workflow_that_refers_to_it_are_its_own(tmp_path):
    refers = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: n-}\nspec: {workflowTemplateRef: {name: nightly}}\n"
    (tmp_path / "both.yaml").write_text(f"{refers}---{TEMPLATE}")
    assert {"rows", "size"} <= generated(tmp_path / "both.yaml", tmp_path)[0].keys()

"""The templates for CI keep to the schemas of their platforms, and their shell commands are well-formed."""

import json
import re
import subprocess
from importlib import resources

import pytest
from jsonschema.validators import validator_for

from harness.cli.verbs import parse
from tests.support.ci_templates import GITHUB, GITLAB

SCRIPTS = {
    "github": "\n".join(step["run"] for step in GITHUB["jobs"]["load"]["steps"] if "run" in step),
    "gitlab": "\n".join(GITLAB["load-test"]["script"]),
}


@pytest.mark.parametrize(
    ("name", "document"),
    [("github-workflows", GITHUB), ("gitlab-ci", GITLAB)],
)
def test_a_template_keeps_to_its_schema(name, document):
    vendored = resources.files("check_jsonschema.builtin_schemas.vendor") / f"{name}.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    assert [error.message for error in validator_for(schema)(schema).iter_errors(document)] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_its_commands_are_well_formed_and_known(name):
    assert subprocess.run(["sh", "-n"], input=SCRIPTS[name], text=True, check=False).returncode == 0
    (index,) = re.findall(r"pipeswarm (report [^;\n]*--changes)", SCRIPTS[name])
    assert parse(index.split())[1].changes
    assert "pipeswarm load kfp --headless" in SCRIPTS[name]

"""docs/scenarios.md: every command is run, every shown line must come, every shown file is the shipped one."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from generators.cli import main
from generators.formulas.operations import FUNCTIONS
from generators.kinds import kinds
from generators.schema import SPEC, WORKLOAD

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")


def sessions():
    """(command, lines shown after it), in the order of the page."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            found.append((command, shown))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what a reader has: the examples, a compiled pipeline, a spec and a CSV with a mistake."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    source = ROOT / "examples" / "training.py"
    code = f"import runpy; from kfp import compiler; m = runpy.run_path({str(source)!r}, run_name='m'); compiler.Compiler().compile(m['training'], 'training.yaml')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
    (tmp_path / "wrong.scenario.yaml").write_text("fields:\n  rate:\n    {kind: lognormal, median: 1, sgima: 2}\n")
    (tmp_path / "edited.csv").write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,many\n")
    return tmp_path


def test_every_command_of_the_page_works_and_says_what_is_shown(folder, capfd):
    assert len(sessions()) > 15
    for command, shown in sessions():
        program, *arguments = shlex.split(command)
        assert program == "generate-scenarios"
        code = main(arguments)
        out, said = capfd.readouterr()
        bad = any(line.startswith(("error:", "row ")) for line in shown)
        assert code == (2 if bad else 0), f"{command}\n{said}"
        for line in shown:
            assert line in (out + said).splitlines(), f"{command}\n{out}{said}"
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()


def test_the_files_shown_are_those_shipped():
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
        name = block.splitlines()[0].removeprefix("# ")
        assert (ROOT / name).read_text(encoding="utf-8") == block


def test_the_page_has_every_kind_and_every_function():
    assert set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE)) >= kinds().keys()
    listed = re.search(r"`(abs [^`]*)`", PAGE).group(1)
    assert listed.split() == sorted(FUNCTIONS)


@pytest.mark.parametrize(
    ("path", "schema"),
    [(path, SPEC if "scenario" in path.name else WORKLOAD) for path in sorted((ROOT / "examples").glob("*.*.yaml"))],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_examples_fit_their_schemas(path, schema):
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert not list(Draft202012Validator(schema.content()).iter_errors(plain))


def test_the_page_contains_nothing_of_this_machine():
    assert os.path.expanduser("~") not in PAGE  # noqa: PTH111  # the text, not a path

import tomllib
from argparse import Namespace
from subprocess import CompletedProcess

import pytest

from harness.cli import main
from harness.plan.options import settings
from harness.plan.validate import check
from harness.targets.discovery import find


@pytest.mark.parametrize("target", ["kfp", "hetida"])
def test_the_written_files_make_a_valid_load_test(tmp_path, monkeypatch, capsys, target):
    assert main(["init", str(tmp_path / "mine"), "--target", target]) == 0
    assert f"pipeswarm load {target} -f locustfile.py" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "mine")
    given = tomllib.loads((tmp_path / "mine/pipeswarm.toml").read_text())["tool"]["locust"]
    texts = {name: "; ".join(value) if isinstance(value, list) else str(value) for name, value in given.items()}
    checked = check(settings(Namespace(**texts), "", find(target)), target, find(target))
    assert len(checked.scenarios) == 1000
    assert checked.settings.arrivals() == 30
    assert len(checked.settings.slos) == 2
    locustfile = (tmp_path / "mine/locustfile.py").read_text()
    compile(locustfile, "locustfile.py", "exec")
    assert f'platform = "{target}"' in locustfile


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "pipeswarm.toml").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert "pipeswarm.toml exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pipeswarm.toml"]
    assert (tmp_path / "pipeswarm.toml").read_text() == "mine"


def test_scenarios_that_cannot_be_written_are_told_with_what_to_do(tmp_path, capsys, monkeypatch):
    full = CompletedProcess([], 2, "", "error: the output can't be written: No space left\n  → make room\n")
    monkeypatch.setattr("harness.plan.subprocesses.run", lambda _: full)
    assert main(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: scenarios can't be written: the output can't be written: No space left\n  → make room\n"
    )

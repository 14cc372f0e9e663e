import subprocess
import sys

import pytest

from harness.cli import main
from harness.cli.loading.load import command


def test_locust_runs_with_the_packaged_locustfile_and_says_what_is_wrong(tmp_path):
    start = [sys.executable, "-m", "harness.cli", "load", "kfp", "--headless", "--schedule", "constant", "--rate", "x"]
    ended = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "error: --rate: 'x' is not a rate" in ended.stderr


def test_the_configuration_of_the_folder_is_used_unless_another_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "--config" not in command("kfp", ["--headless"])
    (tmp_path / "pipeswarm.toml").write_text("")
    assert command("hetida", ["--headless"])[-3:] == ["--config", "pipeswarm.toml", "--headless"]
    assert command("kfp", ["--config=mine.conf"])[-1] == "--config=mine.conf"
    assert "pipeswarm.toml" not in command("kfp", ["--config", "mine.conf"])


@pytest.mark.parametrize("given", [["-f", "locustfile.py"], ["--locustfile=locustfile.py"]])
def test_a_locustfile_of_ones_own_takes_the_place_of_the_packaged_one(given):
    """Where Locust is no command of its own, as with pipx or `uv tool`, this starts it."""
    line = command("kfp", [*given, "--headless"])
    assert line[1:] == ["-m", "locust", *given, "--headless"]


def test_help_lists_the_options_of_the_target(capsys):
    assert main(["load", "hetida", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--transformation" in shown
    assert "locust --help" in shown


def test_an_unknown_target_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["load", "kubeflow"])
    assert ended.value.code == 2
    assert "invalid choice: 'kubeflow'" in capsys.readouterr().err

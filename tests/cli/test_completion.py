"""What a shell is offered, as bash asks for it."""

import os
import subprocess

import pytest

from harness.cli import main
from tests.support.e2e import BIN

ASK = """
eval "$(pipeswarm completion bash)"
for COMP_LINE in "$@"; do
    COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMPREPLY=()
    _python_argcomplete pipeswarm
    echo "${COMPREPLY[*]}"
done
"""
OFFERED = {
    "pipeswarm re": {"report", "recover", "resources"},
    "pipeswarm report --o": {"--open"},
    "pipeswarm simulate run --prof": {"--profile"},
    "pipeswarm load kfp --schedule b": {"burst"},
}


def test_verbs_options_and_choices_are_completed_in_bash(tmp_path):
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    asked = subprocess.run(
        ["bash", "-c", ASK, "bash", *OFFERED], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    answers = dict(zip(OFFERED, map(set, map(str.split, asked.stdout.splitlines())), strict=True))
    for line, offered in OFFERED.items():
        assert offered <= answers[line], line
        last = line.rpartition(" ")[2]
        assert all(each.startswith(last) for each in answers[line])
    assert "--runs" not in answers["pipeswarm report --o"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_a_shell_names_the_command(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "pipeswarm" in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["completion", "sh"])
    assert ended.value.code == 2
    assert "fish" in capsys.readouterr().err

"""What a shell is offered, as bash asks for it."""

import os
import shutil
import subprocess

import pytest

from harness.cli import main
from tests.support.e2e import BIN

ASK = """
eval "$(pipeswarm completion bash)"
for COMP_LINE in "$@"; do
    COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMPREPLY=()
    _python_argcomplete "${COMP_LINE%% *}"
    echo "${COMPREPLY[*]}"
done
"""
OFFERED = {
    "pipeswarm re": {"report", "recover", "resources"},
    "pipeswarm report --o": {"--open"},
    "pipeswarm simulate run --prof": {"--profile"},
    "pipeswarm load kfp --schedule b": {"burst"},
    "generate-scenarios --fo": {"--format"},
    "generate-scenarios --format j": {"jsonl"},
    "generate-scenarios workload --o": {"--output"},
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


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_verbs_options_and_choices_are_completed_in_fish(tmp_path):
    ask = "pipeswarm completion fish | source; for line in $argv; echo (complete -C $line | cut -f 1); end"
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    asked = subprocess.run(
        ["fish", "--no-config", "-c", ask, *OFFERED], env=environment, capture_output=True, text=True, check=True
    )
    for offered, answer in zip(OFFERED.values(), asked.stdout.splitlines(), strict=True):
        assert offered <= set(answer.split())


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_verbs_options_and_choices_are_completed_in_zsh(tmp_path):
    ask = """
    compdef() { registered=("${@[2,-1]}") }
    eval "$(pipeswarm completion zsh)"
    _describe() { print -r -- "${completions[@]%%:*}" }
    for BUFFER in "$@"; do
        words=(${(z)BUFFER}) CURSOR=${#BUFFER}
        (( ${registered[(Ie)$words[1]]} )) && _python_argcomplete
    done
    """
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    asked = subprocess.run(
        ["zsh", "-f", "-c", ask, "zsh", *OFFERED], env=environment, capture_output=True, text=True, check=True
    )
    for offered, answer in zip(OFFERED.values(), asked.stdout.splitlines(), strict=True):
        assert offered <= set(answer.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_a_shell_names_the_command(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "pipeswarm" in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["completion", "sh"])
    assert ended.value.code == 2
    assert "fish" in capsys.readouterr().err

"""Whatever a run folder's texts hold, no output of it acts: on a shell, a terminal, a CI log, a page or an XML parser."""

import os
import re
import subprocess
from xml.etree import ElementTree as ET

import pytest

from harness.cli import main
from harness.cli.loading import watch
from harness.store.folder import JUNIT, REPORT, REPORT_HTML, REPORT_MARKDOWN
from reports.figures.figure import figure
from reports.markdown import cell, code
from tests.support.poisoned import EVIL, NAMED, report_of

__all__ = ["report_of"]

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.parametrize("name", NAMED)
def test_no_name_in_a_command_runs_in_a_shell(report_of, name, tmp_path):
    _, result = report_of(name)
    commands = [command for finding in result.diagnosis.findings for command in finding.commands]
    shell = [
        command for command in commands if not re.match(r"\w+\.set_", command)
    ]  # Python, for the pipeline's author
    assert any("touch acted" in command for command in shell), "no name in it: the test would prove nothing"
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("kubectl", "timedatectl", "mysql"):
        (tools / tool).write_text("#!/bin/sh\n")
        (tools / tool).chmod(0o755)
    for command in shell:
        assert not CONTROLS.search(command)
        assert "\n" not in command
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env={"PATH": f"{tools}:{os.environ['PATH']}"},
            capture_output=True,
            check=False,
        )
        assert b"not found" not in done.stderr, command
        assert not (tmp_path / "acted").exists(), command


def test_every_report_is_free_of_control_characters(report_of):
    folder, _ = report_of("store-full")
    for name in (REPORT_HTML, REPORT, REPORT_MARKDOWN, JUNIT):
        text = folder.read_bytes(name).decode()
        if name == REPORT_HTML:
            text = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # our own code
        found = CONTROLS.search(text.replace("\x9b", "") if name == REPORT else text)  # it is a value of JSON there
        assert not found, (name, text[found.start() - 60 : found.end() + 20])
        if name == REPORT_MARKDOWN:
            text = re.sub(r"(?ms)^```sh$.*?^```$", "", text)  # code, where markup is text
        assert "<img" not in text or name == REPORT


def test_the_page_of_a_job_keeps_its_structure(report_of):
    folder, _ = report_of("store-full")
    text = folder.read_bytes(REPORT_MARKDOWN).decode()
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert fences == ["```sh", "```"] * (len(fences) // 2)
    assert not re.search(r"(?m)^\s*::", text)


def test_junit_is_xml(report_of):
    folder, _ = report_of("store-full")
    suite = ET.fromstring(folder.read_bytes(JUNIT)).find("testsuite")
    assert "\\u001b" in suite.find("testcase").get("classname")


@pytest.mark.parametrize(
    "arguments", [("report",), ("report", "--json"), ("report", "--findings"), ("watch", "--once")]
)
def test_a_terminal_and_a_ci_log_get_only_text(report_of, arguments, capsys):
    folder, _ = report_of("store-full")
    folder.write_live("observer", {"stage": EVIL, "runs": {"FAILED" + EVIL: 3}, "last_error": EVIL})
    verb, *options = arguments
    main([verb, str(folder.path), *options])
    said = capsys.readouterr()
    assert EVIL[-20:-1].split("<", maxsplit=1)[0] in said.out or "--findings" in options
    for text in (said.out, said.err):
        assert not CONTROLS.search(text), text
        assert not re.search(r"(?m)^\s*::|##\[", text), text


def test_the_live_view_shows_markup_as_text(report_of):
    from rich.console import Console

    folder, _ = report_of("store-full")
    folder.write_live("observer", {"stage": "[/b] [red]x" + EVIL})
    console = Console(width=200, record=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    console.print(watch._panel(folder))
    text = console.export_text()
    assert "[/b] [red]x" in text
    assert not CONTROLS.search(text)


def test_an_error_names_a_hostile_file_harmlessly(tmp_path, capsys):
    assert main(["report", str(tmp_path / ("x" + EVIL.replace("/", "")))]) == 2
    said = capsys.readouterr().err
    assert "\\u001b" in said
    assert not CONTROLS.search(said)
    assert not re.search(r"(?m)^\s*::", said)


def test_names_in_figures_have_no_control_characters():
    drawn = figure(
        "k",
        "t",
        "c",
        [{"name": "<a href='x'>\x1b", "marker": {"color": "--bad"}, "hovertemplate": "%{x}<extra>n</extra>"}],
        {},
    )
    (trace,) = drawn.spec["data"]
    assert trace["name"] == "<a href='x'>\\u001b"
    assert trace["hovertemplate"] == "%{x}<extra>n</extra>"
    assert drawn.legend == [("<a href='x'>\\u001b", "--bad")]


@pytest.mark.parametrize("text", ["a`b|c", "a\n```\nb", "\x1b"])
def test_markdown_cells_and_code_hold_their_text(text):
    for made in (cell(text), code(text)):
        assert "\n" not in made
        assert not CONTROLS.search(made)
        assert not re.search(r"(?<!\\)[`|]", made)

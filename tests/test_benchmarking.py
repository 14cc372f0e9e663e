"""What benchmarks print and keep: a bound that was missed says so, and none is excused by a busy machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.benchmarking import Table, commit, described, kept, written

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command", [("analysis", "--runs", "300", "--alike", "300"), ("observer", "--pods", "100", "--nodes", "5")]
)
def test_a_benchmark_runs_to_its_verdicts(command):
    """However small, and whatever they are: nothing else would notice that it can't run."""
    name, *options = command
    script = ROOT / f"benchmarks/{name}.py"
    command = [sys.executable, script, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode in {0, 1}
    assert done.stderr == ""
    assert re.search(r"  (met|MISSED)$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("row", "verdict", "failed"),
    [
        ({"bound": "< 5", "kept": True}, "met", False),
        ({"bound": "< 5", "kept": True, "busy": True}, "met", False),
        ({"bound": "< 5", "kept": False}, "MISSED", True),
        ({"bound": "< 5", "kept": False, "busy": True}, "not measured: the machine is busy", True),
        ({}, "", False),
    ],
)
def test_a_row_says_whether_its_bound_was_kept(row, verdict, failed, capsys):
    table = Table()
    table.row("lag (ms)", "7", **row)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split("  ")[-1].strip() == (verdict or "7")
    assert table.failed is failed


def test_one_missed_row_is_enough(capsys):
    table = Table()
    table.row("a", "1", "< 0", kept=False)
    table.row("b", "1", "< 2", kept=True, beside="compiled: 3")
    assert table.failed
    assert capsys.readouterr().out.endswith("met   (compiled: 3)\n")


def test_a_page_keeps_its_words_and_gets_new_figures(tmp_path):
    page = tmp_path / "drive.md"
    page.write_text(kept(page, "drive") + written("`python benchmarks/drive.py`, 3 min: …", "what 1\n"))
    assert page.read_text() == "# Drive\n\n`python benchmarks/drive.py`, 3 min: …\n\n```\nwhat 1\n```\n"
    page.write_text(page.read_text().replace("# Drive\n", "# The load\n\nWhat the rows mean.\n"))
    page.write_text(kept(page, "drive") + written("`python benchmarks/drive.py`, 4 min: …", "what 2\n\n"))
    assert page.read_text() == (
        "# The load\n\nWhat the rows mean.\n\n`python benchmarks/drive.py`, 4 min: …\n\n```\nwhat 2\n```\n"
    )


def git(tree, *words):
    subprocess.run(["git", "-C", tree, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)


def test_the_machine_is_described_with_the_commit_and_whether_files_differ_from_it(tmp_path):
    assert commit(tmp_path) == "unknown"
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "first")
    found = commit(tmp_path)
    assert found.isalnum()
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path) == f"{found} and changes"
    said = described(tmp_path)
    assert f"commit {found} and changes, " in said
    assert " cores of " in said
    assert "load average before it" in said


def test_the_figures_of_the_readme_are_those_of_the_results():
    """Short, and never older than the pages that it links."""
    table = (ROOT / "README.md").read_text().partition("## Figures")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert 4 <= len(rows) <= 8, "at most eight lines, the heading among them"
    for what, figures, page in rows[1:]:
        results = (ROOT / re.search(r"\((.*\.md)\)", page)[1]).read_text()
        measured = re.findall(r"\d[\d,.]*\d|\d", figures)
        assert measured, what
        assert all(figure in results for figure in measured), what

"""What benchmarks print and keep: a bound that was missed says so, and none is excused by a busy machine."""

import subprocess

import pytest

from tests.support.benchmarking import Table, commit, described, kept, written


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

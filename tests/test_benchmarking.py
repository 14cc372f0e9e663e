"""Benchmarks run to their verdicts, and the figures of the README are theirs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("analysis", "--runs", "300", "--alike", "300"), marks=pytest.mark.soak),
        ("observer", "--pods", "100", "--nodes", "5"),
    ],
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


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--no-such-option", 2)])
def test_what_measures_nothing_leaves_the_page_of_results(option, code):
    page = ROOT / "benchmarks/results/detectors.md"
    before = page.read_bytes()
    done = subprocess.run(
        [sys.executable, "benchmarks/run.py", "detectors", option],
        check=False, capture_output=True, cwd=ROOT, timeout=100,
    )  # fmt: skip
    assert (done.returncode, page.read_bytes()) == (code, before)


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

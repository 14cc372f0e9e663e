"""A built-in detector is one module, its story, and whether it is injected: in a copy of this checkout, one is added in earnest."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.e2e import ROOT

NAME = "pending-workflows"
DETECTOR = '''"""Workflows wait for the controller to look at them for the first time, and become more."""

from harness.analysis.timeline import Timeline, floats
from harness.detectors.capability import Capability
from harness.detectors.detector import quarters, slowed
from harness.model.findings import Evidence, Finding

NAME = "pending-workflows"
NEEDS = (Capability.RUNS, Capability.CONTROLLER)
TARGETS = ("argo", "kfp")

_MANY = 100.0


def detect(timeline: Timeline) -> list[Finding]:
    """The controller's count of pending workflows in the first and in the last quarter of its samples."""
    samples = timeline.metric("argo_workflows")
    counts = floats(samples[samples["labels"].str.contains("Pending")], "value")
    first, last = (float(each.mean()) for each in quarters(counts)) if counts.size else (0.0, 0.0)
    if last < _MANY + first:
        return []
    seen = Evidence(f"{last:.0f} at the end, {first:.0f} at the beginning", last, "workflows", "samples")
    return [Finding(NAME, "Workflows wait for the controller", 0.8, (seen,), "See its log.", (), slowed(0.3))]
'''
ROW = """    "pending-workflows": lambda: controller_counts(Pending=lambda second: 40 * second),
"""
STORY = '''

def controller_counts(**of_phase) -> Story:
    """What the controller counts, by phase."""
    story = steady()
    for second in range(0, 60, 15):
        for phase, count in of_phase.items():
            story.sample(float(second), "argo_workflows", float(count(second)), phase=phase)
    return story


INJECTED: dict'''
# Where detectors are enumerated, but for what `make reference` writes.
TESTS = (
    "tests/contracts/test_detectors.py", "tests/detectors/test_commands.py", "tests/detectors/test_discovery.py",
    "tests/detectors/test_statuses.py", "tests/store/test_reasons.py",
)  # fmt: skip
_NOT_PART = {".venv", ".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "runs"}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one module and its rows more."""
    place = tmp_path_factory.mktemp("checkout") / "pipeswarm"
    shutil.copytree(ROOT, place, ignore=lambda at, _: _NOT_PART if Path(at) == ROOT else {"__pycache__"})
    (place / "harness/detectors/controller/pending_workflows.py").write_text(DETECTOR)
    stories = place / "tests/support/injected/every_fault.py"
    head, begin, rows = stories.read_text().partition("\n\nINJECTED: dict")
    assert begin
    stories.write_text(head + STORY + rows.replace("] = {\n", "] = {\n" + ROW))
    faults = place / "tests/support/injected/faults.py"
    head, begin, rows = faults.read_text().partition("NOT_INJECTED: Mapping[str, str] = {\n")
    assert begin
    faults.write_text(f'{head}{begin}    "{NAME}": "this is a test\'s own detector",\n{rows}')
    return place


def python(place: Path, *arguments: str) -> str:
    """Run Python on a copy of the project; what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env={**os.environ, "PYTHONPATH": str(place)}, text=True, check=False,
        capture_output=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_tests_that_enumerate_detectors_hold(extended: Path) -> None:
    assert " passed" in python(
        extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"{NAME} or not [", *TESTS
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_make_reference_writes_all_pages_that_name_it_and_all_tests_of_detectors_and_reports_hold(
    extended: Path,
) -> None:
    python(extended, "-m", "tests.support.reference")
    changed = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if path.read_bytes() != (extended / path.relative_to(ROOT)).read_bytes()
    }
    assert changed == {"docs/observation.md", "docs/reference/detectors.md"}
    rooms = ("tests/contracts/test_detectors.py", "tests/detectors", "tests/reports", "tests/store", "tests/reasons")
    python(extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *rooms, "tests/test_reference.py")

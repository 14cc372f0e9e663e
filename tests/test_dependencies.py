"""Users get every package that the code imports: CI also has the developers' packages, and would not notice a gap."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

from tests.support import licences

ROOT = Path(__file__).parent.parent
ROOMS = ("pipeswarm", "harness", "generators", "reports", "locustfiles", "examples")
OWN = {*ROOMS, "pipeswarm_jobs", "sharing"}  # modules of ours, and of examples


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - OWN


def declared() -> set[str]:
    """The names of all packages that `pip install pipeswarm` installs, with its extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen = (lines for extra, lines in project["optional-dependencies"].items() if extra not in licences.DEVELOPERS)
    return {_plain(re.split(r"[^\w.-]", line)[0]) for line in chain(project["dependencies"], *chosen)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("room", ROOMS)
def test_every_import_is_a_declared_dependency(room):
    known, users = packages_distributions(), declared()
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / room).rglob("*.py")
        for name in imported(path)
        if users.isdisjoint(map(_plain, known.get(name, ())))
    }
    assert not missing


def test_the_page_of_licences_is_that_of_the_installed_packages():
    assert licences.PAGE.read_text(encoding="utf-8") == licences.page(), "run: make licences"
    assert "UNKNOWN" not in licences.page()

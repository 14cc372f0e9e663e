"""The picture of the layers in docs/architecture.md is the import contract that `make check` enforces.

Tests and benchmarks have a contract of their own: what they share lies in tests/support.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def contract_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"][0]["layers"]


def picture():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return re.search(r"<!-- layers:.*?```text\n(.*?)```", page, re.DOTALL).group(1)


def test_the_picture_shows_the_layers_of_the_import_contract():
    shown = [re.sub(r"\s+", " ", line).strip() for line in picture().splitlines() if not line.startswith("#")]
    assert shown == [layer.replace("harness.", "") for layer in contract_layers()]


def test_every_room_of_the_contract_is_explained():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = [room.strip() for layer in contract_layers() for room in layer.split("|")]
    for room in rooms:
        assert f"| `{room.replace('.', '/')}` |" in page, room


def imported(path, source):
    """(line, full name) of everything that a module imports, in functions too; names from relative imports resolved."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def shared_beside_support(path, source):
    """Imports from tests and benchmarks, except from tests/support and those of one benchmark from another."""
    of_benchmark = path.is_relative_to(ROOT / "benchmarks")
    for line, name in imported(path, source):
        room, *rest = name.split(".")
        if (room == "tests" and rest[:1] != ["support"]) or (room == "benchmarks" and not of_benchmark):
            yield f"{path.relative_to(ROOT)}:{line} imports {name}"


def test_tests_and_benchmarks_share_helpers_only_through_support():
    modules = [path for folder in ("tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(modules) > 100
    assert not [found for path in modules for found in shared_beside_support(path, path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("path", "source", "allowed"),
    [
        ("tests/cli/test_x.py", "from tests.support.timelines import Story", True),
        ("tests/cli/test_x.py", "from tests.support import timelines", True),
        ("tests/e2e/conftest.py", "from tests.support.e2e import locust", True),
        ("benchmarks/x.py", "from tests.support.timelines import Story", True),
        ("benchmarks/x.py", "from benchmarks.loopback import server", True),
        ("tests/cli/test_x.py", "from tests.cli.test_watch import LOAD", False),
        ("tests/cli/test_x.py", "from tests.e2e.conftest import locust", False),
        ("tests/cli/test_x.py", "from tests import test_docs", False),
        ("tests/cli/test_x.py", "import tests.cli.test_watch", False),
        ("tests/cli/test_x.py", "from .test_watch import LOAD", False),
        ("tests/cli/test_x.py", "from ..support.timelines import Story", True),
        ("tests/cli/test_x.py", "def f():\n    from benchmarks.loopback import server", False),
        ("tests/support/x.py", "from benchmarks.loopback import server", False),
        ("benchmarks/x.py", "from tests.cli.test_watch import LOAD", False),
    ],
)
def test_what_may_be_shared(path, source, allowed):
    assert (not list(shared_beside_support(ROOT / path, source))) is allowed

"""The picture of the layers in docs/architecture.md is the import contract that `make check` enforces.

Tests and benchmarks have a contract of their own: what they share lies in tests/support.
"""

import ast
import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.lines import PRODUCT

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


def imported(path, source, nodes=ast.walk):
    """(line, full name) of everything that a module imports, in functions too; names from relative imports resolved."""
    package = path.relative_to(ROOT).parent.parts
    for node in nodes(ast.parse(source)):
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


def executed(node):
    """What runs when a module is imported: nothing in functions, nor what only a type checker reads."""
    below = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        below = node.orelse
    for each in below:
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield each
            yield from executed(each)


def packages(module):
    """The packages that a module lies in, as it is imported after them."""
    parts = module.split(".")
    return {".".join(parts[:k]) for k in range(1, len(parts))}


def needs(sources):
    """By module what is imported before it ends: modules, and the packages that these lie in unless it does, too."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in sources
    }
    found = {}
    for module, path in modules.items():
        names = {name for _, name in imported(path, sources[path], executed)}
        given = {name if name in modules else name.rpartition(".")[0] for name in names} & modules.keys()
        around = set().union(*map(packages, given)) - packages(module)
        found[module] = (given | around) - {module}
    return found


def test_every_module_can_be_imported_alone():
    """Without circles every order of imports is that of the modules' needs, so that any of them may come first."""
    paths = [path for top in PRODUCT for path in sorted((ROOT / top).rglob("*.py"))]
    assert len(paths) > 500
    TopologicalSorter(needs({path: path.read_text(encoding="utf-8") for path in paths})).prepare()


A, B, INIT = ROOT / "harness/p/a.py", ROOT / "harness/q/b.py", ROOT / "harness/p/__init__.py"


@pytest.mark.parametrize(
    ("sources", "circular"),
    [
        ({A: "from harness.q.b import x", B: "from harness.p.a import y"}, True),
        ({A: "from harness.q import b", B: "import harness.p.a"}, True),
        ({A: "from harness.q.b import x", B: "def f():\n    from harness.p.a import y"}, False),
        ({A: "from harness.q.b import x", B: "if TYPE_CHECKING:\n    from harness.p.a import y"}, False),
        ({A: "from harness.q.b import x", B: "class C:\n    from harness.p.a import y"}, True),
        ({A: "", INIT: "from harness.p.a import x", B: "from harness.p.a import y"}, False),
        ({A: "", INIT: "from harness.q.b import x", B: "from harness.p.a import y"}, True),  # b alone begins with p
        ({A: "from harness.p import x", INIT: "from harness.p.a import y", B: ""}, True),
        ({A: "import json", INIT: "from harness.p import a", B: ""}, False),
    ],
)
def test_circles_of_imports_are_found(sources, circular):
    try:
        TopologicalSorter(needs(sources)).prepare()
    except CycleError:
        assert circular
    else:
        assert not circular

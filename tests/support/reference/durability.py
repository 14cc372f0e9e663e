"""What is promised when something breaks or attacks: the faults and attacks that tests try, by the tests' names."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.e2e import ROOT
from tests.support.reference.markdown import code, table
from tests.support.reference.markdown import page as whole

_INTRODUCTION = """What a test leaves when something breaks, and what hostile files, messages and answers can do. Each line is a test of the suite.

* **Every arrival that the load has booked is in the run folder**, whatever is killed: a row is handed to the operating system when the answer is read. A power failure
  may take the last seconds: nothing is synchronised with the disk row by row.
* **Answers that had arrived and were not read** when a load was killed are in no file. `pipeswarm report`, `pipeswarm recover` and the next test on this machine add
  the runs that the observer saw on the platform under the names of arrivals without a row, as *found on the platform*: what they have in common with other rows
  is their end; when they were sent and answered is not known. Platforms that list no runs (commands, synchronous executions) lose up to as many as were open.
* **Workers** keep each row in a spool in their TMPDIR until the master has written it. `report`, `recover` and the next test on that machine merge it, each row once;
  elsewhere the command that the worker prints does.
* **A run folder, a file, a message or an answer from elsewhere** is read within bounds, or refused in one sentence: an answer about one object up to 16 MiB, a list up
  to 256 MiB. It names no host that gets a token, no code to run, and nothing that a terminal, a shell, a CI or a browser would carry out."""
# The tests of attacks: every test of these files.
_ATTACKS = {
    "Answers and messages of the network": (
        "tests/test_network_readers.py", "tests/collectors/test_http.py", "tests/drive/workers/test_secret.py",
        "tests/simulator/test_deep_bodies.py",
    ),
    "Files and run folders": (
        "tests/test_foreign_files.py", "tests/store/test_foreign_folders.py", "tests/store/test_links.py",
        "tests/generators/test_schema_fuzz.py", "tests/cli/test_foreign_runs.py",
    ),
    "Texts": ("tests/model/text/test_inert.py", "tests/reports/test_inert.py", "tests/drive/test_console.py"),
    "The web UI": ("tests/e2e/test_web_safety.py", "tests/drive/web/test_guard.py"),
    "Secrets and rights": ("tests/model/text/test_redaction.py", "tests/e2e/test_token.py", "tests/deploy/test_rights.py"),
    "What is installed and run from elsewhere": ("tests/deploy/test_supply_chain.py",),
}  # fmt: skip


class _Test(NamedTuple):
    """A test's name as words, its file, and the argument of its mark `fault` or `attack`; "" without one."""

    said: str
    file: str
    fault: str
    attack: str


def page() -> str:
    """The page of faults and attacks."""
    tests = [each for path in sorted((ROOT / "tests").rglob("test_*.py")) for each in _tests(path)]
    lines = ["## Faults", "", *table(("tried, and what came of it", "rows lost", "test"), _faults(tests))]
    for heading, files in _ATTACKS.items():
        attacks = [each for each in tests if each.file in files or each.attack == heading]
        lines += [f"## {heading}", "", *table(("tried, and what came of it", "test"), _attacks(attacks))]
    return whole("Durability and safety", _INTRODUCTION, lines)


def _faults(tests: list[_Test]) -> Iterator[tuple[str, str, str]]:
    return ((each.said, each.fault, code(each.file)) for each in tests if each.fault)


def _attacks(tests: list[_Test]) -> Iterator[tuple[str, str]]:
    return ((each.said, code(each.file)) for each in tests)


def _tests(path: Path) -> Iterator[_Test]:
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            said = node.name.removeprefix("test_").replace("_", " ")
            yield _Test(said, file, _mark(node, "fault"), _mark(node, "attack"))


def _mark(node: ast.FunctionDef, name: str) -> str:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == f"pytest.mark.{name}":
            return str(ast.literal_eval(each.args[0]))
    return ""

"""Changes the code, one small change at a time, and sees whether a test notices: `make mutants ARGS=harness/model`.

A target is a module or a package. It is tried in its own folder under `build/mutants`, with the tests that mirror it
(`tests/model`, or `tests/model/test_abort.py`) and those that pyproject.toml or `--tests` add. What no test noticed is
printed as a diff. `--again` retries only that and what timed out, after tests were written; `--fifth` tries every fifth
mutant of each function, for a quick score. `--record` keeps the scores in `benchmarks/results/mutants.md`.
"""

import argparse
import ast
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from tests.support.benchmarking import described

TREE = Path(__file__).parents[2]
FOLDERS = TREE / "build" / "mutants"
PAGE = TREE / "benchmarks" / "results" / "mutants.md"
_NOTICED = ("killed", "timeout", "segfault")
_UNNOTICED = ("survived", "no tests", "suspicious")
_SETTLED = ("killed", "not checked")
_FIFTH = "*__mutmut_*[27]"  # by its number


def main(arguments: Sequence[str]) -> None:
    """Try the targets one after the other; by default those that pyproject.toml names."""
    settings = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    parser = argparse.ArgumentParser(prog="make mutants ARGS=…", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=settings["targets"], help="modules or packages, as harness/model")
    parser.add_argument("--tests", nargs="+", default=[], help="more tests than those that mirror the target")
    parser.add_argument("--again", action="store_true", help="retry only what survived the last time")
    parser.add_argument("--fifth", action="store_true", help="try every fifth mutant only")
    parser.add_argument("--record", action="store_true", help=f"keep the scores in {PAGE.relative_to(TREE)}")
    options = parser.parse_args(arguments)
    for target in map(Path, options.targets):
        folder = FOLDERS / ".".join(target.with_suffix("").parts)
        left = [name for name, status in results(folder) if status not in _SETTLED] if options.again else []
        if not left:
            beside = [test for place, tests in settings["tests"].items() if is_in(target, place) for test in tests]
            set_up(folder, target, [*mirrored(target), *map(Path, beside + options.tests)], settings["mutmut"])
        subprocess.run([_mutmut(), "run", *(left or [_FIFTH] * options.fifth)], cwd=folder, check=True)
        statuses = dict(results(folder))
        survivors = [Survivor.read(folder, name) for name, status in statuses.items() if status in _UNNOTICED]
        for survivor in survivors:
            print(f"# {survivor.name}: {statuses[survivor.name]}\n{survivor.diff}")
        line = row(target, statuses, sum(survivor.wording for survivor in survivors))
        print(f"{HEAD}{line}", flush=True)
        if options.record:
            record(line)


def is_in(target: Path, place: str) -> bool:
    """Whether `place` is the target or holds it."""
    return Path(place) in (target, *target.parents)


def mirrored(target: Path) -> list[Path]:
    """The tests that mirror a module or package: a file, else the nearest folder of tests."""
    inside = target.relative_to("harness")
    if target.suffix:
        file = "tests" / inside.with_name(f"test_{inside.name}")
        return [file] if (TREE / file).exists() else [file.parent]
    return ["tests" / inside]


def set_up(folder: Path, target: Path, tests: Sequence[Path], settings: dict[str, object]) -> None:
    """An empty folder with links to what the tests read, and the settings of mutmut."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in ("harness", "tests", *settings["also_copy"]):
        (folder / part).symlink_to(TREE / part)
    only = [str(target)] if target.suffix else [f"{target}/*.py"]
    chosen = settings | {
        "source_paths": ["harness"],
        "only_mutate": only,
        "pytest_add_cli_args_test_selection": list(map(str, tests)),
    }
    lines = [f"{key} = {_toml(value)}" for key, value in chosen.items()]
    pytest = (TREE / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.pytest.ini_options]\n")[2]
    pytest = "[tool.pytest.ini_options]\n" + pytest.partition("\n[tool.")[0]
    (folder / "pyproject.toml").write_text("\n".join(["[tool.mutmut]", *lines, "", pytest, ""]), encoding="utf-8")


def results(folder: Path) -> Iterator[tuple[str, str]]:
    """Every mutant's name and status."""
    if not (folder / "mutants").exists():
        return
    listed = subprocess.run(
        [_mutmut(), "results", "--all", "true"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    for line in listed.splitlines():
        name, _, status = line.strip().partition(": ")
        yield name, status


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test noticed; `wording`: only the text of a string differs."""

    name: str
    diff: str
    wording: bool

    @classmethod
    def read(cls, folder: Path, name: str) -> "Survivor":
        """From the mutated module, which holds every mutant of a function beside its original."""
        module, _, function = name.rpartition(".")
        path = folder / "mutants" / (module.replace(".", "/") + ".py")
        original = function.rpartition("__mutmut_")[0] + "__mutmut_orig"
        before, after = _source(path, original), _source(path, function).replace(function, original)
        changed = list(unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0))
        body = "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))
        wording = _without_texts(before) == _without_texts(after)
        return cls(name, body, wording)


_PARSED: dict[Path, dict[str, str]] = {}


def _source(path: Path, function: str) -> str:
    if path not in _PARSED:
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        _PARSED[path] = {
            node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return _PARSED[path][function]


def _without_texts(source: str) -> str:
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


HEAD = (
    "| code | mutants | tried | killed | timed out | survived | no test | of both wording | score | when |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def row(target: Path, statuses: dict[str, str], wording: int) -> str:
    """The score: the share of the tried mutants that a test noticed."""
    count = Counter(statuses.values())
    noticed, unnoticed = (sum(count[status] for status in kind) for kind in (_NOTICED, _UNNOTICED))
    tried = noticed + unnoticed
    share = f"{noticed / tried:.0%}" if tried else "none"
    when = ", ".join(described(TREE).split(", ")[:2])
    return (
        f"| {target} | {len(statuses)} | {tried} | {count['killed']} | {noticed - count['killed']} | "
        f"{unnoticed - count['no tests']} | {count['no tests']} | {wording} | {share} | {when} |\n"
    )


def record(line: str) -> None:
    """Put the row in the place of an earlier one of the same code, or at the end of the first table."""
    key = line.split("|")[1]
    lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    place = next(number for number, each in enumerate(lines) if each.startswith("|"))
    while place < len(lines) and lines[place].startswith("|") and lines[place].split("|")[1] != key:
        place += 1
    former = [each for each in lines[place : place + 1] if each.startswith("|")]
    lines[place : place + len(former)] = [line]
    PAGE.write_text("".join(lines), encoding="utf-8")


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else repr(value)


def _mutmut() -> Path:
    return Path(sys.executable).with_name("mutmut")


if __name__ == "__main__":
    main(sys.argv[1:])

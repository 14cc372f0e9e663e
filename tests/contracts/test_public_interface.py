"""`pipeswarm` is all that users import, it is complete, and importing it costs nothing."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pipeswarm

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"^\s*(?:from|import) (?:harness|generators|reports)\b", re.MULTILINE)


def python(program: str, *path: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": ":".join(map(str, (*path, ROOT))), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment, cwd=cwd
    )


def test_every_promised_name_is_there():
    done = python("import pipeswarm; pipeswarm.PipelineUser; [getattr(pipeswarm, name) for name in pipeswarm.__all__]")
    assert done.returncode == 0, done.stderr
    assert dir(pipeswarm) == pipeswarm.__all__ == sorted(pipeswarm.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = pipeswarm.Nonsense


def test_type_checkers_see_what_is_loaded_when_it_is_used():
    tree = ast.parse(Path(pipeswarm.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == pipeswarm._MODULES
    assert sorted(typed) == pipeswarm.__all__


@pytest.mark.parametrize(
    ("program", "not_loaded"),
    [
        ("import pipeswarm", "harness locust gevent numpy pandas kfp kubernetes"),
        ("from pipeswarm import Target, HttpRequest, Burst", "locust gevent numpy pandas kfp kubernetes"),
        ("from pipeswarm import Detector, Finding", "locust gevent kfp kubernetes"),
    ],
)
def test_a_name_loads_only_what_it_needs(program, not_loaded):
    done = python(f"{program}; import sys; print(*sorted(sys.modules.keys() & set('{not_loaded}'.split())))")
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize("page", sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]), ids=lambda p: p.name)
def test_documentation_imports_nothing_else(page):
    assert not OURS.findall("\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)))


@pytest.mark.parametrize("room", ["examples", "locustfiles"])
def test_examples_and_locustfiles_import_nothing_else(room):
    files = list((ROOT / room).rglob("*.py"))
    assert files
    assert [str(path) for path in files if OURS.search(path.read_text())] == []


def test_a_folder_that_hides_ours_is_named_in_one_sentence(tmp_path):
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").touch()
    (tmp_path / "load.py").write_text((ROOT / "locustfiles/kfp.py").read_text())
    locust = Path(sys.executable).with_name("locust")
    done = subprocess.run(
        [locust, "-f", tmp_path / "load.py", "--headless"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    message, hint = done.stderr.strip().splitlines()[-2:]
    assert message == f"error: {tmp_path / 'harness'} hides Pipeswarm's own package 'harness'"
    assert hint.startswith("  → rename it")


def test_a_folder_of_reports_beside_the_locustfile_hides_nothing(tmp_path):
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "__init__.py").touch()
    done = python("import pipeswarm; pipeswarm.Target", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

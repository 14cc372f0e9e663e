"""Files that somebody else wrote end in one sentence, however large, deep or odd they are."""

import ast
import os
import threading
from pathlib import Path

import pytest

from harness import reading
from harness.model.errors import ConfigError

ROOT = Path(__file__).parents[1]
READERS = {"open", "read_text", "read_bytes", "fdopen", "load_all", "ParquetFile", "read_schema", "read_parquet"}
BOUNDED = {
    "reading",
    "folder",
    "self",
    "self._folder",
    "files",
    "RunFolder",
    "RunFolder(path)",
    "test.ledger",
    "webbrowser",
}
# What may read or write without bounds, and why.
ALLOWED = {
    "harness/reasons/catalogue.py: files('harness.reasons').joinpath('reasons.yaml').read_text(encoding='utf-8')": "our own",
    "harness/reasons/catalogue.py: yaml.load(text, loader)": "our own",
    "reports/page.py: files(package).joinpath(*path, name).read_text(encoding='utf-8')": "our own",
    "harness/cli/__init__.py: os.open(os.devnull, os.O_WRONLY)": "nothing is read",
    "harness/drive/console.py: os.open(os.devnull, os.O_WRONLY)": "nothing is read",
    "generators/cli.py: os.open(os.devnull, os.O_WRONLY)": "nothing is read",
    "harness/plan/form_files.py: path.open('wb')": "written",
    "harness/drive/processes.py: log.open('ab')": "written",
    "harness/planning/experiment_folder.py: (folder / RESULTS).open('a', encoding='utf-8')": "written",
    "harness/drive/conclusion.py: page.open('a', encoding='utf-8')": "written",
    "harness/drive/conclusion.py: report.read_text(encoding='utf-8')": "this process has just written it",
    "harness/plan/assignment.py: Path(file).read_bytes()": "a module that was imported",
    "harness/planning/identify/recorded.py: hetida.EXAMPLE.read_bytes()": "our own",
    "harness/targets/dask_tenants/objects.py: _WORK.read_text(encoding='utf-8')": "our own",
    "harness/simulator/profile/file.py: entry.read_text(encoding='utf-8')": "our own",
    "harness/simulator/profile/file.py: (_BUILT_IN / f'{name}.yaml').read_text(encoding='utf-8')": "our own",
    "harness/planning/summaries.py: file.read_bytes()": "our own",
    "harness/in_cluster/objects.py: to.open('wb')": "written",
    "harness/in_cluster/running.py: packed.open('wb')": "written",
    "harness/in_cluster/running.py: tarfile.open(packed)": "its expansion is checked before",
    "harness/in_cluster/pod.py: new.open('w')": "written",
    "harness/in_cluster/pod.py: (state / _PID).open('r+')": "it is locked, not read",
    "generators/schema.py: path.read_bytes()": "our own",
    "generators/spec.py: path.read_text(encoding='utf-8')": "our own",
    "reports/page.py: (files('reports') / 'templates' / name).read_text(encoding='utf-8')": "our own",
}

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 9))
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 10)}]}}\n" for k in range(1, 9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 60_000, "f:1: more than 100 levels"),
        ("- " * 60_000, "f:1: more than 100 levels"),
        ("? " * 60_000, "f:1: more than 100 levels"),
        ("\n".join(" " * k + "a:" for k in range(2000)), "f:101: more than 100 levels"),
        (BOMB, "more than 1,000,000 values"),
        (MERGED, "more than 1,000,000 values"),
        ("a: &a [*a]", "f:1: the alias 'a' refers to itself"),
        ("a: &a {b: {c: *a}}", "f:1: the alias 'a' refers to itself"),
        ("b: *a", "f:1: not valid YAML: found undefined alias"),
        ("seed:\n " + "9" * 5000, "f:2: the number is too long"),
        ("seed: 0x" + "f" * 5000, "f:1: the number is too long"),
        ("seed: " + ":".join(["59"] * 5000), "f:1: the number is too long"),
        ("seed: 99999999999999999999", "f:1: not valid YAML: the number is too large"),
        ("x: 9" + "0" * 400 + ".0", "f:1: the number is too long"),
        ("at: 2024-13-45", "f: not valid YAML: month must be in 1..12"),
        ("{[1]: 2}", "f:1: not valid YAML: found unhashable key"),
        ("a: !!python/object/apply:os.getcwd []", "f:1: not valid YAML: could not determine a constructor"),
        ("a: !!int x", "f: not valid YAML: invalid literal"),
        ("a: \x00", "control characters are not allowed"),
        ("a: [1, 2", "f:2: not valid YAML: did not find expected"),
    ],
    ids=range(20),
)
def test_yaml_beyond_the_bounds_is_refused_with_its_place(text, said):
    with pytest.raises(ConfigError) as refused:
        reading.parse_yaml(text, "f")
    assert said in refused.value.message
    assert len(refused.value.message) < 300


def test_yaml_within_the_bounds_is_read_as_any_safe_loader_reads_it():
    text = (
        "a: &x {n: 9223372036854775807, f: 1e3, t: 2024-01-02}\nb: *x\nc: '99999999999999999999'\n---\n"
        + "[" * 100
        + "]" * 100
    )
    first, second = reading.parse_yaml(text, "f")
    assert first["b"]["n"] == 2**63 - 1
    assert first["c"] == "9" * 20
    assert second


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 60_000 + b"]" * 60_000, "f, line 1, column 1026: not JSON: depth limit exceeded"),
        (b"[" * 101 + b"]" * 101, "f has more than 100 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "f has more than 100 levels"),
        (b"\xff", "f, line 1, column 1: not JSON: str is not valid UTF-8"),
        (b"NaN", "f, line 1, column 1: not JSON"),
        (b"", "f, line 1, column 1: not JSON"),
    ],
    ids=range(6),
)
def test_json_beyond_the_bounds_is_refused(content, said):
    with pytest.raises(ConfigError) as refused:
        reading.parse_json(content, "f")
    assert said in refused.value.message


def test_json_within_the_bounds_is_read():
    assert reading.parse_json(b"[" * 100 + b"]" * 100, "f")
    assert reading.parse_json('{"a": [1, "\\u001b", null]}', "f") == {"a": [1, "\x1b", None]}


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_a_file(device):
    with pytest.raises(ConfigError, match=f"{device} is not a file"):
        reading.read_bytes(Path(device))


def test_size_is_bounded_before_reading(tmp_path):
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as out:
        out.truncate(2**40)
    with pytest.raises(ConfigError, match="is larger than 64 MiB"):
        reading.read_bytes(sparse)


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
def test_a_pipe_is_read_up_to_the_bound(tmp_path, size, fits):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"x" * size))
    writer.start()
    if fits:
        assert reading.read_bytes(pipe, 1000) == b"x" * size
    else:
        with pytest.raises(ConfigError, match="is larger than"):
            reading.read_bytes(pipe, 1000)
    writer.join()


def test_text_is_utf_8_with_or_without_a_byte_order_mark(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"\xef\xbb\xbfa")
    assert reading.read_text(file) == "a"
    file.write_bytes(b"a\xe9")
    with pytest.raises(ConfigError, match="is not UTF-8 \\(at byte 1\\)"):
        reading.read_text(file)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: dict[str, int]()["a"], "f is damaged or truncated: 'a' is missing"),
        (lambda: list[int]()[0], "list index out of range"),
        (lambda: (5).get("a"), "no attribute 'get'"),
        (lambda: int(float("inf")), "infinity"),
        (lambda: int("x"), "invalid literal"),
    ],
)
def test_a_document_of_another_structure_is_at_fault(read, said):
    with pytest.raises(ConfigError) as refused, reading.structured("f"):
        read()
    assert said in refused.value.message


def unbounded_reads(source):
    """Calls that open or parse a file otherwise than through `harness.reading` or the store."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id in READERS:
            yield ast.unparse(call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in READERS:
            if ast.unparse(call.func.value) not in BOUNDED:
                yield ast.unparse(call)
        elif (
            isinstance(call.func, ast.Attribute) and call.func.attr == "load" and ast.unparse(call.func) == "yaml.load"
        ):
            yield ast.unparse(call)


def test_every_file_of_a_user_is_read_within_bounds():
    modules = [
        path for room in ("pipeswarm", "harness", "generators", "reports") for path in (ROOT / room).rglob("*.py")
    ]
    bounded = ("harness/reading.py", "harness/store/")
    found = {
        f"{name}: {call}"
        for name, path in ((path.relative_to(ROOT).as_posix(), path) for path in modules)
        if not name.startswith(bounded)
        for call in unbounded_reads(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED.keys()

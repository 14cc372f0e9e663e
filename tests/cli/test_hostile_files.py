"""Pipelines and manifests that somebody damaged, through every verb and option that takes one: never a traceback."""

import copy
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generators import cli as generators
from harness import cli
from harness.model.errors import ConfigError, ExitCode
from harness.plan import subprocesses
from harness.planning.pipeline_requests import run_requests
from harness.targets import hetida, kfp
from tests.support.hostile import HOSTILE, JUNK, PIPELINE, TEMPLATE, WORKFLOW, spots

REFERS = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "r"}, "spec": {"workflowTemplateRef": {"name": "shared"}}}  # fmt: skip
LOAD = ["run-in-cluster", "--image", "i", "--namespace", "n", "--dry-run"]  # it checks all that a load does
SIMULATE = ["simulate", "run", "--schedule", "burst", "--runs", "2", "--no-report", "--quiet"]
CHANGES = ["--retries", "2", "--spot", "aks", "--label", "a=b", "--timeout", "1h", "--image-map", "a=b"]


@dataclass(frozen=True)
class Verb:
    """`of(file, place)` is the command; what it writes goes below `place`, which has scenarios and a template."""

    kind: str  # of the files that it takes: "kfp", "argo" or "json"
    of: Callable[[Path, Path], list[object]]
    main: Callable[[list[str]], int] = cli.main

    def __call__(self, file: Path, place: Path) -> int:
        return self.main([str(word) for word in self.of(file, place)])


def _requests(words: list[str]) -> int:
    """What ``capacity jobs-per-node --pipeline`` does with the file; the rest needs a cluster."""
    texts = dict.fromkeys(("namespace", *(option.name for option in kfp.OPTIONS)), "")
    try:
        run_requests(kfp.prepare({**texts, "pipeline": words[0], "caching": "off"}, simulated=False).package or b"")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return ExitCode.OK


GENERATE, OUT = generators.main, "out"
VERBS = {
    "prepare": Verb("kfp", lambda file, place: ["prepare", file, "-o", place / OUT, *CHANGES]),
    "prepare --pool-parameter": Verb("kfp", lambda f, place: ["prepare", f, "-o", place / OUT, "--pool-parameter", "p"]),
    "prepare --check": Verb("kfp", lambda file, _: ["prepare", file, "--check"]),
    "simulate run --pipeline": Verb("kfp", lambda f, place: [*SIMULATE, "--runs-dir", place / OUT, "--pipeline", f]),
    "simulate run --prepare": Verb(
        "kfp", lambda f, place: [*SIMULATE, "--runs-dir", place / OUT, "--pipeline", f, "--prepare", "retries=1,spot=aks"]
    ),
    "simulate run --scenarios": Verb("json", lambda f, place: [*SIMULATE, "--runs-dir", place / OUT, "--scenarios", f]),
    "simulate run --workflow": Verb("argo", lambda f, place: [*SIMULATE, "--runs-dir", place / OUT, "--workflow", f]),
    "simulate run --with": Verb(
        "argo",
        lambda f, place: [*SIMULATE, "--runs-dir", place / OUT, "--workflow", place / "refers.yaml", "--with", f],
    ),
    "load --pipeline": Verb("kfp", lambda f, place: [*LOAD, "kfp", "--scenarios", place / "s.csv", "--pipeline", f]),
    "load --workflow": Verb("argo", lambda f, place: [*LOAD, "argo", "--scenarios", place / "s.csv", "--workflow", f]),
    "load --with": Verb("argo", lambda f, place: [*LOAD, "argo", "--workflow", place / "refers.yaml", "--with", f]),
    "load --scenarios": Verb("kfp", lambda file, _: [*LOAD, "kfp", "--scenarios", file]),
    "load --transformation": Verb("json", lambda file, _: [*LOAD, "hetida", "--transformation", file]),
    "load --wiring": Verb("json", lambda file, _: [*LOAD, "hetida", "--wiring", file]),
    "experiment": Verb("kfp", lambda _, place: ["experiment", place / "plan.yaml", "--folder", place / OUT, "--jobs", 1]),
    "jobs-per-node": Verb("kfp", lambda file, _: [file], _requests),
    "--from-pipeline": Verb("kfp", lambda f, place: ["--n", 3, "-o", place / OUT, "--from-pipeline", f], GENERATE),
    "--check": Verb("kfp", lambda f, place: ["--check", place / "s.csv", "--from-pipeline", f], GENERATE),
    "--from-workflow-template": Verb(
        "argo", lambda f, place: ["--n", 3, "-o", place / OUT, "--from-workflow-template", f], GENERATE
    ),
    "--from-workflow": Verb("json", lambda f, place: ["--n", 3, "-o", place / OUT, "--from-workflow", f], GENERATE),
    "import": Verb("argo", lambda file, place: ["import", file, "--runs-dir", place / OUT, "--quiet"]),
}  # fmt: skip

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 9))
IR, MANIFEST = kfp.EXAMPLE.read_bytes(), yaml.safe_dump(WORKFLOW).encode()
DOCUMENTS: dict[str, dict[str, bytes]] = {  # by the kind of files that resemble them; "" for every verb
    "": {
        "empty": b"", "no text": bytes(range(256)), "UTF-16": MANIFEST.decode().encode("utf-16"), "text": b'"a"', "list": b"[]",
        "mapping": b"{}", "NaN": b'{"a": NaN}', "deep": b"[" * 5000, "bomb": BOMB.encode(), "alias to itself": b"a: &a {b: *a}",
        "keys": b"{1: 2, null: 3, 1.5: 4, 2024-01-01: 5, true: 6}", "tag": b"!!python/object/apply:os.getcwd []",
        "surrogate": b'"\\ud800"', "escape": b"\x1b[31m: a",
    },
    "kfp": {
        "byte order mark": b"\xef\xbb\xbf" + IR, "cut": IR[: len(IR) // 2], "two pipelines": IR + b"\n---\n" + IR,
        "a list behind it": IR + b"\n---\n[1]\n", "a manifest behind it": IR + b"\n---\n" + MANIFEST,
        "an odd platform": IR + b"\n---\nplatforms: {kubernetes: {deploymentSpec: {executors: {exec-train: 3}}}}\n",
        "an endless limit": json.dumps(PIPELINE).replace('"cpuLimit": 1.0', '"cpuLimit": 1e308').encode(),
        "nothing in it": b"pipelineInfo: {name: [1]}\nroot: {dag: {tasks: []}}",
        "long name": json.dumps({"pipelineInfo": {"name": "x" * 5000}, "root": {"dag": {"tasks": {"y" * 5000: 3}}}}).encode(),
    },
    "argo": {
        "cut": MANIFEST[: len(MANIFEST) // 2], "two workflows": MANIFEST + b"\n---\n" + MANIFEST,
        "no spec": b"apiVersion: argoproj.io/v1alpha1\nkind: Workflow", "items that are none": b'{"kind": "List", "items": 3}',
        "a list of kind List": json.dumps({"kind": "List", "items": [WORKFLOW, 3]}).encode(), "separators": b"---\n---\n",
        "odd metadata": json.dumps({**WORKFLOW, "metadata": 5}).encode(),
    },
    "json": {},
}  # fmt: skip
_COSTLY = ("kfp-many.yaml", "kfp-items.yaml", "large.yaml")
for _name, (_document, _) in HOSTILE.items():
    if _name not in _COSTLY:
        DOCUMENTS["kfp" if _name.startswith("kfp") else "argo"][_name] = json.dumps(_document).encode()
LARGE = {
    "ten megabytes": b"a: " + b"x" * 10 * 2**20,
    "ten megabytes of JSON": json.dumps({"pipelineInfo": {"name": "x" * 10 * 2**20}, "root": {}}).encode(),
    "a million items": b"[" + b"0," * 10**6 + b"0]",
    **{name: json.dumps(HOSTILE[name][0]).encode() for name in _COSTLY},
}


@pytest.fixture(scope="module", autouse=True)
def in_one_process() -> Iterator[None]:
    """The process that generates scenarios is a call of its code: to start another takes a second."""

    def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
        said = io.StringIO()
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = generators.main(command[command.index("generators") + 1 :])
        return subprocess.CompletedProcess(command, code, "", said.getvalue())

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocesses, "run", run)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("place")
    (found / "s.csv").write_text("id,scenario_name\n1,a\n2,b\n")
    (found / "refers.yaml").write_text(yaml.safe_dump(REFERS))
    plan = "{loads: [2], nodes: [2], repetitions: 1, simulate: demo, pipeline: hostile.yaml}"
    (found / "plan.yaml").write_text(plan)
    return found


def _clear(path: Path) -> None:
    if path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def demand_refused_or_done(name: str, content: bytes, place: Path) -> None:
    """It works, or it is refused in one sentence and leaves nothing behind."""
    (place / "hostile.yaml").write_bytes(content)
    _clear(place / OUT)
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        try:
            code = VERBS[name](place / "hostile.yaml", place)
        except SystemExit as ended:  # of argparse
            code = int(ended.code or 0)
    left = [each for each in (place / OUT, *(place / OUT).glob("*")) if each.is_file() or each.parent.name == OUT]
    assert code in {ExitCode.OK, ExitCode.BAD_CONFIG, ExitCode.SLO_FAILED, ExitCode.INVALID}, said.getvalue()
    if code == ExitCode.BAD_CONFIG and "bad cell" not in said.getvalue():
        errors = [line for line in said.getvalue().splitlines() if "error: " in line]
        assert [line[:7] for line in errors] == ["error: "], said.getvalue()
        assert len(said.getvalue()) < 5000
        assert not left


@pytest.mark.parametrize("name", VERBS)
def test_a_hostile_document_is_refused_in_one_sentence_or_works(name: str, place: Path) -> None:
    for content in (*DOCUMENTS[""].values(), *DOCUMENTS[VERBS[name].kind].values()):
        demand_refused_or_done(name, content, place)


@pytest.mark.parametrize("large", ["ten megabytes", "a million items"])
def test_a_large_document_is_refused_or_works(large: str, place: Path) -> None:
    demand_refused_or_done("prepare --check", LARGE[large], place)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("large", LARGE)
def test_a_large_document_is_refused_by_every_verb_or_works(name: str, large: str, place: Path) -> None:
    demand_refused_or_done(name, LARGE[large], place)


VALID = {
    "kfp": [PIPELINE, next(yaml.safe_load_all(IR))],
    "argo": [json.loads(json.dumps(WORKFLOW).replace(', "dependencies": []', "")), TEMPLATE],  # the other is refused
    "json": [json.loads(hetida.EXAMPLE.read_bytes())],
}
CASES = st.sampled_from([(name, valid) for name, verb in VERBS.items() for valid in VALID[verb.kind]])
CHANGES_OF_IT = st.lists(st.tuples(st.integers(0, 10**6), JUNK), min_size=1, max_size=3)


def demand_damaged_is_refused_or_done(
    case: tuple[str, dict[str, Any]], changes: list[tuple[int, Any]], place: Path
) -> None:
    name, damaged = case[0], copy.deepcopy(case[1])
    for at, junk in changes:
        if found := spots(damaged):
            holder, key = found[at % len(found)]
            holder[key] = copy.deepcopy(junk)
    demand_refused_or_done(name, json.dumps(damaged).encode(), place)


_SAME_PLACE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@settings(_SAME_PLACE, max_examples=30)
@given(CASES, CHANGES_OF_IT)
def test_a_damaged_document_is_refused_in_one_sentence_or_works(place, case, changes):
    demand_damaged_is_refused_or_done(case, changes, place)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(_SAME_PLACE, max_examples=5000)
@given(CASES, CHANGES_OF_IT)
def test_many_damaged_documents_are_refused_in_one_sentence_or_work(place, case, changes):
    demand_damaged_is_refused_or_done(case, changes, place)

"""``pipeswarm prepare PIPELINE``: make a compiled pipeline ready for load, or list what would spoil its test."""

import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from harness import reading
from harness.analysis.cost.resources import as_cores, as_memory
from harness.analysis.waits.tasks import quickest_s
from harness.cli import printing
from harness.collectors.kubernetes.node_pools import NodePools
from harness.model.errors import ConfigError, ExitCode
from harness.planning.fit import demand_fit, offers_of
from harness.planning.timelines import timeline_of
from harness.prepare import options
from harness.prepare.changes import prepared
from harness.prepare.check import Finding, check
from harness.prepare.settings import Resources, Settings, checked, placement_of
from harness.prepare.steps import Document
from harness.simulator.profile.file import load_profile
from harness.store import files
from harness.targets.kfp.pipeline import read_ir

_KFP = "from kfp.cli.__main__ import main; main()"  # the command kfp, which need not be on the path
_NEWEST_SCHEMA = (2, 1)  # of the PipelineSpec: that of all kfp 2 compilers so far


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("pipeline", type=Path, help="compiled pipeline (IR YAML), or its source in Python")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write it here (default: show the changes only)"
    )
    parser.add_argument(
        "--check", action="store_true", help="list what would spoil a load test; exit code 3 if anything"
    )
    parser.add_argument("--run", type=Path, metavar="RUN", help="with --check: a run folder, for what steps cost in it")
    parser.add_argument("--caching", choices=("off", "keep"), default="off", help="of every task (default: off)")
    parser.add_argument("--resources", type=Path, metavar="FILE",
                        help="advice of pipeswarm resources RUN --json; wins for the steps in it")  # fmt: skip
    options.configure(parser)
    where = parser.add_argument_group("cluster", "refuse a request above every node that the step may run on")
    where.add_argument("--profile", metavar="NAME", help="nodes of a simulated platform: built-in, or a YAML file")
    where.add_argument("--kube-context", metavar="NAME", help="nodes of a cluster: a context of the kubeconfig")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the pipeline, or prepare it, show the changes and write the result."""
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as folder:
        path = arguments.pipeline
        compiled = _compiled(path, Path(folder)) if path.suffix == ".py" and path.is_file() else path
        return _check(arguments, compiled) if arguments.check else _prepare(arguments, compiled)


def _prepare(arguments: argparse.Namespace, compiled: Path) -> int:
    if arguments.run:
        raise ConfigError("--run is for --check", "leave it out, or give --check")
    settings = _settings_of(arguments)
    output: Path | None = arguments.output
    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"the folder {output.parent} does not exist", "make it, or give another --output")
    text, documents = _read(compiled)
    with reading.structured(arguments.pipeline, "recompile it with kfp 2"):
        after = prepared(documents, settings)
        _demand_fit(arguments, after)
    changed = after != documents
    if output is not None:
        files.replace(output.parent, output.name, _dumped(after, _heading(text)) if changed else text)
    lines = _diff(documents, after, f"{arguments.pipeline}", f"{output or 'prepared'}")
    document = {"changed": changed, "output": None if output is None else f"{output}", "diff": "\n".join(lines)}
    printing.show(arguments, lambda: _text(lines, output), lambda: json.dumps(document, indent=2, ensure_ascii=False))
    return ExitCode.OK


def _demand_fit(arguments: argparse.Namespace, documents: Sequence[Document]) -> None:
    if name := arguments.profile:
        demand_fit(documents, offers_of(load_profile(name)), f"the profile '{name}'")
    if context := arguments.kube_context:
        demand_fit(documents, NodePools(context).offers(), f"the cluster '{context}'")


def _diff(before: Sequence[Document], after: Sequence[Document], source: str, target: str) -> list[str]:
    old, new = (_dumped(sequence).decode().splitlines() for sequence in (before, after))
    return list(difflib.unified_diff(old, new, source, target, lineterm=""))


def _text(diff: Sequence[str], output: Path | None) -> str:
    lines = list(diff) or ["nothing to change"]
    return "\n".join([*lines, "", f"written: {output}" if output else "nothing written: give -o FILE"])


def _check(arguments: argparse.Namespace, compiled: Path) -> int:
    spot = placement_of([], [], [], arguments.spot).selector
    arguments.spot = ""
    if arguments.output is not None or _settings_of(arguments) != Settings():
        raise ConfigError("--check looks at the pipeline as it is", "prepare it first, then check the result")
    _, documents = _read(compiled)
    with reading.structured(arguments.pipeline, "recompile it with kfp 2"):
        _demand_fit(arguments, documents)
        found = check(documents, spot[0] if spot else None, _quickest_s(arguments.run) if arguments.run else {})
    document = {"findings": [asdict(finding) for finding in found]}
    printing.show(arguments, lambda: _listed(found), lambda: json.dumps(document, indent=2, ensure_ascii=False))
    return ExitCode.SLO_FAILED if found else ExitCode.OK


def _quickest_s(run: Path) -> Mapping[str, float]:
    return quickest_s(timeline_of(run))


def _listed(found: Sequence[Finding]) -> str:
    if not found:
        return "nothing would spoil a load test"
    tasks: dict[Finding, list[str]] = {}
    for each in found:
        tasks.setdefault(replace(each, task=""), []).append(each.task or "the pipeline")
    lines = []
    for each, names in tasks.items():
        lines += printing.wrapped(f"{', '.join(dict.fromkeys(names))}: {each.found}: {each.cost}")
        lines += printing.wrapped(each.remedy, first="  → ", others="    ")
    return "\n".join(lines)


def _settings_of(arguments: argparse.Namespace) -> Settings:
    by_step = advice_of(arguments.resources) if arguments.resources else None
    return options.settings_of(arguments, caching=arguments.caching == "keep", by_step=by_step)


def advice_of(path: Path) -> Mapping[str, Resources]:
    """The recommended resources by step, as ``pipeswarm resources RUN --json`` writes them.

    Raises:
        ConfigError: no such file, or not of that form.
    """
    hint = "write it with: pipeswarm resources RUN --json > FILE"
    with reading.readable(path, hint):
        document = reading.parse_json(reading.read_bytes(path), path, hint)
    found = {}
    with reading.structured(path, hint):
        for step in document["steps"]:
            cpu, most_cpu, memory, most_memory = (
                _quantity(name, step["advice"].get(name)) for name in options.QUANTITIES
            )
            resources = Resources(cpu, most_cpu, memory, most_memory)
            found[str(step["task"])] = checked(resources, f"{path}: step {step['task']}")
    return found


def _quantity(name: str, amount: float | None) -> str:
    """Cores or bytes as a Kubernetes quantity; "" for none."""
    return "" if amount is None else (as_cores if name.startswith("cpu") else as_memory)(float(amount))


def _read(path: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """The pipeline's bytes and documents, of a schema that is known."""
    text, documents = read_ir(path)
    version = str(documents[0].get("schemaVersion", ""))
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) > _NEWEST_SCHEMA:
        lines = text.splitlines()
        line = next((k for k, each in enumerate(lines, 1) if each.startswith(b"schemaVersion")), 1)
        newest = ".".join(map(str, _NEWEST_SCHEMA))
        raise ConfigError(f"{path}:{line}: its schema {version} is newer than {newest}", "compile it with an older kfp")
    return text, documents


def _dumped(documents: Sequence[Mapping[str, Any]], heading: bytes = b"") -> bytes:
    """YAML as the SDK's compiler writes it."""
    return heading + bytes(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=True, encoding="utf-8"))


def _heading(text: bytes) -> bytes:
    """The comment with which the compiler begins a file."""
    return re.match(rb"(?:#[^\n]*\n)*", text)[0]  # type: ignore[index]  # it matches nothing, too


def _compiled(source: Path, folder: Path) -> Path:
    """IR compiled from Python by the SDK, in a process of its own: the source may do anything."""
    target = folder / "pipeline.yaml"
    command = [sys.executable, "-B", "-c", _KFP, "dsl", "compile", "--py", str(source), "--output", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 (the user's own file)
    if done.returncode or not target.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ConfigError(f"{source} does not compile: {said[-1] if said else 'no output'}",
                          f"see kfp dsl compile --py {source} --output pipeline.yaml")  # fmt: skip
    return target

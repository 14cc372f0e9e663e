"""``pipeswarm simulate corpus``: every workflow and pipeline of a folder through every verb that takes one.

Users run it on their own files before a test: it says what would run, what would be ignored, and what is refused.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from harness import reading
from harness.cli import printing
from harness.cli.platform import served
from harness.cli.platform.tried import BUG, FAILED, RAN, REFUSED, WAITS, Tried, table
from harness.model import Event, PodSpans, Scenario, Span, Submission
from harness.model.argo.manifest import GROUP_VERSION, spec_of
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.simulator.fast import Arrival, simulate_compactly
from harness.simulator.fast.submitting import ignored
from harness.simulator.faults import parse_faults
from harness.simulator.profile import Profile
from harness.targets.argo.manifest import inputs_of as inputs_of_workflow
from harness.targets.argo.manifest import runnable
from harness.targets.kfp.pipeline import inputs_of
from harness.targets.scenarios import Input

_SUFFIXES = {".yaml", ".yml", ".json"}
_OBJECTS = {"WorkflowTemplate", "ClusterWorkflowTemplate", "ConfigMap"}
_MOST_FILES = 10_000
_DAY_S = 86_400.0
_VALUES = {"NUMBER_INTEGER": 1, "NUMBER_DOUBLE": 1.0, "BOOLEAN": True, "LIST": [], "STRUCT": {}}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("folder", type=Path, help="folder with compiled pipelines and Argo manifests (YAML or JSON)")
    parser.add_argument(
        "--served", action="store_true",
        help="also load each with Locust on a served platform, two runs in wall time: some 10 seconds a file",
    )  # fmt: skip
    printing.configure(parser)


def run(arguments: argparse.Namespace, profile: Profile) -> int:
    """Try all files; returns the exit code."""
    if arguments.served and (arguments.fault or arguments.result or arguments.ignore):
        raise ConfigError(
            "--served: Locust takes faults, results and ignored fields from the profile",
            "write them into it as faults, results and ignore, and give --profile FILE",
        )
    profile = replace(profile, faults=(*profile.faults, *parse_faults(arguments.fault)))
    documents = _documents(arguments.folder)
    objects = [each for _, each in documents if _is_object(each, profile)]
    tried = []
    for path, document in documents:
        if kind := _kind(document):
            beside = [each for each in objects if each is not document]
            one = _try(str(path.relative_to(arguments.folder)), kind, document, documents, beside, profile)
            if arguments.served:
                own = [document] if kind == "argo" and sum(at == path for at, _ in documents) > 1 else []
                one = served.load(one, path, own, beside, arguments.profile)
                sys.stderr.write(f"{one.file}: {one.run}\n")
            tried.append(one)
    if not tried:
        raise ConfigError(f"{arguments.folder} holds no workflow and no compiled pipeline", "give another folder")
    printing.show(arguments, lambda: table(tried), lambda: json.dumps([asdict(each) for each in tried]))
    return ExitCode.BUG if any(each.run == BUG for each in tried) else ExitCode.OK


def _documents(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The documents of all files; what is no YAML is none of ours."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder", "give the folder with the pipelines")
    files = sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    if len(files) > _MOST_FILES:
        raise ConfigError(
            f"{folder} holds {len(files):,} files, and at most {_MOST_FILES:,} are tried", "give a part of it"
        )
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in files:
        try:
            parsed = reading.parse_yaml(reading.read_bytes(path), str(path))
            found += [(path, each) for each in parsed if isinstance(each, dict)]
        except (OSError, ConfigError) as error:
            sys.stderr.write(f"left out: {error}\n")
    return found


def _is_object(document: Mapping[str, Any], profile: Profile) -> bool:
    """Whether workflows can use it: a damaged one is no reason to refuse others."""
    if str(document.get("kind")) not in _OBJECTS:
        return False
    try:
        ignored(yaml.dump(document, Dumper=yaml.CSafeDumper).encode(), profile.ignore)
    except ConfigError:
        return False
    return isinstance(document.get("metadata"), Mapping)


def _kind(document: Mapping[str, Any]) -> str:
    if "pipelineInfo" in document:
        return "kfp"
    if document.get("apiVersion") != GROUP_VERSION:
        return ""
    kind, spec = str(document.get("kind")), document.get("spec")
    has_entrypoint = isinstance(spec, Mapping) and bool(spec.get("entrypoint"))
    return "argo" if kind in {"Workflow", "CronWorkflow"} or (kind in _OBJECTS and has_entrypoint) else ""


def _try(
    file: str, kind: str, document: dict[str, Any], documents: Sequence[tuple[Path, dict[str, Any]]],
    beside: Sequence[dict[str, Any]], profile: Profile,
) -> Tried:  # fmt: skip
    """One document through all verbs. Whatever it does is a line of the table, and never the end of the command."""
    try:
        if kind == "argo":
            return _try_workflow(file, document, beside, profile)
        platform = [each for path, each in documents if str(path).endswith(file) and "platforms" in each]
        return _try_pipeline(file, [document, *platform], profile)
    except PipeswarmError as error:
        return Tried(file, kind, REFUSED, note=error.message)
    except Exception as error:  # noqa: BLE001  # a defect of ours: to be shown with its file
        return Tried(file, kind, BUG, note=f"{type(error).__name__}: {error}")


def _try_workflow(file: str, manifest: dict[str, Any], beside: Sequence[dict[str, Any]], profile: Profile) -> Tried:
    spec = spec_of(runnable(manifest, file))
    with reading.structured(file):
        refers = (spec.get("workflowTemplateRef") or {}).get("name")
        templates = [spec_of(each) for each in beside if refers and each["metadata"].get("name") == refers]
    package = yaml.dump_all([manifest, *beside], Dumper=yaml.CSafeDumper).encode()
    own = yaml.dump(manifest, Dumper=yaml.CSafeDumper).encode()
    fields = ignored(own, profile.ignore)
    note = f"ignored: {', '.join(fields)}" if fields else ""
    return _simulated(Tried(file, "argo", RAN, note=note), package, inputs_of_workflow(spec, *templates[:1]), profile)


def _try_pipeline(file: str, documents: Sequence[dict[str, Any]], profile: Profile) -> Tried:
    package = yaml.dump_all(documents, Dumper=yaml.CSafeDumper).encode()
    with reading.structured(file, "recompile the pipeline with kfp 2"):
        inputs = inputs_of(file, documents[0])
    return _simulated(Tried(file, "kfp", RAN), package, inputs, profile)


def _simulated(tried: Tried, package: bytes, inputs: Sequence[Input], profile: Profile) -> Tried:
    """One run of it, for a day at most."""
    values = {each.name: (each.choices or (_VALUES.get(each.type.value, "x"),))[0] for each in inputs if each.required}
    arrivals = [Arrival(0.0, Scenario("0", "corpus", values, {}))]
    records = list(simulate_compactly(profile, package, arrivals, drain_s=_DAY_S, sample_s=_DAY_S / 24))
    (submission,) = (record for record in records if isinstance(record, Submission))
    if submission.error:
        return Tried(tried.file, tried.kind, REFUSED, note=submission.error)
    state = next((record.reason for record in records if isinstance(record, Event) and record.kind == "Run"), "")
    whole = next(record for record in records if isinstance(record, Span))
    pods = sum(isinstance(record, PodSpans) for record in records)
    seconds = ((whole.ended_at or whole.started_at) - whole.started_at) / 1e9
    why = next(_reasons(records), "") if state != "SUCCEEDED" else ""
    run = {"SUCCEEDED": RAN, "": WAITS}.get(state, FAILED)
    return Tried(tried.file, tried.kind, run, pods, round(seconds, 1), note="; ".join(filter(None, (why, tried.note))))


def _reasons(records: Sequence[object]) -> Iterator[str]:
    for record in records:
        if isinstance(record, Event) and record.type == "Warning" and record.message:
            yield record.message

"""Compiled pipelines (KFP IR): their inputs, and how caching is switched off for a load test. Never imports the SDK."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness import reading
from harness.model.errors import ConfigError
from harness.model.text.redaction import HIDDEN, Redaction
from harness.prepare.changes import PLATFORM_PATH, disable_caching, prepared
from harness.prepare.settings import Settings
from harness.prepare.steps import tasks_of
from harness.targets.scenarios import Input, InputType, as_cell, typed

HINT = "compile the pipeline with kfp 2: kfp dsl compile --py pipeline.py --output pipeline.yaml"
_OLD_TYPES = {"STRING": InputType.STRING, "INT": InputType.INTEGER, "DOUBLE": InputType.DOUBLE}  # IR before 2.0
_PARAMETERS = frozenset({"parameters", "parameterValues"})
# Keys that distinguish a parameter's declaration, or the source of its value, from a value that is itself a struct.
_IR_KEYS = frozenset({"parameterType", "runtimeValue", "componentInputParameter", "taskOutputParameter"})


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A compiled pipeline: its name, inputs, the bytes to upload, and the `original` that they were made from."""

    name: str
    inputs: tuple[Input, ...]
    package: bytes
    original: bytes
    steps: int

    @property
    def digest(self) -> str:
        """The SHA-256 of the package, hexadecimal: the same content is uploaded once."""
        return hashlib.sha256(self.package).hexdigest()


def read_pipeline(path: Path, changes: Sequence[Settings] = (), *, keep_caching: bool = False) -> Pipeline:
    """Read compiled IR and apply `changes`. Unless `keep_caching`, the execution cache of every task is switched off.

    A cached task is not executed, so a test with cached tasks measures nothing; and for runs by version reference the
    server ignores the SDK's `enable_caching`. So caching is switched off in the package, including nested pipelines.

    Raises:
        ConfigError: no such file, not compiled IR, or it can't be changed so.
    """
    original, before = read_ir(path)
    with reading.structured(path, HINT):
        documents = before
        for settings in changes:
            documents = prepared(documents, settings)
        spec, text = documents[0], original
        if (not keep_caching and disable_caching(list(tasks_of(spec)))) or documents != before:
            text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=True).encode()
        return Pipeline(
            name=str(spec["pipelineInfo"]["name"]),
            inputs=inputs_of(str(path), spec),
            package=text,
            original=original,
            steps=len(spec["root"].get("dag", {}).get("tasks", {})),
        )


def read_ir(path: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """A compiled pipeline's bytes and its YAML documents: the pipeline spec, then the platform spec if there is one.

    Raises:
        ConfigError: no such file, or not compiled IR.
    """
    with reading.readable(f"the pipeline file {path}", HINT):
        text = reading.read_bytes(path)
    if path.suffix == ".py":
        raise ConfigError(f"{path} is Python source, not a compiled pipeline", HINT)
    try:
        documents = [each for each in reading.parse_yaml(text, path) if each is not None]
    except ConfigError as error:
        raise ConfigError(f"{error.message}, so not a compiled pipeline", HINT) from error
    spec = documents[0] if documents else None
    if not _is_ir(spec):
        found = " (it is an Argo Workflow, the output of KFP v1)" if _is_argo(spec) else ""
        raise ConfigError(f"{path} is not a compiled pipeline{found}", HINT)
    for number, each in enumerate(documents[1:], 2):
        if not _is_platform(each):
            raise ConfigError(f"{path}, document {number} is not a platform spec, as kfp-kubernetes makes them", HINT)
    return text, documents


def _is_ir(spec: object) -> bool:
    if not isinstance(spec, dict) or not isinstance(spec.get("root"), dict):
        return False
    return isinstance(spec.get("pipelineInfo"), dict) and "name" in spec["pipelineInfo"]


def _is_platform(document: object) -> bool:
    node: Any = document if isinstance(document, dict) and "platforms" in document else None
    for key in PLATFORM_PATH:
        if not isinstance(node, dict):
            return False
        node = node.get(key) or {}
    return isinstance(node, dict) and all(isinstance(each, dict) for each in node.values())


def _is_argo(spec: object) -> bool:
    return isinstance(spec, dict) and str(spec.get("apiVersion", "")).startswith("argoproj.io/")


def inputs_of(where: str, spec: Mapping[str, Any]) -> tuple[Input, ...]:
    """The parameters of a compiled pipeline; `where` names the pipeline in errors.

    Raises:
        ConfigError: it needs artifacts as inputs, which a scenario can't hold, or declares a parameter wrongly.
    """
    with reading.structured(where, HINT):
        definitions = spec.get("root", {}).get("inputDefinitions") or {}
        artifacts = [
            name for name, given in (definitions.get("artifacts") or {}).items() if not given.get("isOptional")
        ]
        if artifacts:
            needed = f"{'artifacts' if len(artifacts) > 1 else 'an artifact'} as input: {', '.join(artifacts)}"
            raise ConfigError(
                f"{where} needs {needed}",
                "scenarios hold values, not artifacts: pass a URI and import it in the pipeline with dsl.importer",
            )
        parameters = (definitions.get("parameters") or {}).items()
        return tuple(_input(where, str(name), given) for name, given in parameters if not _is_filled_in(given))


def _is_filled_in(given: Mapping[str, Any]) -> bool:
    """Whether the platform gives the value."""
    return str(given.get("parameterType")).startswith("TASK_")


def _input(where: str, name: str, given: Mapping[str, Any]) -> Input:
    kind = _OLD_TYPES.get(str(given.get("type"))) or given.get("parameterType", "STRING")
    if kind not in set(InputType):
        types = f"types are: {', '.join(InputType)}"
        raise ConfigError(f"{where}: the pipeline's input '{name}' has the unknown type {kind}", types)
    wanted = InputType(kind)
    required = not given.get("isOptional") and "defaultValue" not in given
    try:
        default = _value(given["defaultValue"], wanted) if "defaultValue" in given else None
        choices = tuple(as_cell(_value(each, wanted)) for each in given.get("literals") or ())
    except ValueError:
        what = f"the default of the pipeline's input '{name}' is not {wanted.wording}"
        raise ConfigError(f"{where}: {what}", "compile the pipeline again") from None
    # KFP reads parameters into google.protobuf.Value, whose numbers are doubles.
    return Input(name, wanted, required, default, as_double=True, choices=choices)


def _value(given: Any, kind: InputType) -> object:
    """A value of the IR, which keeps every number as a double, as one of its type; one that is hidden as it is."""
    if given == HIDDEN:
        return given
    return typed(as_cell(int(given) if kind is InputType.INTEGER else given), kind)


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """Compiled IR without the values of hidden parameters: neither their defaults nor constants passed to tasks."""
    documents = [redaction.clean_tree(each) for each in reading.parse_yaml(document, "the pipeline")]
    for each in documents:
        _hide_parameters(each, redaction.names)
    return yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=True).encode()


def _hide_parameters(node: Any, names: Collection[str]) -> None:
    if isinstance(node, list):
        for each in node:
            _hide_parameters(each, names)
    for key, below in node.items() if isinstance(node, dict) else ():
        if key in _PARAMETERS and isinstance(below, dict):
            below.update({name: _hidden(given) for name, given in below.items() if name in names})
        else:
            _hide_parameters(below, names)


def _hidden(given: Any) -> Any:
    if not isinstance(given, dict) or not given.keys() & _IR_KEYS:
        return HIDDEN
    return {**given, **dict.fromkeys(given.keys() & {"defaultValue", "runtimeValue"}, HIDDEN)}

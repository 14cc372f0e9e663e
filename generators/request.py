"""Resolves the command line to a spec: given, inferred, or both."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from generators.inference.draft import Draft
from generators.inference.parameter import Parameters
from generators.sources import Sources, table_of
from generators.spec import Spec, default_spec, read_spec
from harness.documents import Document, read_yaml
from harness.targets.scenarios import KEYS

_HEAD = "# A scenario spec; see docs/scenarios.md. Hidden fields are used by others and not written.\n"


@dataclass(frozen=True, slots=True)
class Request:
    """A spec and its origin: `document` is the spec as plain values; `parameters` are those of the target, if any."""

    spec: Spec
    document: Mapping[str, Any]
    sources: Sources
    notes: tuple[str, ...] = ()
    default_rows: int | None = None
    parameters: Parameters | None = None

    def as_yaml(self) -> str:
        """The spec as YAML that a user can edit."""
        body: str = yaml.safe_dump(
            dict(self.document), sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
        )
        return _HEAD + body


@dataclass(frozen=True, slots=True)
class _Inferred:
    """A draft, the file it was inferred from, and the parameters if that describes a target."""

    draft: Draft
    source: Path
    sources: Sources
    default_rows: int | None = None
    parameters: Parameters | None = None


def resolve(options: argparse.Namespace) -> Request:
    """The spec that the options name.

    Raises:
        ConfigError: a file can't be read, or its content is invalid.
    """
    given = _given(options.spec)
    inferred = _inferred(options)
    if inferred is None:
        if given is not None:
            return Request(read_spec(given), given.data, Sources())
        return Request(default_spec(), read_yaml(Path(__file__).parent / "default.scenario.yaml").data, Sources())
    merged = _merged(inferred, given)
    document = (
        Document(merged, given.source, given.lines, given.folder) if given else Document(merged, str(inferred.source))
    )
    return Request(
        read_spec(document),
        merged,
        inferred.sources,
        tuple(inferred.draft.notes),
        inferred.default_rows,
        inferred.parameters,
    )


def _given(path: Path | None) -> Document | None:
    if path is None:
        return None
    from generators.schema import validate

    document = read_yaml(path)
    validate(document)
    return document


def _inferred(options: argparse.Namespace) -> _Inferred | None:
    if target := options.from_pipeline or options.from_workflow_template:
        from generators.inference import argo, pipeline
        from generators.inference.parameter import draft_of

        read = pipeline.read_pipeline if options.from_pipeline else argo.read_workflow_template
        parameters = read(target)
        return _Inferred(draft_of(parameters), target, Sources(), parameters=parameters)
    if options.from_workflow is not None:
        from generators.inference.workflow import read_workflow

        parameters, draft = read_workflow(options.from_workflow)
        return _Inferred(draft, options.from_workflow, Sources(), parameters=parameters)
    if options.from_csv is not None:
        from generators.inference.sample import draft_from, read_sample

        header, rows = read_sample(options.from_csv)
        return _Inferred(draft_from(header, rows, options.from_csv), options.from_csv, Sources())
    return _from_run(options) if options.from_run is not None else None


def _from_run(options: argparse.Namespace) -> _Inferred:
    from generators.inference.recorded import read_recorded, replayed, scenarios_of
    from generators.inference.sample import draft_from

    header, rows = read_recorded(options.from_run)
    file = scenarios_of(options.from_run)
    if options.write_spec is not None:
        return _Inferred(draft_from(header, rows, file), file, Sources(), len(rows))
    wanted = options.n or len(rows)
    sources = Sources()
    # The scenarios that arrived, in order, replace the file, which may have rows that never arrived.
    sources.adopt(file, table_of(header, [list(row.values()) for row in rows]))
    return _Inferred(replayed(options.from_run, header, len(rows), wanted), file, sources, len(rows))


def _merged(inferred: _Inferred, given: Document | None) -> dict[str, Any]:
    """The inferred spec, overridden by the user's; the columns remain those of the target."""
    data = inferred.draft.document()
    if given is None:
        return data
    fields = dict(data["fields"])
    known = {*inferred.draft.columns, *KEYS}
    for name, definition in given.data["fields"].items():
        hidden = isinstance(definition, Mapping) and definition.get("hidden")
        if inferred.parameters is not None and name not in known and not hidden:
            raise given.error(
                ("fields", str(name)),
                f"{inferred.parameters.source} has no input of this name, so it can't be a column",
                f"inputs are: {', '.join(inferred.draft.columns)}; add `hidden: true` if other fields use it",
            )
        fields[name] = definition
    return {**{key: value for key, value in given.data.items() if key != "fields"}, "fields": fields}

"""What the command line asks for, resolved to a spec: given, inferred, or both."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from generators.document import Document, read_yaml
from generators.inference.draft import Draft
from generators.sources import Sources
from generators.spec import Spec, default_spec, read_spec


@dataclass(frozen=True, slots=True)
class Request:
    """A spec and where it came from; `document` is the spec as plain values, `pipeline` the one it was inferred from."""

    spec: Spec
    document: Mapping[str, Any]
    sources: Sources
    notes: tuple[str, ...] = ()
    default_rows: int | None = None
    pipeline: Any = None
    given: Document | None = field(default=None)

    def as_yaml(self) -> str:
        """The spec as a file that a user can edit."""
        head = "# A scenario spec; see docs/scenarios.md. Fields that are hidden serve others and are not written.\n"
        body: str = yaml.safe_dump(
            dict(self.document), sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
        )
        return head + body


def resolve(options: argparse.Namespace) -> Request:
    """The spec that the options name.

    Raises:
        ConfigError: a file can't be read, or what it says can't work.
    """
    given = None
    if options.spec is not None:
        from generators.schema import validate

        given = read_yaml(options.spec)
        validate(given)
    inferred = _inferred(options)
    if inferred is None:
        if given is None:
            document = _packaged()
            return Request(default_spec(), document.data, Sources())
        return Request(read_spec(given), given.data, Sources(), given=given)
    draft, source, extra = inferred
    data = draft.document()
    merged = _merged(data, given, draft)
    origin = given.source if given else source
    document = Document(merged, origin, given.lines if given else {}, given.folder if given else Path())
    return Request(read_spec(document), merged, Sources(), tuple(draft.notes), given=given, **extra)


def _packaged() -> Document:
    return read_yaml(Path(__file__).parent / "default.scenario.yaml")


def _inferred(options: argparse.Namespace) -> tuple[Draft, str, dict[str, Any]] | None:
    if options.from_pipeline is not None:
        from generators.inference.pipeline import draft_of, read_pipeline

        pipeline = read_pipeline(options.from_pipeline)
        return draft_of(pipeline), str(options.from_pipeline), {"pipeline": pipeline}
    return None


def _merged(data: dict[str, Any], given: Document | None, draft: Draft) -> dict[str, Any]:
    """What was inferred, overridden by what the user's spec says; the columns stay those of the pipeline."""
    if given is None:
        return data
    fields = dict(data["fields"])
    for name, definition in given.data["fields"].items():
        hidden = isinstance(definition, Mapping) and definition.get("hidden")
        if name not in draft.columns and not hidden:
            raise given.error(
                ("fields", str(name)),
                "not an input of the pipeline, so it can't be a column",
                f"inputs are: {', '.join(draft.columns)}; write `hidden: true` when other fields use it",
            )
        fields[name] = definition
    return {**{key: value for key, value in given.data.items() if key != "fields"}, "fields": fields}

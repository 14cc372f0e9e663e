"""A scenario spec: the checked fields of a scenario, and the order in which to draw them."""

import difflib
import graphlib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from generators.kinds import Kind, kinds
from generators.kinds.derived import Conditional
from harness.documents import Document, Place, parse_yaml

# The keys that the definition of every kind may have.
OPTIONS = frozenset({"nullable", "hidden", "correlation", "unique", "description"})
_WITHOUT_MAIN = ("sequence", "uuid", "boolean")
_MAPPING_IS_MAIN = ("choice", "json")


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `rank` is Spearman's correlation with the field `correlated_with`; a `hidden` one is not written."""

    name: str
    kind: Kind
    nullable: float = 0.0
    unique: bool = False
    hidden: bool = False
    correlated_with: str | None = None
    rank: float = 0.0


@dataclass(frozen=True, slots=True)
class Spec:
    """Fields in the order of the file's columns; `order` lists their names so that each follows its inputs."""

    fields: tuple[Field, ...]
    order: tuple[str, ...]
    digest: str
    source: str = ""
    seed: int | None = None
    rows: int | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns that are written."""
        return [field.name for field in self.fields if not field.hidden]

    @property
    def sequential(self) -> bool:
        """Whether a row depends on earlier rows, so that blocks can't be drawn in parallel."""
        return any(field.unique and not _unique_by_itself(field.kind) for field in self.fields)


def _unique_by_itself(kind: Kind) -> bool:
    return getattr(kind, "unique", False) or type(kind).__name__ in {"Sequence", "Uuid"}


def default_spec() -> Spec:
    """The built-in spec of training scenarios, used when none is given."""
    path = Path(__file__).parent / "default.scenario.yaml"
    return read_spec(parse_yaml(path.read_text(encoding="utf-8"), path.name, path.parent))


def read_spec(document: Document) -> Spec:
    """The spec of a document that has passed `validate`.

    Raises:
        ConfigError: a field is invalid, or fields contradict each other.
    """
    place = Place(document, ("fields",))
    fields = {
        str(name): _read_field(str(name), raw, place / str(name)) for name, raw in document.data["fields"].items()
    }
    for name, definition in (("id", "sequence"), ("scenario_name", {"template": "scenario-{id}"})):
        if name not in fields:
            fields[name] = _read_field(name, definition, place)
    first = [fields[name] for name in ("id", "scenario_name")]
    ordered = tuple(first + [field for name, field in fields.items() if name not in {"id", "scenario_name"}])
    _check_references(fields, place)
    _check_correlations(fields, place)
    return Spec(
        ordered,
        _drawing_order(fields, place),
        hashlib.sha256(orjson.dumps(document.data, default=str, option=orjson.OPT_NON_STR_KEYS)).hexdigest(),
        document.source,
        document.data.get("seed"),
        document.data.get("rows"),
    )


def _read_field(name: str, raw: object, place: Place) -> Field:
    if not name or name != name.strip() or any(ord(character) < 32 for character in name):
        raise place.error(f"'{name}' can't be the name of a column", "use letters, digits and _")
    kind, options = read_kind(raw, place)
    correlation = options.get("correlation") or {}
    return Field(
        name,
        kind,
        float(options.get("nullable", 0.0)),
        bool(options.get("unique", False)),
        bool(options.get("hidden", False)),
        correlation.get("with"),
        float(correlation.get("rank", 0.0)),
    )


def read_kind(raw: object, place: Place) -> tuple[Kind, Mapping[str, Any]]:
    """The kind that a definition describes, in the long, short or conditional form, and its options.

    Raises:
        ConfigError: the kind is unknown, or its keys are invalid.
    """
    from generators.schema import check_definition

    if isinstance(raw, Mapping) and "by" in raw:
        return _read_conditional(raw, place)
    name, definition = _normalised(raw, place)
    if name in definition and name != kinds()[name].main:
        raise (place / name).error(f"{name} names the kind again", f"write {{{name}: VALUE}}")
    check_definition(name, definition, place)
    return kinds()[name].read(definition, place), definition


def read_inner(raw: object, place: Place) -> tuple[Kind, float]:
    """The kind of a value inside another field, and the probability that it is missing.

    Raises:
        ConfigError: it has an option that only a field can have.
    """
    kind, options = read_kind(raw, place)
    for option in ("unique", "correlation", "hidden"):
        if option in options:
            raise (place / option).error(f"{option} applies to fields, not to values in them", "make it a hidden field")
    return kind, float(options.get("nullable", 0.0))


def _normalised(raw: object, place: Place) -> tuple[str, dict[str, Any]]:
    known = kinds()
    if isinstance(raw, str) and raw in _WITHOUT_MAIN:
        return raw, {}
    if not isinstance(raw, Mapping):
        raise place.error(
            f"{raw!r} is not a definition", "write {kind: value}, such as {integer: [1, 10]} or {faker: name}"
        )
    definition = {str(key): value for key, value in raw.items()}
    if "kind" in definition:
        name = str(definition.pop("kind"))
        if name not in known:
            raise (place / "kind").error(f"unknown kind '{name}'", _suggestion(name, known, "kinds"))
        return name, definition
    named = [key for key in definition if key in known]
    if len(named) != 1:
        unknown = [key for key in definition if key not in known and key not in OPTIONS]
        problem = f"unknown kind '{unknown[0]}'" if not named and unknown else "name exactly one kind"
        raise place.error(problem, _suggestion(unknown[0] if unknown else "", known, "kinds"))
    name = named[0]
    value = definition.pop(name)
    if isinstance(value, Mapping) and (name not in _MAPPING_IS_MAIN or (name == "choice" and "values" in value)):
        definition |= {str(key): item for key, item in value.items()}
    elif value is not None or name == "json":
        definition[known[name].main] = value
    return name, definition


def _read_conditional(raw: Mapping[str, Any], place: Place) -> tuple[Kind, Mapping[str, Any]]:
    from generators.schema import check_definition

    check_definition("by", dict(raw), place)
    cases = {}
    for key, case in raw["cases"].items():
        text = {True: "true", False: "false"}.get(key, str(key)) if isinstance(key, bool) else str(key)
        cases[text] = _read_case(case, place / "cases" / str(key))
    otherwise = _read_case(raw["otherwise"], place / "otherwise") if "otherwise" in raw else None
    return Conditional(str(raw["by"]), cases, otherwise), raw


def _read_case(raw: object, place: Place) -> Kind:
    kind, nullable = read_inner(raw, place)
    if nullable:
        raise (place / "nullable").error("a case can't be nullable", "put nullable next to `by`")
    return kind


def _check_references(fields: Mapping[str, Field], place: Place) -> None:
    for field in fields.values():
        wanted = field.kind.inputs() | ({field.correlated_with} if field.correlated_with else set())
        for name in sorted(wanted - fields.keys()):
            raise (place / field.name).error(f"unknown field '{name}'", _suggestion(name, fields, "fields"))
        if field.unique and field.kind.derived and not field.kind.inputs():
            raise (place / field.name).error("it is the same in every row, so it can't be unique", "drop `unique`")


def _check_correlations(fields: Mapping[str, Field], place: Place) -> None:
    for field in fields.values():
        if field.correlated_with is None:
            continue
        here = place / field.name / "correlation"
        for end in (field, fields[field.correlated_with]):
            if not end.kind.monotone or end.unique:
                raise here.error(
                    f"{end.name} can't be correlated",
                    "both fields must be uniform, normal, lognormal, integer, zipf or datetime, and not unique",
                )
        seen = {field.name}
        at = fields[field.correlated_with]
        while at.correlated_with:
            if at.name in seen:
                raise here.error("the correlation is circular", "correlate fields in a chain")
            seen.add(at.name)
            at = fields[at.correlated_with]


def _drawing_order(fields: Mapping[str, Field], place: Place) -> tuple[str, ...]:
    try:
        return tuple(
            graphlib.TopologicalSorter({f.name: sorted(f.kind.inputs()) for f in fields.values()}).static_order()
        )
    except graphlib.CycleError as error:
        ring = list(reversed(error.args[1]))
        raise (place / ring[0]).error(
            f"circular reference: {' needs '.join(ring)}", "make one of these fields independent"
        ) from error


def _suggestion(name: str, known: Iterable[str], what: str) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else f"{what} are: {', '.join(sorted(known))}"

"""Label and field selectors, in the grammar of a real server.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from dataclasses import dataclass

from harness.model.cluster import Requirement
from harness.simulator.kube_api.errors import bad_request
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.store import ObjectVersion

_WORD = r"[^\s=!(),<>]+"
_TERM = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_WORD})|(?P<key>{_WORD})"
    rf"(?:\s*(?P<sign>==|!=|=|<|>)\s*(?P<value>(?:{_WORD})?)|\s+(?P<within>in|notin)\s*\((?P<listed>[^()=!<>]*)\))?)"
    r"\s*(?P<end>,|$)"
)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested objects of one type: namespace ("" for all), labels, fields."""

    resource: Resource
    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether there are label or field conditions."""
        return bool(self.labels or self.fields)

    def matches(self, version: ObjectVersion) -> bool:
        """Whether this version of the object is selected."""
        if self.namespace and version.namespace != self.namespace:
            return False
        if self.fields:
            fields = {**dict.fromkeys(self.resource.selectable, ""), **self.resource.fields(version.snapshot)}
            if not all(field.met_by(fields) for field in self.fields):
                return False
        if self.labels:
            labels = self.resource.labels(version.snapshot)
            return all(label.met_by(labels) for label in self.labels)
        return True


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The conditions of a label selector such as ``app=x,tier in (a, b),!old,cpus>4``.

    Raises:
        ApiError: 400.
    """
    found, at, follows = [], 0, bool(text.strip())
    while follows:
        term = _TERM.match(text, at)
        requirement = _requirement(term) if term is not None else None
        if term is None or requirement is None:
            raise bad_request(f"unable to parse requirement: '{text[at:]}' in '{text}'")
        found.append(requirement)
        at, follows = term.end(), term["end"] == ","
    return tuple(found)


def _requirement(term: re.Match[str]) -> Requirement | None:
    """The condition of one term; none where its key or a value can't be one."""
    key = term["absent"] or term["key"]
    if not _NAME.fullmatch(key.rpartition("/")[2]):
        return None
    sign = term["sign"] or term["within"]
    if sign is None:
        return Requirement(key, "DoesNotExist" if term["absent"] else "Exists")
    values = tuple(part.strip() for part in (term["listed"] if term["within"] else term["value"]).split(","))
    if not all(_NAME.fullmatch(value) for value in values if value):
        return None
    if sign in ("<", ">"):
        numbers = all(re.fullmatch(r"[+-]?\d+", value) for value in values)
        return Requirement(key, "Gt" if sign == ">" else "Lt", values) if numbers else None
    return Requirement(key, "NotIn" if sign in ("!=", "notin") else "In", values)


def parse_fields(text: str, supported: tuple[str, ...]) -> tuple[Requirement, ...]:
    r"""The conditions of a field selector such as ``spec.nodeName=n,status.phase!=Failed``.

    A ``\`` escapes a ``,`` or ``=`` in a value.

    Raises:
        ApiError: 400: malformed, or a field that is not `supported`.
    """
    requirements = []
    for term in re.split(r"(?<!\\),", text):
        if not term:
            continue
        match = re.fullmatch(r"((?:\\.|[^\\=!])*?)(!=|==|=)(.*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        field, operator, value = match.groups()
        if field not in supported:
            raise bad_request(f"field label not supported: {field}")
        requirements.append(
            Requirement(field, "NotIn" if operator == "!=" else "In", (re.sub(r"\\(.)", r"\1", value),))
        )
    return tuple(requirements)

"""Label and field selectors: the grammar and the error messages of a real server.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.simulator.kube_api.errors import bad_request
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.store import ObjectVersion

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = frozenset({"==", "!=", "=", "<", ">", "in", "notin"})
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_RULE = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. {examples}, regex used for validation is '{pattern}')"
)
_KEY_RULE = "name part must " + _RULE.format(
    examples="'MyName',  or 'my.name',  or '123-abc'", pattern="([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
)
_VALUE_RULE = "a valid label must be an empty string or " + _RULE.format(
    examples="'MyValue',  or 'my_value',  or '12345'", pattern="(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label: `operator` is in, notin, exists, !, > or <."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels passes."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        try:
            number = int(value)
        except ValueError:
            return False
        bound = int(next(iter(self.values)))
        return number > bound if self.operator == ">" else number < bound


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on a field: equal, or not."""

    field: str
    equal: bool
    value: str

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields passes."""
        return (fields.get(self.field, "") == self.value) == self.equal


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested objects of one type: namespace ("" for all), labels, fields."""

    resource: Resource
    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether there are label or field conditions."""
        return bool(self.labels or self.fields)

    def matches(self, version: ObjectVersion) -> bool:
        """Whether this version of the object is selected."""
        if self.namespace and version.namespace != self.namespace:
            return False
        if self.fields:
            fields = self.resource.fields(version.snapshot)
            if not all(each.matches(fields) for each in self.fields):
                return False
        if self.labels:
            labels = self.resource.labels(version.snapshot)
            return all(each.matches(labels) for each in self.labels)
        return True


class _Parser:
    """Parses one label selector from left to right; the end is an empty token."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self._at += 1
        return token

    def selector(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        if not self.peek():
            return ()
        if self.peek() in _SYMBOLS - {"!"}:
            raise bad_request(f"found '{self.peek()}', expected: !, identifier, or 'end of string'")
        while True:
            requirements.append(self._requirement())
            following = self.take()
            if not following:
                return tuple(requirements)
            if following != ",":
                raise bad_request(f"found '{following}', expected: ',' or 'end of string'")
            if not self.peek() or self.peek() in _SYMBOLS - {"!"}:
                raise bad_request(f"found '{self.peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if not key or key in _SYMBOLS:
            raise _refused(f"found '{key}', expected: identifier")
        _check_key(key)
        if self.peek() in ("", ","):
            return Requirement(key, "!" if absent else "exists")
        if absent:
            return Requirement(key, "!")  # anything but a comma is refused next
        operator = self.take()
        if operator not in _OPERATORS:
            raise _refused(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._value_list() if operator in ("in", "notin") else frozenset({self._value()})
        return _checked(key, operator, values)

    def _value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        value = self.take()
        if value in _SYMBOLS:
            raise _refused(f"found '{value}', expected: identifier")
        return value

    def _value_list(self) -> frozenset[str]:
        opening = self.take()
        if opening != "(":
            raise _refused(f"found '{opening}' expected: '('")
        values: set[str] = set()
        while True:
            # Nothing between commas is the empty value.
            values.add("" if self.peek() in (",", ")") else self._listed_value())
            following = self.take()
            if following == ")":
                return frozenset(values)
            if following != ",":
                raise _refused(f"found '{following}', expected: ',' or ')'")

    def _listed_value(self) -> str:
        value = self.take()
        if not value or value in _SYMBOLS:
            raise _refused(f"found '{value}', expected: ',', ')' or identifier")
        return value


def _refused(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


def _check_key(key: str) -> None:
    name = key.rpartition("/")[2]
    if not _NAME.fullmatch(name):
        raise _refused(f'<nil>: Invalid value: "{key}": {_KEY_RULE}')


def _checked(key: str, operator: str, values: frozenset[str]) -> Requirement:
    if operator in ("<", ">"):
        for value in values:
            if not re.fullmatch(r"[+-]?\d+", value):
                why = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _refused(f'values[0]: Invalid value: "{value}": {why}')
        return Requirement(key, operator, values)
    for index, value in enumerate(sorted(values)):
        if value and not _NAME.fullmatch(value):
            raise _refused(f'values[{index}][{key}]: Invalid value: "{value}": {_VALUE_RULE}')
    return Requirement(key, "notin" if operator in ("!=", "notin") else "in", values)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The conditions of a label selector such as ``app=x,tier in (a, b),!old,cpus>4``.

    Raises:
        ApiError: 400, with the message of a real server.
    """
    return _Parser(text).selector()


def parse_fields(text: str, supported: tuple[str, ...]) -> tuple[FieldRequirement, ...]:
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
        requirements.append(FieldRequirement(field, operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return tuple(requirements)

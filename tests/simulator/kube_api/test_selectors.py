"""Selectors: what they select, and what is said of those that can't be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.selectors import parse_fields, parse_labels

LABELS = {"app": "x", "cpus": "8", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("app=x", True),
        ("app==x", True),
        ("app=y", False),
        ("app!=y", True),
        ("app!=x", False),
        ("none!=x", True),  # an absent label differs from every value
        ("none=", False),
        ("empty=", True),
        ("app in (x,y)", True),
        ("app in (y, z)", False),
        ("none in (x)", False),
        ("app notin (y)", True),
        ("none notin (x)", True),
        ("empty in ()", True),
        ("empty in (a,)", True),
        ("app", True),
        ("none", False),
        ("!none", True),
        ("! app", False),
        ("cpus>4", True),
        ("cpus > 8", False),
        ("cpus<9,app=x", True),
        ("app>4", False),  # not a number
        ("none>4", False),
        ("app=x,cpus=9", False),
        ("in in (x)", False),  # operators may be keys
    ],
)
def test_a_label_selector_selects(selector: str, selected: bool) -> None:
    assert all(each.met_by(LABELS) for each in parse_labels(selector)) is selected


@pytest.mark.parametrize(
    "selector",
    [
        "a b", "a in x", "a in (x", "==x", "a===b", "-a", "a=-b", "!a!", "a>x", ",", "a,,b", "a,", "a in (b c)", "(",
        "a=b=c", "a notin b",
    ],
)  # fmt: skip
def test_a_malformed_label_selector_is_refused(selector: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement") as refusal:
        parse_labels(selector)
    assert refusal.value.code == 400


@given(st.text(alphabet="ab=!(), <>-in", max_size=15))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        requirements = parse_labels(text)
    except ApiError as refusal:
        code = refusal.code
    else:
        code = 200
        assert all(isinstance(each.met_by({"a": "b"}), bool) for each in requirements)
    assert code in (200, 400)


_names = st.text(alphabet="abc", min_size=1, max_size=3)


@given(st.dictionaries(_names, _names, max_size=3), _names, st.lists(_names, min_size=1, max_size=3))
def test_in_and_notin_divide_all_objects(labels: dict[str, str], key: str, values: list[str]) -> None:
    listed = ",".join(values)
    (inside,) = parse_labels(f"{key} in ({listed})")
    (outside,) = parse_labels(f"{key} notin ({listed})")
    assert inside.met_by(labels) != outside.met_by(labels)
    assert inside.met_by(labels) == any(parse_labels(f"{key}={value}")[0].met_by(labels) for value in values)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("status.phase=Running", True),
        ("status.phase==Running", True),
        ("status.phase!=Running", False),
        ("status.phase!=Failed,metadata.name=a", True),
        ("metadata.name=", False),
        ("spec.nodeName=", True),  # not placed
        (r"reason=a\,b\=c", True),
        ("", True),
    ],
)
def test_a_field_selector_selects(selector: str, selected: bool) -> None:
    fields = {"metadata.name": "a", "status.phase": "Running", "reason": "a,b=c", "spec.nodeName": ""}
    supported = ("metadata.name", "status.phase", "spec.nodeName", "reason")
    assert all(each.met_by(fields) for each in parse_fields(selector, supported)) is selected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("foo=bar", "field label not supported: foo"),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name=a,x>5", "invalid selector: 'metadata.name=a,x>5'; can't understand 'x>5'"),
    ],
)
def test_a_malformed_field_selector_gets_the_error_of_a_real_server(selector: str, message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        parse_fields(selector, ("metadata.name",))
    assert refusal.value.message == message

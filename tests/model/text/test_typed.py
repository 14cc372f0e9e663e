"""Plain values become dataclasses, or an error says which field is not of its type."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from harness.model.text.typed import from_plain


@dataclass(frozen=True)
class Part:
    size: int
    name: str = "part"


@dataclass(frozen=True)
class Whole:
    ratio: float
    flag: bool = False
    note: str | None = None
    parts: tuple[Part, ...] = ()
    pair: tuple[str, int] = ("", 0)
    counts: Mapping[str, int] = field(default_factory=dict)
    anything: object = None


def test_lists_become_tuples_and_mappings_dataclasses():
    raw = {
        "ratio": 2, "flag": True, "note": "x", "parts": [{"size": 1}, {"size": 2, "name": "b"}], "pair": ["a", 3],
        "counts": {"a": 1}, "anything": [1, {"b": 2}], "of a newer version": 5,
    }  # fmt: skip
    assert from_plain(Whole, raw) == Whole(
        2, True, "x", (Part(1), Part(2, "b")), ("a", 3), {"a": 1}, [1, {"b": 2}]
    )  # fmt: skip


def test_what_is_missing_has_its_default():
    assert from_plain(Whole, {"ratio": 0.5}) == Whole(0.5)
    assert from_plain(Whole, {"ratio": 0.5, "note": None}).note is None


def test_a_value_that_is_made_already_stays():
    part = Part(1)
    assert from_plain(Whole, {"ratio": 1.0, "parts": (part,)}).parts[0] is part


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([], "it is not a mapping"),
        ({}, "'ratio' is missing"),
        ({"ratio": "1"}, "'ratio' is '1', not a number"),
        ({"ratio": True}, "'ratio' is True, not a number"),
        ({"ratio": 1, "flag": 1}, "'flag' is 1, not true or false"),
        ({"ratio": 1, "note": 5}, "'note' is 5, not a text"),
        ({"ratio": 1, "parts": 5}, "'parts' is 5, not a list"),
        ({"ratio": 1, "parts": [5]}, "'parts[0]' is 5, not a mapping"),
        ({"ratio": 1, "parts": [{"size": 1}, {}]}, "'parts[1].size' is missing"),
        ({"ratio": 1, "parts": [{"size": True}]}, "'parts[0].size' is True, not a whole number"),
        ({"ratio": 1, "parts": [{"size": 1.5}]}, "'parts[0].size' is 1.5, not a whole number"),
        ({"ratio": 1, "pair": ["a"]}, "'pair' is ['a'], not a list of 2"),
        ({"ratio": 1, "pair": ["a", "b"]}, "'pair[1]' is 'b', not a whole number"),
        ({"ratio": 1, "counts": [1]}, "'counts' is [1], not a mapping"),
        ({"ratio": 1, "counts": {1: 1}}, "'counts' is {1: 1}, not a mapping"),
        ({"ratio": 1, "counts": {"a": "b"}}, "'counts.a' is 'b', not a whole number"),
        ({"ratio": "x" * 58}, f"'ratio' is '{'x' * 58}', not a number"),
        ({"ratio": "x" * 59}, f"'ratio' is '{'x' * 56}…, not a number"),
    ],
)
def test_another_value_is_refused_with_its_place(raw, said):
    with pytest.raises(TypeError) as refused:
        from_plain(Whole, raw)
    assert str(refused.value) == said


def test_places_begin_where_the_caller_says():
    with pytest.raises(TypeError, match=r"^'plan\.ratio' is missing$"):
        from_plain(Whole, {}, "plan")
    with pytest.raises(TypeError, match=r"^'plan' is 5, not a mapping$"):
        from_plain(Whole, 5, "plan")

"""Conditions of pipelines as expressions: their meaning, and draws for unknown values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.workflows.parameters import Computed, Condition, Given, Known, Source


def evaluate(text: str, **known: object) -> bool:
    names: dict[str, Source] = {name: Known(value) for name, value in known.items()}

    def read(source: Source) -> object:
        assert isinstance(source, Known)
        return source.value

    def draw(key: object) -> bool:
        raise AssertionError(f"{key} should be known")

    return Condition(text, names).holds(read, draw)


def x(sign: str, other: str) -> str:
    return f"inputs.parameter_values['x'] {sign} {other}"


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        (x("==", "'a'"), "a", True),
        (x("==", "'a'"), "b", False),
        (x("!=", "'a'"), "b", True),
        (x("==", "true"), True, True),
        (x("==", "true"), 1, False),
        (x(">", "0.3"), 0.5, True),
        (x("<=", "-1"), -1.0, True),
        ("int(inputs.parameter_values['x']) > 2", "3", True),
        ("int(inputs.parameter_values['x']) > 2", 2.0, False),
        ("double(inputs.parameter_values['x']) == 2.5", "2.5", True),
        ("string(inputs.parameter_values['x']) == '2'", 2, True),
        (f"!({x('==', chr(39) + 'a' + chr(39))})", "a", False),
        (f"{x('==', '1')} || {x('==', '2')} && {x('==', '3')}", 1, True),  # && binds tighter
        (f"({x('==', '1')} || {x('==', '2')}) && {x('==', '3')}", 1, False),
        (x("==", r"'it\'s'"), "it's", True),
        (x("==", "null"), None, True),
    ],
)
def test_an_expression_has_its_meaning_in_cel(text: str, value: object, *, holds: bool) -> None:
    assert evaluate(text, x=value) is holds


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_numbers_are_compared_as_numbers(one: int, other: int) -> None:
    assert evaluate(x(">=", str(other)), x=one) == (one >= other)
    assert evaluate(f"!({x('<', str(other))})", x=float(one)) == (one >= other)


def unknown(_: Source) -> object:
    raise LookupError


@given(st.dictionaries(st.integers(0, 1), st.booleans(), min_size=2))
def test_exactly_one_branch_of_if_elif_else_over_an_unknown_value_is_taken(outcomes: dict[int, bool]) -> None:
    branches = ["{0}", "!({0}) && {1}", "!({0}) && !({1})"]
    comparisons = [x("==", "'heads'"), x("==", "'tails'")]
    drawn: dict[object, bool] = {}

    def draw(key: object) -> bool:
        if key not in drawn:
            drawn[key] = outcomes[len(drawn)]
        return drawn[key]

    source: Source = Computed(3, "Output")
    taken = [Condition(each.format(*comparisons), {"x": source}).holds(unknown, draw) for each in branches]
    assert sum(taken) == 1


@pytest.mark.parametrize("text", ["", "x in [1, 2]", x("==", ""), x("==", "'a"), "size('a') == 1", x("==", "'a') b")])
def test_an_unparsable_condition_is_drawn_as_a_whole(text: str) -> None:
    asked: list[object] = []

    def draw(key: object) -> bool:
        asked.append(key)
        return True

    assert Condition(text, {"x": Given("x")}).holds(unknown, draw)
    assert len(asked) == 1

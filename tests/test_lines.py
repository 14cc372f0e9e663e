"""How lines of code are counted, and that the total stays below its limit."""

import pytest

from tests.support.lines import LIMIT, PAGE, by_room, code_lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ("# a comment\n\n", 0),
        ('"""A docstring\nof two lines."""\nx = 1\n', 1),
        ('x = """a\nb"""\n', 1),
        ("call(\n    a,\n    b,\n)\n", 3),
        ("class A:\n    pass\n", 1),
    ],
)
def test_comments_strings_and_brackets_alone_are_no_lines(source, lines):
    assert code_lines(source) == lines


def test_every_room_is_on_the_page_and_the_total_below_the_limit():
    rooms = by_room()
    assert rooms.total() <= LIMIT
    page = PAGE.read_text(encoding="utf-8")
    assert not [room for room in rooms if f"| `{room}` |" not in page], "run make lines"

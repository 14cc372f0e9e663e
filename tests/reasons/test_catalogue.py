"""What the reader makes of the catalogue's rows."""

from harness.reasons import builtin, stated


def test_a_row_that_needs_more_than_the_text_does_not_take_it_from_the_row_that_the_text_decides():
    match = builtin().match(stated("terminated", "OOMKilled", "container main ended with exit code 137"))
    assert match.row is not None
    assert match.row.name == "oom"

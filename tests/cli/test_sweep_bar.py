"""The progress of many simulations: a bar on a terminal, now and then a line elsewhere."""

import io

import pytest

from harness.cli.sweep_bar import SweepBar


class Terminal(io.StringIO):
    """Text that a terminal would show."""

    def isatty(self):
        return True


def shown_every_4_s(out, expected, over):
    now_s = 0.0
    with SweepBar(" for this answer", out, lambda: now_s) as bar:
        bar.expect(expected)
        for _ in range(over):
            now_s += 4.0
            bar.advance()
    return out.getvalue()


def test_without_a_terminal_a_line_says_every_ten_seconds_how_long_it_takes():
    lines = shown_every_4_s(io.StringIO(), 10, 6).splitlines()
    assert lines == [
        "3 of about 10 simulations for this answer, about 28 s left",
        "6 of about 10 simulations for this answer, about 16 s left",
    ]


def test_a_short_sweep_says_nothing_without_a_terminal():
    assert shown_every_4_s(io.StringIO(), 2, 2) == ""


def test_more_than_expected_is_never_shown_as_more_than_all():
    assert shown_every_4_s(io.StringIO(), 2, 3) == "3 of about 3 simulations for this answer, about 0 s left\n"


def test_what_will_not_be_needed_is_taken_back():
    out = io.StringIO()
    bar = SweepBar("", out, iter((0.0, 0.0, 0.0, 40.0)).__next__)
    bar.expect(11)
    bar.expect(-7)
    bar.advance()
    assert out.getvalue() == "1 of about 4 simulations, about 2 min left\n"


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_a_terminal_shows_a_bar_with_the_time_left_and_lines_above_it(monkeypatch, term, drawn):
    monkeypatch.setenv("TERM", term)
    out = Terminal()
    with SweepBar("", out, lambda: 0.0) as bar:
        bar.expect(4)
        bar.advance()
        bar.say("1 of 4: [50 runs] met")
    assert "1 of 4: [50 runs] met\n" in out.getvalue()
    assert ("1 of about 4 simulations ETA" in out.getvalue()) is drawn
    assert ("\x1b" in out.getvalue()) is drawn

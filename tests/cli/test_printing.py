"""Tables on terminals of different widths, and elsewhere."""

import io
import sys

import pytest

from harness.cli import printing

ROWS = [
    ("", "p50", "p95", "node hours", "binds then"),
    ("as recorded", "30 s", "50 s", "0.5", "quota"),
    ("quota.cpu=0", "9.9 s (−69 to −64 %)", "10 s (−82 to −78 %)", "0.1 (-80%)", "the steps' own work"),
]
FOLDED = """\
             p50             p95    node
                                   hours
as recorded, binds then: quota
            30 s            50 s     0.5
quota.cpu=0, binds then: the steps' own work
           9.9 s            10 s     0.1
  (−69 to −64 %)  (−82 to −78 %)  (-80%)"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    def on(out, columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", out)
        return printing.table(ROWS, left=(0, 4))

    return on


def test_a_table_that_the_terminal_has_no_room_for_is_folded(shown):
    assert "\n".join(shown(Terminal(), 80)) == FOLDED


def test_figures_that_do_not_fit_even_so_are_named(shown):
    lines = shown(Terminal(), 36)
    assert max(map(len, lines)) <= 36
    assert lines[0] == "             p50             p95"
    assert " ".join(map(str.strip, lines[-2:])) == "No room for node hours: widen the terminal."


@pytest.mark.parametrize(("out", "columns"), [(Terminal(), 120), (io.StringIO(), 80)])
def test_a_wide_terminal_and_a_file_get_a_row_a_line(shown, out, columns):
    lines = shown(out, columns)
    assert len(lines) == len(ROWS)
    assert lines[2].endswith("0.1 (-80%)  the steps' own work")

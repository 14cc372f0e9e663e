"""The simulated platform costs what the real one was measured to cost, and the page says so."""

import re
from pathlib import Path

import pytest

from tests.support.measured import ROWS, Row, table

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
NEAR = 0.15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_a_cost_is_near_the_measured_one_or_the_page_says_why_not(row: Row) -> None:
    assert bool(row.unless) == (abs(row.off) > NEAR), f"{row.simulated():.3g} instead of {row.real:g}"


def test_the_page_shows_what_is_simulated() -> None:
    shown = re.search(r"<!-- measured:.*?-->\n(.*?)\n<!-- end -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert shown[1] == table()

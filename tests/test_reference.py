"""The pages that are generated from code say what the code says now."""

import pytest

from tests.support.e2e import ROOT
from tests.support.reference import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run: make reference"


def test_every_page_of_the_reference_is_generated():
    kept = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / "reference").iterdir()}
    assert kept == {name for name in PAGES if name.startswith("reference/")}

"""How mutants are chosen, printed and kept; mutmut itself is not run."""

from pathlib import Path

import pytest

from tests.support import mutants
from tests.support.mutants import Survivor, is_in, mirrored, record, row, set_up

MODULE = """
def x_half__mutmut_orig(number):
    return f"{number / 2} of {number}"

def x_half__mutmut_1(number):
    return f"{number * 2} of {number}"

def x_half__mutmut_2(number):
    return f"{number / 2} OF {number}"

def x_half__mutmut_3(number):
    return None

class A:
    def xǁAǁname__mutmut_orig(self):
        return self.first + "."

    def xǁAǁname__mutmut_1(self):
        return self.first - "."
"""


@pytest.mark.parametrize(
    ("target", "tests"),
    [
        ("harness/model/abort.py", "tests/model/test_abort.py"),
        ("harness/model/cluster.py", "tests/model"),
        ("harness/analysis/waits/waits.py", "tests/analysis/waits/test_waits.py"),
        ("harness/analysis/waits", "tests/analysis/waits"),
    ],
)
def test_code_is_tried_with_the_tests_that_mirror_it(target, tests):
    assert mirrored(Path(target)) == [Path(tests)]


def test_tests_that_are_added_for_a_package_hold_for_its_modules():
    assert is_in(Path("harness/model/abort.py"), "harness/model")
    assert is_in(Path("harness/model"), "harness/model")
    assert not is_in(Path("harness/models.py"), "harness/model")


@pytest.mark.parametrize(
    ("name", "diff", "wording"),
    [
        (
            "x_half__mutmut_1",
            ['-    return f"{number / 2} of {number}"', '+    return f"{number * 2} of {number}"'],
            False,
        ),
        (
            "x_half__mutmut_2",
            ['-    return f"{number / 2} of {number}"', '+    return f"{number / 2} OF {number}"'],
            True,
        ),
        ("x_half__mutmut_3", ['-    return f"{number / 2} of {number}"', "+    return None"], False),
        ("xǁAǁname__mutmut_1", ['-        return self.first + "."', '+        return self.first - "."'], False),
    ],
)
def test_a_survivor_is_printed_as_a_diff_of_its_function(tmp_path, name, diff, wording):
    place = tmp_path / "mutants" / "harness"
    place.mkdir(parents=True)
    (place / "a.py").write_text(MODULE)
    found = Survivor.read(tmp_path, f"harness.a.{name}")
    assert found.diff.splitlines() == diff
    assert found.wording is wording


def test_a_folder_has_links_to_the_code_and_settings_for_the_target(tmp_path):
    set_up(tmp_path / "folder", Path("harness/model"), [Path("tests/model")], {"also_copy": ["docs"], "debug": False})
    settings = (tmp_path / "folder" / "pyproject.toml").read_text()
    assert "only_mutate = ['harness/model/*.py']" in settings
    assert "pytest_add_cli_args_test_selection = ['tests/model']" in settings
    assert "debug = false" in settings
    assert "timeout = 180" in settings, "of pytest"
    assert (tmp_path / "folder" / "harness" / "model" / "abort.py").exists()
    assert (tmp_path / "folder" / "docs").is_symlink()


STATUSES = {"a": "killed", "b": "killed", "c": "timeout", "d": "survived", "e": "no tests", "f": "not checked"}


def test_the_score_is_of_the_tried_mutants():
    cells = [cell.strip() for cell in row(Path("harness/model"), STATUSES, 1).split("|")[1:-2]]
    assert cells == ["harness/model", "6", "5", "2", "1", "1", "1", "1", "60%"]


def test_a_score_takes_the_place_of_the_former_one(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "PAGE", tmp_path / "mutants.md")
    kinds = "\nKinds\n\n| kind | example |\n|---|---|\n| c | d |\n"
    mutants.PAGE.write_text(f"# Scores\n\n| code | score |\n|---|---|\n| a | 1 |\n{kinds}")
    for line in ("| b | 2 |\n", "| a | 3 |\n"):
        record(line)
    assert mutants.PAGE.read_text() == f"# Scores\n\n| code | score |\n|---|---|\n| a | 3 |\n| b | 2 |\n{kinds}"

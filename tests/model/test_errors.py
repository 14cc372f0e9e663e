"""What an error says, with and without advice."""

import pytest

from harness.model.errors import ConfigError, ExitCode, PipeswarmError, TargetUnreachableError


def test_an_error_says_what_is_wrong_and_what_to_do():
    error = ConfigError("no file", "give one")
    assert str(error) == "no file\n  → give one"
    assert (error.message, error.hint, error.args) == ("no file", "give one", ("no file",))
    assert (str(ConfigError("no file")), ConfigError("no file").hint) == ("no file", "")


@pytest.mark.parametrize(("kind", "code"), [(PipeswarmError, 1), (ConfigError, 2), (TargetUnreachableError, 5)])
def test_its_kind_decides_the_exit_code(kind, code):
    assert kind("x").exit_code == code


def test_every_exit_code_has_a_meaning():
    assert all(code.meaning for code in ExitCode)
    assert ExitCode(3).meaning == "SLO missed"


def test_a_name_of_megabytes_is_not_repeated_whole():
    shown = str(ConfigError(f"there is no step '{'x' * 10**6}'", "correct it"))
    assert len(shown) < 600
    assert shown.startswith("there is no step 'xxx")
    assert shown.endswith("x'\n  → correct it")

"""What the load says: inert, whoever made the text."""

import io

import pytest

from harness.drive.console import say


@pytest.mark.parametrize("said", ["warning: x\n::error::a\n", "##vso[task.complete result=Failed]\n", "a\x1b[2Jb\n"])
def test_a_text_of_the_platform_is_no_command_to_ci_or_terminal(said):
    out = io.StringIO()
    say(said, out)
    assert not any(command in out.getvalue() for command in ("\n::", "##vso[", "\x1b"))

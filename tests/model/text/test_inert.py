"""What a platform names or says can't act on a terminal, a CI log or a shell."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.text.inert import for_output, one_line, shell_word, visible

HOSTILE = [
    "\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "a\rb", "\x7f", "\u202egnp.exe", "\u2066x", "\u2028", "\ud800", "\ufeff", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_control_characters_are_shown(text):
    shown = visible(text)
    assert all(character.isprintable() for character in shown), ascii(shown)
    assert "\\u" in shown
    assert json.loads(f'"{shown}"') == text


def test_text_of_any_language_stays_as_it_is():
    text = "Zürich – 東京 ½ 😀\n\tnaïve: a::b #[x] \\u"
    assert visible(text) == for_output(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\u003a:error::x"),
        ("said\n  ::set-output name=a::b", "said\n  \\u003a:set-output name=a::b"),
        ("x ##[group]y", "x \\u0023#[group]y"),
        ("a\r\n::stop-commands::t", "a\\u000d\n\\u003a:stop-commands::t"),
        ("##vso[task.setvariable variable=a]b", "\\u0023#vso[task.setvariable variable=a]b"),
        ("x ##VSO[task.complete]", "x \\u0023#VSO[task.complete]"),
        ("##teamcity[testFailed name='a']", "\\u0023#teamcity[testFailed name='a']"),
        ("\x1b[0Ksection_start:1:a\r", "\\u001b[0Ksection_start:1:a\\u000d"),
        ("travis_fold:start:a", "\\u0074ravis_fold:start:a"),
    ],
)
def test_a_line_is_no_command_to_the_ci(text, shown):
    assert for_output(text) == shown


def test_a_json_document_means_the_same_after_it_was_made_inert():
    value = {"a": "".join(HOSTILE[:3]) + "::error::\n##[x]", "::": ["::", "##[b]"]}
    for indent in (None, 2):
        assert json.loads(for_output(json.dumps(value, ensure_ascii=False, indent=indent))) == value


def test_a_name_stays_in_its_line():
    assert one_line("a\n```\tb") == "a\\n```\\tb"


@given(
    st.text(alphabet=st.sampled_from("a-`$();|&<>'\"\\ \n\x1b*?~#!{}[]/"), max_size=30).filter(
        lambda name: "\0" not in name
    )
)
def test_a_shell_takes_a_name_as_one_word(name):
    done = subprocess.run(["sh", "-c", f"printf '<%s>' {shell_word(name)}"], capture_output=True, text=True, check=True)
    assert done.stdout == f"<{'./' if name.startswith('-') else ''}{one_line(name)}>"
    assert not done.stdout.startswith("<-")
    assert done.stderr == ""

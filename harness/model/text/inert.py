r"""Text that a platform or a file provided, made inert for a terminal, a log, a page or a shell.

Control characters are shown as JSON would write them (``\u001b``), so that the result also holds in a JSON document.
"""

import re
import shlex

# C0 and C1 but for tab and newline, DEL, line separators, direction marks, halves of a surrogate pair, non-characters.
_CONTROLS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\ufeff\\ufffe\\uffff]"
)
# What a CI takes for a command. GitHub: "::name::" at the start of a line, "##[name]" anywhere in it; Azure Pipelines:
# "##vso[" and "##[" anywhere; TeamCity: "##teamcity[" anywhere; GitLab: "section_start:" and "section_end:" after an
# escape sequence, which `visible` shows; Travis: "travis_fold:" and "travis_time:".
_COMMANDS = re.compile(r"(?mi)^[^\S\n]*:(?=:)|#(?=#(?:vso|teamcity)?\[)|t(?=ravis_(?:fold|time):)")


def visible(text: str) -> str:
    """The text with control characters shown; lines and tabs stay."""
    return _CONTROLS.sub(lambda found: _escape(found[0]), text)


def for_output(text: str) -> str:
    """Text for a terminal or a CI log, where a line may also be a command to the CI."""
    return _COMMANDS.sub(lambda found: found[0][:-1] + _escape(found[0][-1]), visible(text))


def one_line(text: str) -> str:
    """The text in one line, with control characters shown."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shell_word(name: str) -> str:
    """A name as one word of a shell command, quoted where needed, and never an option.

    No object of Kubernetes is called ``--all``: a forged name is turned into one that no command finds.
    """
    return shlex.quote(("./" if name.startswith("-") else "") + one_line(name))


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}"

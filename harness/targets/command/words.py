"""A command line with placeholders, split into words before anything is filled in: no value can become a word."""

import shlex
from collections.abc import Mapping, Sequence
from string import Formatter

from harness.model.errors import ConfigError

OF_SCENARIOS = ("id", "scenario_name")  # what every scenario has


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command line, split as a shell does; there is no shell, so nothing else is special.

    Raises:
        ConfigError: it has no words, or quotes or placeholders are wrong.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ConfigError(f"--command: {error}", "quote it as for a shell") from None
    if not words or not words[0]:
        raise ConfigError("there is no command to run", "give --command 'python step.py --n {n}'")
    for word in words:
        _check(word)
    return words


def _check(word: str) -> None:
    """Only plain placeholders: a format such as ``{n:>9999999999}`` would fill the memory."""
    try:
        found = [(name, form, conversion) for _, name, form, conversion in Formatter().parse(word) if name is not None]
    except ValueError as error:
        raise ConfigError(f"--command, '{word}': {error}", "double a brace that is meant as text: {{") from None
    for name, form, conversion in found:
        if not name.isidentifier() or form or conversion:
            raise ConfigError(
                f"--command, '{word}': '{{{name}}}' is not a placeholder",
                "a placeholder is the name of a column, as {n}; double a brace that is meant as text: {{",
            )


def placeholders(words: Sequence[str]) -> tuple[str, ...]:
    """The names to fill in, in order of appearance, without those that every scenario has."""
    names = (name for word in words for _, name, _, _ in Formatter().parse(word) if name is not None)
    return tuple(dict.fromkeys(name for name in names if name not in OF_SCENARIOS))


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with values in place of the placeholders; a word stays one word, whatever the value."""
    return [word.format_map(values) for word in words]

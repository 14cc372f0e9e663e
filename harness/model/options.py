"""One declaration per option, shared by command line, configuration file, environment, web form and reference page.

Configuration files and Locust's web form hold texts, so an option is a text until `Option.read` parses it.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.model.errors import ConfigError

_WHOLE_NUMBERS = range(-(10**18), 10**18)  # what fits the 64 bits of JSON and of tables
_SHOWN = 40  # characters of a wrong text
_MOST_IN_USAGE = 4  # choices; more would not fit the usage line


class Join(argparse._AppendAction):  # noqa: SLF001  # configuration files recognise a list option by this class
    """A repeatable option: the texts are joined by semicolons, as the web form holds them."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  # argparse's signature
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002  # argparse's signature
    ) -> None:
        """Append one text to those given before, separated by a semicolon."""
        given = getattr(namespace, self.dest, "") or ""
        setattr(namespace, self.dest, f"{given}; {values}" if given else values)


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: without dashes.
        default: "" is not given; False makes the option a switch.
        help: one phrase, for ``--help``, the web form and the reference.
        parse: text to value; raises ConfigError, or ValueError if it is not a number. None keeps the text.
        choices: the only texts allowed; none allows any.
        repeatable: may be given several times; its value is a tuple.
        in_form: whether the web form shows it.
        file: format of the file that the text names: "yaml", "json", "csv", "arrivals" (CSV or run folder) or "report"
            (report.json or run folder); "" where it names none. The web form takes files of these formats only, and
            only from the folder that it may use.
        is_name: of an option that takes a file or a name, whether a text is a name, such as an id.
    """

    name: str
    default: str | bool
    help: str
    parse: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    repeatable: bool = False
    in_form: bool = True
    file: str = ""
    is_name: Callable[[str], bool] | None = None

    @property
    def dest(self) -> str:
        """Its attribute in an argparse namespace."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """Its environment variable, ``PIPESWARM_`` and the name in capitals."""
        return f"PIPESWARM_{self.dest.upper()}"

    @property
    def meaning(self) -> str:
        """Its help with its default, if it has one."""
        return f"{self.help} (default: {self.default})" if self.default else self.help

    def text(self, given: object) -> str | bool:
        """What was `given`, a text or a switch's state; a blank text means the default."""
        return bool(given) if isinstance(self.default, bool) else str(given or "").strip() or self.default

    def read(self, given: object, label: str = "") -> Any:
        """The value of what was `given`; see `text`. `label` names the option in errors.

        Without a default, a blank text has the value "" if there is no `parse`, () if it is repeatable, else None.

        Raises:
            ConfigError: the text has no such value.
        """
        text = self.text(given)
        if isinstance(text, bool):
            return text
        label = label or f"--{self.name}"
        if self.repeatable:
            return tuple(self._value(part, label) for part in map(str.strip, text.split(";")) if part)
        return self._value(text, label) if text else "" if self.parse is None else None

    def _value(self, text: str, label: str) -> Any:
        if self.choices and text not in self.choices:
            raise ConfigError(f"{label}: '{text}' is not a choice", f"choose one of {', '.join(self.choices)}")
        if self.parse is None:
            return text
        try:
            value = self.parse(text)
        except ConfigError as error:
            raise ConfigError(f"{label}: {error.message}", error.hint) from error
        except ValueError:
            number = "a whole number" if self.parse is int else "a number"
            raise ConfigError(f"{label}: '{_short(text)}' is not {number}", "write it in digits") from None
        if type(value) is int and value not in _WHOLE_NUMBERS:
            raise ConfigError(f"{label}: '{_short(text)}' is too large", "give a number of at most 18 digits")
        return value

    def add_to(self, parser: Any, **more: Any) -> Any:
        """Add it to an argparse parser or group, with `more` keywords; returns argparse's action."""
        kind: dict[str, Any] = {"action": "store_true"} if isinstance(self.default, bool) else {}
        if self.repeatable:
            kind["action"] = Join
        if self.choices:
            kind["choices"] = self.choices
            kind["metavar"] = None if len(self.choices) <= _MOST_IN_USAGE else self.dest.upper()
        text = self.help.replace("%", "%%")
        return parser.add_argument(f"--{self.name}", **{"default": self.default, "help": text, **kind, **more})


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def with_defaults(options: Iterable[Option], defaults: Mapping[str, str]) -> tuple[Option, ...]:
    """The options, with other defaults for some by name."""
    return tuple(replace(option, default=defaults.get(option.name, option.default)) for option in options)


def parse_pair(text: str) -> tuple[str, str]:
    """``NAME=VALUE`` as (name, value).

    Raises:
        ConfigError: a part is missing.
    """
    name, _, value = text.partition("=")
    if not (name and value):
        raise ConfigError(f"'{text}' is not a pair", "write it as NAME=VALUE")
    return name, value

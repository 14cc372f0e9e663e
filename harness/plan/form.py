"""What the form of the web UI may set. Whoever reaches the page fills it in: it is not the user's command line."""

import re
from collections.abc import Collection, Iterable, Mapping

from harness.model.errors import ConfigError, PipeswarmError, TargetUnreachableError
from harness.model.options import Option
from harness.plan.form_files import FormFiles
from harness.plan.validate import OverLimitError

_OPTION = re.compile(r"(?<!\S)--([a-z]+(?:-[a-z]+)*)")
# As messages name the places in files: "row 3", "a.yaml:3: ".
_PLACES = re.compile(r"\b(row|line|stage|level) (\d+)|(?<=\w):(\d+):")


class Form:
    """The form of one process.

    Args:
        shown: the fields that it shows, by their names in the namespace of options.
        options: Pipeswarm's options.
        formats: those of the options that name files, with the formats of each; see `Option.file`.
        started: all options as the process was started, Locust's too.
        files: the files that it may use.
    """

    def __init__(
        self, shown: Collection[str], options: Iterable[Option], formats: Mapping[str, Collection[str]],
        started: Mapping[str, object], files: FormFiles,
    ) -> None:  # fmt: skip
        self._shown = frozenset(shown)
        self._of_files = {option.dest: option for option in options if option.name in formats and option.dest in shown}
        self._formats = formats
        self._started = dict(started)
        self._files = files
        self._named: dict[str, tuple[str, str]] = {}  # option → the file as it was named, and its path

    def accept(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields that may be set, with the paths of files in place of their names.

        A file is looked up in the form's folder, unless the text is what the process was started with. Unknown fields
        are left out.

        Raises:
            ConfigError: one sets an option that the form does not show, or names a file that it may not use.
        """
        accepted, named = {}, dict(self._named)
        for field, text in fields.items():
            dest = field.replace("-", "_")
            if dest in self._started and dest not in self._shown:
                raise ConfigError(f"--{dest.replace('_', '-')} can't be set in the form", "give it on the command line")
            if field not in self._shown:
                continue
            accepted[field] = text
            if option := self._of_files.get(field):
                named.pop(option.name, None)
                if self._names_file(option, text.strip()):
                    path = str(self._files.find(text.strip(), self._formats[option.name]))
                    accepted[field], named[option.name] = path, (text.strip(), path)
        self._named = named
        return accepted

    def in_words(self, message: str) -> str:
        """The message with the labels of fields in place of options: "Max Error Ratio" for ``--max-error-ratio``."""

        def label(option: re.Match[str]) -> str:
            dest = option[1].replace("-", "_")
            return dest.replace("_", " ").title() if dest in self._shown else option[0]

        return _OPTION.sub(label, message)

    def choices(self) -> dict[str, list[str]]:
        """The files to choose from, by field."""
        return self._files.listed({dest: self._formats[each.name] for dest, each in self._of_files.items()})

    def upload(self, name: str, content: Iterable[bytes]) -> str:
        """Save an uploaded file; returns the name to enter in a field. See `FormFiles.save`."""
        return self._files.save(name, content)

    def discreet(self, error: Exception, options: Collection[str] | None = None) -> Exception:
        """The error for the page: it says nothing of what files hold that the form named, only where it is wrong.

        Args:
            error: raised while files were read.
            options: those whose files were read; None for all.
        """
        named = {name: each for name, each in self._named.items() if options is None or name in options}
        if not named or isinstance(error, TargetUnreachableError | OverLimitError):
            return error
        text = str(error)
        blamed = {name: each for name, each in named.items() if each[1] in text} or named
        files = " and ".join(f"--{name} {given}" for name, (given, _) in blamed.items())
        found = _PLACES.findall(text)
        places = ", ".join(dict.fromkeys(f"{kind or 'line'} {number or line}" for kind, number, line in found))
        where = f": see {places}" if places else ""
        kind = type(error) if isinstance(error, PipeswarmError) else ConfigError
        return kind(
            f"the test can't start with {files}{where}", "the terminal in which Locust runs shows what is wrong there"
        )

    def _names_file(self, option: Option, text: str) -> bool:
        as_started = str(self._started.get(option.dest) or "").strip()
        return text not in {"", as_started} and not (option.is_name is not None and option.is_name(text))

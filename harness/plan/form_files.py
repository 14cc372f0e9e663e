"""The folder of which the web form may use files, and into which it uploads."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Self

from harness.model.errors import ConfigError
from harness.store.folder import RunFolder

_SUFFIXES = {
    "yaml": (".yaml", ".yml", ".json"), "json": (".json",), "csv": (".csv",), "arrivals": (".csv",),
    "report": (".json",),
}  # fmt: skip
_ALSO_RUN_FOLDERS = frozenset({"arrivals", "report"})
_UPLOADS = "uploads"
# A folder may be a home directory: how far the list looks.
_DEEPEST = 4
_MOST_ENTRIES = 20_000
_MOST_LISTED = 500
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class FormFiles:
    """The files in `folder` (resolved) and below. Hidden ones, and links that lead out of it, don't count as inside."""

    folder: Path

    @classmethod
    def of(cls, folder: str) -> Self:
        """The files in `folder`.

        Raises:
            ConfigError: it is not a folder.
        """
        path = Path(folder)
        if not path.is_dir():
            raise ConfigError(
                f"--web-files: {folder} is not a folder", "give the folder whose files the web form may use"
            )
        return cls(path.resolve())

    def find(self, name: str, formats: Iterable[str]) -> Path:
        """The file or run folder `name`, relative to the folder, if it may have one of `formats` (see `Option.file`).

        Raises:
            ConfigError: there is none; the same for all that is outside of the folder, whether or not it exists.
        """
        with suppress(OSError, ValueError, RuntimeError):  # too long a name, a null byte, a loop of links
            path = (self.folder / name).resolve()
            if self._contains(path) and _fits(path, formats):
                return path
        raise ConfigError(
            f"the form may use no file '{name}'",
            "choose one of the list, upload one, or start Locust with --web-files FOLDER",
        )

    def listed(self, options: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """For each option the names that `find` finds, by the option's formats; of a large folder only a part."""
        names: dict[str, list[str]] = {option: [] for option in options}
        for path in self._entries():
            for option, formats in options.items():
                if len(names[option]) < _MOST_LISTED and _fits(path, formats):
                    names[option].append(path.relative_to(self.folder).as_posix())
        return {option: sorted(found) for option, found in names.items()}

    def save(self, name: str, content: Iterable[bytes]) -> str:
        """Save an upload, and return the name under which `find` finds it. No file is ever overwritten.

        Raises:
            ConfigError: its name is not that of a data file, or it can't be written.
        """
        plain = PurePath(re.sub(r"[^\w.-]+", "-", name).lstrip(".-"))
        known = sorted({suffix for suffixes in _SUFFIXES.values() for suffix in suffixes})
        if plain.suffix.lower() not in known:
            raise ConfigError(f"'{plain}' can't be uploaded", f"files are: {', '.join(known)}")
        try:
            path = self._new_file(plain.stem, plain.suffix)
            try:
                _write(path, content)
            except BaseException:
                path.unlink()
                raise
        except OSError as error:
            raise ConfigError(f"'{plain}' can't be saved: {error.strerror}", "give a writable --web-files") from error
        return path.relative_to(self.folder).as_posix()

    def _contains(self, path: Path) -> bool:
        if not path.is_relative_to(self.folder):
            return False
        return not any(part.startswith(".") for part in path.relative_to(self.folder).parts)

    def _entries(self) -> Iterator[Path]:
        """Files and folders, nearest first."""
        folders, seen = [(self.folder, 1)], 0
        for folder, depth in folders:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_ENTRIES:
                        return
                    if entry.name.startswith(".") or entry.is_symlink():
                        continue
                    path = Path(entry.path)
                    yield path
                    if depth < _DEEPEST and entry.is_dir() and not _is_run(path):
                        folders.append((path, depth + 1))

    def _new_file(self, stem: str, suffix: str) -> Path:
        """A new empty file in the folder of uploads; a name in use gets a number."""
        uploads = self.folder / _UPLOADS
        uploads.mkdir(exist_ok=True)
        if uploads.is_symlink():
            raise ConfigError(f"{_UPLOADS} is a link", "give another --web-files")
        for number in range(1, _MOST_NAMES):
            path = uploads / (f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}")
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)
                return path
        raise ConfigError(f"there are too many uploads named '{stem}{suffix}'", "remove some, or rename the file")


def _fits(path: Path, formats: Iterable[str]) -> bool:
    if path.is_dir():
        return not _ALSO_RUN_FOLDERS.isdisjoint(formats) and _is_run(path)
    return any(path.suffix.lower() in _SUFFIXES[each] for each in formats) and path.is_file()


def _is_run(path: Path) -> bool:
    try:
        RunFolder.open(path)
    except ConfigError:
        return False
    return True


def _write(path: Path, content: Iterable[bytes]) -> None:
    with path.open("wb") as out:
        for part in content:
            out.write(part)

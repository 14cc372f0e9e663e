"""What another program answered, kept until all of it is recorded: an aborted reading goes on where it stopped."""

import shutil
from collections.abc import Iterator
from typing import Any

import orjson

from harness import reading
from harness.store import files
from harness.store.folder import KINDS, MOST_RECORDS, RunFolder

_FOLDER = "answers"


class Answers:
    """The answers of a run folder by key; each is written as a whole or not at all. Used by several threads."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        files.make_folder(folder.path, _FOLDER)
        self._keys = {path.name for path in (folder.path / _FOLDER).iterdir() if not path.name.startswith(".")}

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keep(self, key: str, content: object) -> None:
        """Write the answer `key`, which is a file's name.

        Raises:
            OSError: it can't be written.
        """
        self._folder.replace(f"{_FOLDER}/{key}", orjson.dumps(content))
        self._keys.add(key)

    def read(self, prefix: str) -> Iterator[Any]:
        """The answers whose keys begin so, in the order of the keys.

        Raises:
            ConfigError: one is damaged.
        """
        for key in sorted(each for each in self._keys if each.startswith(prefix)):
            name = f"{_FOLDER}/{key}"
            with reading.structured(self._folder.path / name):
                content = orjson.loads(self._folder.read_bytes(name, MOST_RECORDS))
            yield content

    def drop_records(self) -> None:
        """Remove what an aborted run made of the answers, so that nothing is recorded twice."""
        for name in KINDS.values():
            (self._folder.path / f"{name}.jsonl").unlink(missing_ok=True)

    def drop(self) -> None:
        """All of them are recorded."""
        shutil.rmtree(self._folder.path / _FOLDER)
        self._keys.clear()

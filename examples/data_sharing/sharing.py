"""Two ways to hand a frame or an array to another process: files, and Vineyard's shared memory."""

import json
import os
import pickle
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

_START_S = 30.0
_PAGE = 4096


class Share(Protocol):
    """Hands objects on by name."""

    def write(self, name: str, value: Any) -> None: ...

    def read(self, name: str) -> Any: ...


class Files:
    """Pickled into a folder. Imports what the objects need, so that reading them does not."""

    def __init__(self, folder: Path) -> None:
        import numpy as np  # noqa: F401
        import pandas as pd  # noqa: F401

        self._folder = folder

    def write(self, name: str, value: Any) -> None:
        with (self._folder / name).open("wb") as out:
            pickle.dump(value, out, protocol=5)

    def read(self, name: str) -> Any:
        with (self._folder / name).open("rb") as source:
            return pickle.load(source)  # noqa: S301  # of the step before

    def drop_caches(self, name: str) -> None:
        """Make the next reader read from the medium, as on another machine; where that does not work, say so.

        Of this file only, which needs no rights.
        """
        with (self._folder / name).open("rb") as source:
            os.fsync(source.fileno())
            os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if _cached(source.fileno()):
                print(json.dumps({"remark": "the files' pages could not be dropped from memory: reads are warm"}))


def _cached(file: int) -> bool:
    """Whether the first page of a file is in memory; True where the system can't tell."""
    try:
        os.preadv(file, [bytearray(_PAGE)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


class Vineyard:
    """In the shared memory of the vineyardd at `socket`, which is at most `size` large."""

    def __init__(self, socket: str, size: str) -> None:
        import pandas as pd  # noqa: F401
        import vineyard

        self._size = size
        try:
            self._client = vineyard.connect(socket)
        except vineyard.ConnectionFailedException:
            sys.exit(f"no vineyardd answers at {socket}: leave --socket out, and one is started")

    def write(self, name: str, value: Any) -> None:
        import vineyard

        try:
            self._client.put(value, name=name, persist=True)
        except vineyard.NotEnoughMemoryException:
            sys.exit(f"the memory of vineyardd is full: raise --size, which is {self._size}")

    def read(self, name: str) -> Any:
        return self._client.get(name=name)


def _program() -> list[str]:
    """The server that comes with the package: `python -m vineyard` imports seconds of it first."""
    found = find_spec("vineyard")
    if found is None or found.origin is None:
        sys.exit("there is no vineyard: pip install 'pipeswarm[vineyard]'")
    packaged = Path(found.origin).parent / "bdist" / "vineyardd"
    return [str(packaged)] if packaged.is_file() else [sys.executable, "-m", "vineyard"]


def vineyardd(socket: Path, size: str) -> "subprocess.Popen[bytes]":
    """A vineyardd that answers. It listens on the socket only, which is in a folder that other users can't enter."""
    log = socket.with_suffix(".log")
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*_program(), "--socket", str(socket), "--size", size, "--meta", "local", "--norpc"],
            stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    deadline_s = time.monotonic() + _START_S
    while not socket.exists():
        if server.poll() is not None or time.monotonic() > deadline_s:
            server.kill()
            server.wait()
            lines = map(str.strip, log.read_text(errors="replace").splitlines())
            said = [line for line in lines if line and not line.startswith("I")]  # without its notes
            sys.exit(f"vineyardd does not start with --size {size}: {' · '.join(said[:2]) or 'it says nothing'}")
        time.sleep(0.01)
    return server

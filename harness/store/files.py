"""Opens, replaces and locks files of an untrusted folder.

No link is followed below the folder, and a name that is replaced first belongs to a new file with an unguessable name:
nothing outside the folder is read or written, whatever lies in it.
"""

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from harness import reading
from harness.model.errors import ConfigError

_PATIENCE_S, _RETRY_S = 1.0, 0.001
_COPY = "copy the folder without links, as with cp -RL"


def descriptor(folder: Path, name: str, flags: int) -> int:
    """A descriptor of the regular file `name` in `folder`; a part of `name` may be a folder in it.

    Raises:
        OSError: it can't be opened.
        ConfigError: it is a link, or no file.
    """
    with _inside(folder, name) as (directory, last):
        try:
            # Without O_NONBLOCK a named pipe would be waited for.
            opened = os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _link(folder / name) from None
            raise OSError(error.errno, error.strerror, str(folder / name)) from None
    about = os.fstat(opened)
    if not stat.S_ISREG(about.st_mode) or (flags & (os.O_WRONLY | os.O_RDWR) and about.st_nlink > 1):
        os.close(opened)
        raise _link(folder / name) if stat.S_ISREG(about.st_mode) else ConfigError(f"{folder / name} is not a file")
    return opened


def open_file(folder: Path, name: str, most: int) -> BinaryIO:
    """The file `name` in `folder`, opened for reading; raises as `descriptor` does, and if it is larger than `most`."""
    file = os.fdopen(descriptor(folder, name, os.O_RDONLY), "rb")
    try:
        return reading.bounded(file, folder / name, most)
    except BaseException:
        file.close()
        raise


def replace(folder: Path, name: str, content: bytes) -> Path:
    """Write the file `name` in `folder` as a whole or not at all; readers see the old or the new content."""
    with replacing(folder, name) as out:
        out.write(content)
    return folder / name


@contextmanager
def replacing(folder: Path, name: str) -> Iterator[BinaryIO]:
    """A new file that gets the name `name` in `folder` when the context succeeds, and is removed when it fails."""
    with _inside(folder, name) as (directory, last):
        partial = f".{last}.{secrets.token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(partial, flags, 0o644, dir_fd=directory)
        try:
            with os.fdopen(opened, "wb") as out:
                yield out
            os.replace(partial, last, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=directory)
            raise


def make_folder(folder: Path, name: str) -> None:
    """Make the folder `name` in `folder` unless it exists.

    Raises:
        OSError: it can't be made.
        ConfigError: it is a link, or no folder.
    """
    with _inside(folder, name) as (directory, last), suppress(FileExistsError):
        os.mkdir(last, dir_fd=directory)
    with _inside(folder, f"{name}/"):
        pass


def size_of(folder: Path, name: str) -> int | None:
    """The size of the file `name` in `folder`, in bytes; None where there is none."""
    try:
        with _inside(folder, name) as (directory, last):
            return os.stat(last, dir_fd=directory, follow_symlinks=False).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _inside(folder: Path, name: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that `name` lies in, and the last part of `name`."""
    *above, last = name.split("/")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with ExitStack() as opened:
        directory = os.open(folder, flags)  # the folder itself may be a link: the user named it
        opened.callback(os.close, directory)
        for part in above:
            try:
                directory = os.open(part, flags | os.O_NOFOLLOW, dir_fd=directory)
            except OSError as error:
                if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                    raise _link(folder / part) from None
                raise
            opened.callback(os.close, directory)
        yield directory, last


def _link(path: Path) -> ConfigError:
    return ConfigError(f"{path} is a link, which may lead out of the folder", _COPY)


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock on the file `name` in `folder`; it is released when the process ends, even by a kill.

    Raises:
        OSError: the lock can't be opened, or is held for longer than a second.
        ConfigError: it is a link.
    """
    opened = descriptor(folder, name, os.O_RDWR | os.O_CREAT)
    try:
        _acquire(opened, time.monotonic() + _PATIENCE_S)
        yield
    finally:
        os.close(opened)


def _acquire(descriptor: int, until_s: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
            time.sleep(_RETRY_S)
        else:
            return

"""The files that a load test's options name: sent along with the Job, or fetched by its pod from an object store."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness import reading
from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.plan.options import declared
from harness.store.folder import REPORT
from harness.targets.target import Platform

OBJECT_STORE = "s3://"
MOST_BYTES = 2**20  # of all files of a ConfigMap: the API server's limit
_CONFIG = "config"  # Locust's option


@dataclass(frozen=True, slots=True)
class Inputs:
    """A load test's options as its pod is given them, and the files that they name there.

    Attributes:
        options: with the files' places in the pod.
        files: content of the files to send, by name.
        objects: addresses of the objects to fetch, by place in the pod.
    """

    options: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    objects: Mapping[str, str] = field(default_factory=dict)


def collect(given: Sequence[str], config: Path | None, platform: Platform, sent: str, fetched: str) -> Inputs:
    """The inputs of a test with these options.

    Args:
        given: options of Locust and of the target.
        config: configuration file that applies unless ``--config`` is given.
        platform: the target.
        sent: folder of the files in the pod.
        fetched: folder of the fetched objects in the pod.

    Raises:
        ConfigError: a file can't be read or sent, or all together are too large for a ConfigMap.
    """
    naming = {f"--{option.name}": option for option in declared(platform) if option.file}
    files: dict[str, bytes] = {}
    objects: dict[str, str] = {}

    def place(option: Option, text: str) -> str:
        if option.is_name is not None and option.is_name(text):
            return text
        name = option.name + PurePosixPath(text).suffix
        if text.startswith(OBJECT_STORE):
            objects[f"{fetched}/{name}"] = text
            return f"{fetched}/{name}"
        path = _file(option, Path(text))
        name = option.name + path.suffix
        files[name] = _content(path, f"--{option.name}")
        return f"{sent}/{name}"

    options, named = _moved(given, naming, place)
    if (path := named.get(_CONFIG) or config) is not None:
        files[path.name] = _content(path, "--config")
        options = ("--config", f"{sent}/{path.name}", *_of_config(path, given, naming, place), *options)
    _demand_small(files)
    return Inputs(options, files, objects)


def settings_of(config: Path) -> Mapping[str, object]:
    """What a configuration file sets, by the names of options.

    Raises:
        ConfigError: it can't be read, or is not TOML.
    """
    try:
        with reading.readable(f"--config {config}", "check the path"):
            return dict(tomllib.loads(reading.read_text(config)).get("tool", {}).get("locust", {}))
    except (tomllib.TOMLDecodeError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{config} is not a configuration: {error}", "write it as pipeswarm init does") from error


def config_of(given: Sequence[str]) -> Path | None:
    """The file that ``--config`` names."""
    found = [value for name, value in pairs(given) if name == f"--{_CONFIG}" and value is not None]
    return Path(found[-1]) if found else None


def pairs(given: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options and their texts as far as they can be parsed without knowing the options: None is no text."""
    for place, word in enumerate(given):
        if word.startswith("-"):
            name, joined, text = word.partition("=")
            following = given[place + 1] if place + 1 < len(given) and not given[place + 1].startswith("-") else None
            yield name, text if joined else following


def _moved(
    given: Sequence[str], naming: Mapping[str, Option], place: Callable[[Option, str], str]
) -> tuple[tuple[str, ...], dict[str, Path]]:
    """The options with the files' places in the pod, without ``--config``, whose file is returned apart."""
    options: list[str] = []
    named: dict[str, Path] = {}
    words = iter(given)
    for word in words:
        name, joined, text = word.partition("=")
        if name != f"--{_CONFIG}" and name not in naming:
            options.append(word)
            continue
        value = text if joined else next(words, "")
        if not value:
            raise ConfigError(f"{name} names no file", f"write it as {name} FILE")
        if name in naming:
            options += [name, place(naming[name], value)]
        else:
            named[_CONFIG] = Path(value)
    return tuple(options), named


def _of_config(
    config: Path, given: Sequence[str], naming: Mapping[str, Option], place: Callable[[Option, str], str]
) -> Iterator[str]:
    """The options that a configuration file has for files, for the pod; the command line wins."""
    on_command_line = {name for name, _ in pairs(given)}
    for name, text in settings_of(config).items():
        option = naming.get(f"--{name}")
        if option is not None and f"--{name}" not in on_command_line and isinstance(text, str) and text:
            yield from (f"--{name}", place(option, text))


def _file(option: Option, path: Path) -> Path:
    if not path.is_dir():
        return path
    if option.file == "report":
        return path / REPORT
    raise ConfigError(f"--{option.name} {path}: a folder can't be sent", "give the file in it")


def _content(path: Path, option: str) -> bytes:
    with reading.readable(f"{option} {path}", "check the path"):
        try:
            return reading.read_bytes(path, MOST_BYTES)
        except ConfigError as error:
            raise ConfigError(f"{option}: {error.message}", _HINT) from error


def _demand_small(files: Mapping[str, bytes]) -> None:
    """A ConfigMap holds 1 MiB.

    Raises:
        ConfigError: the files are larger together.
    """
    if (total := sum(map(len, files.values()))) > MOST_BYTES:
        sizes = ", ".join(f"{name} {len(content) / 2**10:,.0f} KiB" for name, content in files.items())
        raise ConfigError(f"the files are {total / 2**20:.1f} MiB, a ConfigMap holds 1 MiB ({sizes})", _HINT)


_HINT = "put large files into an object store and give s3://BUCKET/NAME"

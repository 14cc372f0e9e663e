"""The experiment's YAML file: read and checked; errors name the key."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from string import Formatter
from typing import Any, TypeVar

from harness import reading
from harness.model.errors import ConfigError
from harness.model.experiment import Experiment, Question, RunOrder
from harness.model.slo import parse_slo
from harness.model.units import parse_duration

_Choice = TypeVar("_Choice", bound=StrEnum)
_KEYS = {
    "name", "question", "loads", "nodes", "variants", "repetitions", "order", "seed", "slos", "simulate", "pipeline",
    "locustfile", "options", "hooks",
}  # fmt: skip
_HOOKS = ("set_nodes", "before", "cool_down", "timeout", "pool")
_PLACEHOLDERS = ("nodes", "load", "variant", "repetition")
_FOLDER_NAME = re.compile(r"[^\W_.-][\w .-]{0,99}")
_MOST_STEPS = 10_000
_MOST = 10_000_000  # of a whole number


@dataclass(frozen=True, slots=True)
class Hooks:
    """The user's commands, run before every test with {nodes}, {load}, {variant} and {repetition} filled in.

    Attributes:
        set_nodes: sets the number of nodes (a cloud's CLI).
        before: runs next, to drop caches for example.
        cool_down_s: pause after both.
        timeout_s: longest time for each.
        pool: instead of `set_nodes`, the pool whose surplus nodes are cordoned.
    """

    set_nodes: str = ""
    before: str = ""
    cool_down_s: float = 0.0
    timeout_s: float = 600.0
    pool: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The content of the file.

    Attributes:
        name: of the experiment.
        experiment: question and axes.
        slos: objectives, as texts.
        simulate: the profile to test in simulated time; "" loads a platform with Locust.
        pipeline: compiled IR; none is the built-in example.
        locustfile: for load tests.
        options: of every load test, as on the command line.
        variants: by name: further options of the load test, or of the simulation.
        hooks: run before every load test.
        digest: of the file, so that results of another plan are not continued.
    """

    name: str
    experiment: Experiment
    slos: tuple[str, ...]
    simulate: str
    pipeline: Path | None
    locustfile: Path
    options: Mapping[str, object]
    variants: Mapping[str, Mapping[str, object]]
    hooks: Hooks
    digest: str


def read_experiment(path: Path) -> ExperimentFile:
    """Read the file.

    Raises:
        ConfigError: it can't be read, or a key is invalid.
    """
    try:
        text = reading.read_bytes(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "give the experiment's YAML file") from error
    given = next(iter(reading.parse_yaml(text, path)), None)
    if not isinstance(given, dict):
        raise ConfigError(f"{path} is not a mapping", f"keys are: {', '.join(sorted(_KEYS))}")
    unknown = sorted(set(map(str, given)) - _KEYS)
    if unknown:
        raise ConfigError(f"{path}: there is no key '{unknown[0]}'", f"keys are: {', '.join(sorted(_KEYS))}")
    variants = given.get("variants") or {"default": {}}
    if not isinstance(variants, dict) or not all(isinstance(v or {}, dict) for v in variants.values()):
        raise ConfigError(
            f"{path}, key 'variants' is not a mapping of names to options", "write it as {a: {}, b: {…: …}}"
        )
    slos = _texts(path, "slos", given.get("slos") or [])
    for slo in slos:
        parse_slo(slo)
    experiment = _experiment(path, given, tuple(map(str, variants)))
    if experiment.question is not Question.GRID and not slos:
        raise ConfigError(f"{path}: a search needs 'slos'", "for example ['max(run.duration) < 30m']")
    pipeline = given.get("pipeline")
    return ExperimentFile(
        name=_name(path, given.get("name") or path.stem),
        experiment=experiment,
        slos=slos,
        simulate=str(given.get("simulate") or ""),
        pipeline=path.parent / str(pipeline) if pipeline else None,
        locustfile=path.parent / str(given.get("locustfile") or "locustfiles/kfp.py"),
        options=_mapping(path, "options", given.get("options") or {}),
        variants={str(name): dict(more or {}) for name, more in variants.items()},
        hooks=_hooks(path, _mapping(path, "hooks", given.get("hooks") or {})),
        digest=hashlib.sha256(text).hexdigest(),
    )


def _name(path: Path, given: object) -> str:
    """The experiment's name, which becomes that of a folder."""
    name = str(given)
    if not _FOLDER_NAME.fullmatch(name):
        raise ConfigError(
            f"{path}, key 'name': '{name[:100]}' can't be a folder's name", "use letters, digits, - and _"
        )
    return name


def _texts(path: Path, key: str, value: object) -> tuple[str, ...]:
    """A list of texts; a single text is a list of one."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise ConfigError(f"{path}, key '{key}': '{value}' is not a list", "write it as [one, another]")
    return tuple(map(str, value))


def _mapping(path: Path, key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}, key '{key}': '{value}' is not a mapping", "write it as {name: value}")
    return {str(name): each for name, each in value.items()}


def _experiment(path: Path, given: Mapping[str, Any], variants: tuple[str, ...]) -> Experiment:
    question = _choice(path, "question", given, Question.GRID)
    order = _choice(path, "order", given, RunOrder.INTERLEAVED)
    repetitions = _whole(path, "repetitions", given.get("repetitions", 3))
    seed = given.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ConfigError(f"{path}, key 'seed': '{seed}' is not a whole number", "for example 7")
    return Experiment(
        question, variants, _axis(path, "loads", given), _axis(path, "nodes", given), repetitions, order, seed,
        _unit(given, variants),
    )  # fmt: skip


def _unit(given: Mapping[str, Any], variants: Sequence[str]) -> str:
    """What is counted: replicas where all simulated profiles are those of a service."""
    from harness.simulator.profile.file import load_profile

    options = given.get("variants") or {}
    profiles = {str((options.get(name) or {}).get("simulate") or given.get("simulate") or "") for name in variants}
    of_service = all(name and load_profile(name).hetida is not None for name in profiles)
    return "replica" if of_service else "node"


def _choice(path: Path, key: str, given: Mapping[str, Any], default: _Choice) -> _Choice:
    kind = type(default)
    try:
        return kind(str(given.get(key, default)))
    except ValueError:
        raise ConfigError(
            f"{path}, key '{key}': there is no '{str(given[key])[:100]}'", f"choose from {', '.join(kind)}"
        ) from None


def _axis(path: Path, key: str, given: Mapping[str, Any]) -> tuple[int, ...]:
    """The ascending values of ``200``, ``[50, 100]``, ``2..20`` or ``10..100 by 10``."""
    value = given.get(key)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return tuple(sorted({_whole(path, key, entry) for entry in value}))
    if isinstance(value, str) and ".." in value:
        span, _, step = value.partition("by")
        low, _, high = span.partition("..")
        found = range(_whole(path, key, low), _whole(path, key, high) + 1, _whole(path, key, step or 1))
        if 0 < len(found) <= _MOST_STEPS:
            return tuple(found)
    if isinstance(value, int) and not isinstance(value, bool):
        return (_whole(path, key, value),)
    raise ConfigError(f"{path}, key '{key}': '{value}' is not an axis", "write it as 200, [50, 100] or 2..20")


def _whole(path: Path, key: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= _MOST:
        what = f"'{str(value)[:100]}' is not a whole number from 1 to {_MOST:,}"
        raise ConfigError(f"{path}, key '{key}': {what}", "for example 3")
    return number


def _duration(path: Path, key: str, value: str | float) -> float:
    try:
        return parse_duration(value)
    except ConfigError as error:
        raise ConfigError(f"{path}, key '{key}': {error.message}", error.hint) from error


def _check_placeholders(path: Path, name: str, command: str) -> None:
    """Only plain placeholders: a format such as ``{load:>9999999999}`` would fill the memory."""
    try:
        found = [
            (each, form, conversion) for _, each, form, conversion in Formatter().parse(command) if each is not None
        ]
    except ValueError as error:
        raise ConfigError(f"{path}, key 'hooks.{name}': {error}", "double a brace that is meant as text: {{") from None
    for each, form, conversion in found:
        if each not in _PLACEHOLDERS or form or conversion:
            shown = f"{each}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
            raise ConfigError(
                f"{path}, key 'hooks.{name}': {{{shown[:100]}}} can't be filled in",
                f"placeholders are {' '.join(f'{{{each}}}' for each in _PLACEHOLDERS)}",
            )


def _hooks(path: Path, given: Mapping[str, Any]) -> Hooks:
    unknown = sorted(set(map(str, given)) - set(_HOOKS))
    if unknown:
        raise ConfigError(f"{path}, key 'hooks': there is no '{unknown[0]}'", f"hooks are: {', '.join(_HOOKS)}")
    for name in ("set_nodes", "before"):
        _check_placeholders(path, name, str(given.get(name, "")))
    if given.get("set_nodes") and given.get("pool"):
        raise ConfigError(f"{path}, key 'hooks': both set_nodes and pool set the nodes", "give one of them")
    return Hooks(
        str(given.get("set_nodes", "")),
        str(given.get("before", "")),
        _duration(path, "hooks.cool_down", given.get("cool_down", 0)),
        _duration(path, "hooks.timeout", given.get("timeout", 600)),
        str(given.get("pool", "")),
    )

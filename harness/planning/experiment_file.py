"""The experiment's YAML file: read and checked; errors name line and key."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated

from harness import reading
from harness.documents import Document, parse_yaml
from harness.model.errors import ConfigError
from harness.model.experiment import Experiment, Question, RunOrder
from harness.model.slo import parse_slo
from harness.model.text.typed import Range
from harness.model.units import parse_duration

_PLACEHOLDERS = ("nodes", "load", "variant", "repetition")
_FOLDER_NAME = re.compile(r"[^\W_.-][\w .-]{0,99}")
_MAX_STEPS = 10_000
_MAX_NUMBER = 10_000_000  # of a whole number


@dataclass(frozen=True, slots=True)
class Hooks:
    """The user's commands, run before every test with {nodes}, {load}, {variant} and {repetition} filled in.

    Attributes:
        set_nodes: sets the number of nodes (a cloud's CLI).
        before: runs next, to drop caches for example.
        cool_down: pause after both, seconds.
        timeout: longest time for each, seconds.
        pool: instead of `set_nodes`, the pool whose surplus nodes are cordoned.
    """

    set_nodes: str = ""
    before: str = ""
    cool_down: Annotated[float, parse_duration] = 0.0
    timeout: Annotated[float, parse_duration] = 600.0
    pool: str = ""


def _axis(value: object) -> tuple[int, ...]:
    """The ascending values of ``200``, ``[50, 100]``, ``2..20`` or ``10..100 by 10``."""
    if isinstance(value, list) and value:
        return tuple(sorted(set(map(_whole, value))))
    span, _, step = str(value).partition("by")
    low, dots, high = span.partition("..")
    found = range(_whole(low), _whole(high if dots else low) + 1, _whole(step or 1))
    if not 0 < len(found) <= _MAX_STEPS:
        raise ConfigError(f"'{value}' is not an axis", "write it as 200, [50, 100] or 2..20")
    return tuple(found)


def _whole(value: object) -> int:
    text = str(value).strip()
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_NUMBER:
        what = f"'{text[:100]}' is not a whole number from 1 to {_MAX_NUMBER:,}"
        raise ConfigError(what, "write it as 200, [50, 100] or 2..20")
    return int(text)


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts; a single text is a list of one."""
    if not isinstance(value, str | list):
        raise ConfigError(f"'{value}' is not a list", "write it as [one, another]")
    return tuple(map(str, [value] if isinstance(value, str) else value))


Axis = Annotated[tuple[int, ...], _axis]


@dataclass(frozen=True, slots=True)
class _Written:
    """The keys of the file: see `ExperimentFile`."""

    loads: Axis
    nodes: Axis
    name: str = ""
    question: Question = Question.GRID
    variants: Mapping[str, Mapping[str, object] | None] = field(default_factory=lambda: {"default": {}})
    repetitions: Annotated[int, Range(1, _MAX_NUMBER)] = 3
    order: RunOrder = RunOrder.INTERLEAVED
    seed: int = 0
    slos: Annotated[tuple[str, ...], _texts] = ()
    simulate: str = ""
    pipeline: str = ""
    locustfile: str = "locustfiles/kfp.py"
    options: Mapping[str, object] = field(default_factory=dict)
    hooks: Hooks = Hooks()


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
    document = parse_yaml(reading.as_text(text, path), str(path))
    written = document.typed(_Written)
    for slo in written.slos:
        parse_slo(slo)
    if written.question is not Question.GRID and not written.slos:
        raise ConfigError(f"{path}: a search needs 'slos'", "for example ['max(run.duration) < 30m']")
    name = written.name or path.stem
    if not _FOLDER_NAME.fullmatch(name):
        raise document.error(("name",), f"'{name[:100]}' can't be a folder's name", "use letters, digits, - and _")
    _check_hooks(document, written.hooks)
    variants = {name: dict(more or {}) for name, more in written.variants.items()}
    experiment = Experiment(
        written.question, tuple(variants), written.loads, written.nodes, written.repetitions, written.order,
        written.seed, _unit(written.simulate, variants),
    )  # fmt: skip
    return ExperimentFile(
        name=name,
        experiment=experiment,
        slos=written.slos,
        simulate=written.simulate,
        pipeline=path.parent / written.pipeline if written.pipeline else None,
        locustfile=path.parent / written.locustfile,
        options=written.options,
        variants=variants,
        hooks=written.hooks,
        digest=hashlib.sha256(text).hexdigest(),
    )


def _unit(simulate: str, variants: Mapping[str, Mapping[str, object]]) -> str:
    """What is counted: replicas where all simulated profiles are those of a service."""
    from harness.simulator.profile.file import load_profile

    profiles = {str(options.get("simulate") or simulate) for options in variants.values()}
    return "replica" if all(name and load_profile(name).hetida is not None for name in profiles) else "node"


def _check_hooks(document: Document, hooks: Hooks) -> None:
    """Only plain placeholders: a format such as ``{load:>9999999999}`` would fill the memory."""
    if hooks.set_nodes and hooks.pool:
        raise document.error(("hooks",), "both set_nodes and pool set the nodes", "give one of them")
    for name, command in (("set_nodes", hooks.set_nodes), ("before", hooks.before)):
        path = ("hooks", name)
        try:
            found = list(Formatter().parse(command))
        except ValueError as error:
            raise document.error(path, str(error), "double a brace that is meant as text: {{") from None
        for _, each, form, conversion in found:
            if each is not None and (each not in _PLACEHOLDERS or form or conversion):
                shown = f"{each}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
                known = " ".join(f"{{{placeholder}}}" for placeholder in _PLACEHOLDERS)
                raise document.error(path, f"{{{shown[:100]}}} can't be filled in", f"placeholders are {known}")

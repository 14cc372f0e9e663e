"""Our options, registered with Locust so that command line, ``locust.conf``, environment and web form show the same.

Locust's form gives every value back as text, so options are texts here and are understood in one place, `settings`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness.model.abort import AbortRule, parse_abort
from harness.model.concurrency import Concurrency, Level
from harness.model.errors import ConfigError
from harness.model.options import OBSERVING, Join, Option, several
from harness.model.plan import Limits
from harness.model.schedule import Schedule
from harness.model.units import parse_duration, parse_rate
from harness.plan.schedule_files import make, read_levels, read_replay, read_stages
from harness.targets.target import Cleanup

V = TypeVar("V")
N = TypeVar("N", int, float)

# Each schedule, and which options say when its runs are due.
_HEEDED: Mapping[str, frozenset[str]] = {
    "spread": frozenset({"runs", "over", "jitter"}),
    "constant": frozenset({"rate", "for"}),
    "burst": frozenset({"runs", "every", "times", "ramp-in"}),
    "poisson": frozenset({"rate", "for"}),
    "ramp": frozenset({"rate", "for"}),
    "stages": frozenset({"schedule-file"}),
    "replay": frozenset({"schedule-file"}),
    "concurrency": frozenset({"runs", "for", "schedule-file"}),
}
SCHEDULES = tuple(_HEEDED)
_DEFAULT_RUNS = 60

_OPTIONS: tuple[Option, ...] = (
    (
        "schedule",
        "spread",
        "when runs are due; concurrency: as many in flight as users (closed model)",
        {"choices": SCHEDULES},
    ),
    ("runs", "", f"number of runs: burst, spread (default: one a scenario, else {_DEFAULT_RUNS}), concurrency", {}),
    ("over", "1m", "spread: the time over which the runs are spread evenly", {}),
    ("jitter", "0", "spread: moves each arrival by up to this share of the spacing", {}),
    ("rate", "1/s", "constant, poisson: arrivals, as 2/s, 120/m or 500/h · ramp: as 1/s..10/s", {}),
    ("for", "1m", "constant, poisson, ramp, concurrency: for how long", {}),
    ("every", "", "burst: time between bursts", {}),
    ("times", "1", "burst: number of bursts", {}),
    ("ramp-in", "", "burst: time within which each leaves (default: at once)", {}),
    ("schedule-file", "", "YAML of stages, or of concurrency's levels · replay: CSV with due_s, or a run's folder", {}),
    ("drain", "10m", "how long to wait for the last runs after the last arrival", {}),
    ("scenarios", "", "CSV of scenarios (id,scenario_name,…); none: they are generated from the pipeline's inputs", {}),
    ("param-mode", "columns", "columns: a column a parameter · json:NAME: the whole row as a JSON list in NAME", {}),
    ("seed", "7", "of the schedule's jitter, the generated scenarios and the simulated platform", {}),
    ("slo", "", "what must hold, as 'p95(run.duration) < 20m'; may be given several times", {"action": Join}),
    ("baseline", "", "a former run of the same load, or its report.json; being significantly slower ends with 3", {}),
    ("abort-on", "", "when to give up, as 'failed_ratio > 0.2 for 1m'; may be given several times", {"action": Join}),
    ("max-runs", "10000", "more than that are not sent to a host that is not the simulator, except with --yes", {}),
    ("yes", False, "send more than --max-runs", {"action": "store_true"}),
    ("cleanup", "none", "what is done with the test's runs at its end", {"choices": [str(how) for how in Cleanup]}),
    ("cleanup-rate", "20/s", "requests of the clean-up", {}),
    ("simulate", "demo", "profile of the simulated platform; used when no host is given", {}),
    ("fault", "", "fault planted in the simulated platform, as store-full or store-full@30s", {}),
    ("namespace", "", "the platform's namespace of runs (multi-user installations) and of their pods", {}),
    ("max-in-flight", "10000", "open requests a worker; what does not fit is recorded as missed", {}),
    ("answer-timeout", "60s", "a submission without an answer after this time is rejected", {}),
    ("runs-dir", "runs", "where run folders go", {}),
    ("run-name", "", "name of the run folder (default: time, target, schedule, runs)", {}),
)


def register(parser: Any, extra: Sequence[Option], defaults: Mapping[str, str]) -> None:
    """Add our options and a target's own (`extra`) to Locust's parser; `defaults` are a target's for ours."""
    group = parser.add_argument_group("Pipeswarm", "what to submit, when, and how long to wait")
    for name, default, text, more in (*_OPTIONS, *OBSERVING, *extra):
        given = dict(more)
        in_form = given.pop("include_in_web_ui", True)
        action = group.add_argument(
            f"--{name}",
            default=defaults.get(name, default),
            help=text.replace("%", "%%"),
            env_var="PIPESWARM_" + name.upper().replace("-", "_"),
            **given,
        )
        # What Locust's own parser sets on the arguments that it adds outside of groups.
        action.include_in_web_ui = in_form
        action.is_secret = action.is_required = action.is_multiple = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of one test, understood. Paths and texts that only a target understands stay in `texts`."""

    host: str
    # None: as many runs as there are scenarios, of the kind `texts["schedule"]`.
    schedule: Schedule | Concurrency | None
    limits: Limits
    seed: int
    slos: tuple[str, ...]
    abort_on: tuple[AbortRule, ...] = ()
    cleanup: Cleanup = Cleanup.NONE
    cleanup_rate: float = 20.0  # requests a second
    most_runs: int | None = None  # none: no bound
    redact: tuple[str, ...] = ()  # parameters
    texts: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The option `name` as it was given."""
        return self.texts.get(name, "").strip()

    def observing(self) -> list[str]:
        """The observer's command line: its options as they were given. It finds the token in its environment."""
        given = [(name, default, self.text(name)) for name, default, *_ in OBSERVING if name != "token-file"]
        return [
            word
            for name, default, text in given
            if text and text != default
            for word in ((f"--{name}",) if default is False else (f"--{name}", text))
        ]

    def ignored_options(self) -> str:
        """A sentence each on users and on options that were given and say nothing to this schedule; "" without any."""
        kind = self.text("schedule")
        others = frozenset().union(*_HEEDED.values()) - _HEEDED[kind]
        idle = [
            f"--{name}" for name, default, *_ in _OPTIONS if name in others and self.text(name) not in {"", default}
        ]
        told = f"note: the schedule '{kind}' does not heed {', '.join(idle)}\n" if idle else ""
        users = int(self.text("users"))
        if users > 1 and kind != "concurrency":
            told += (
                f"note: -u {users} does not set the rate of runs, the schedule '{kind}' does; one user is enough "
                "(--schedule concurrency keeps as many runs in flight as users)\n"
            )
        return told

    def schedule_for(self, scenarios: int) -> Schedule | Concurrency:
        """The schedule; without ``--runs`` one run a scenario."""
        return self.schedule or _schedule(self.texts, scenarios)

    def arrivals(self, scenarios: int = 1) -> int:
        """How many arrivals there will be as far as that is known: 0 where the platform's pace decides it."""
        schedule = self.schedule_for(scenarios)
        if isinstance(schedule, Concurrency):
            return schedule.runs or 0
        return sum(1 for _ in schedule.offsets(self.seed))


def settings(options: argparse.Namespace, host: str, extra: Sequence[Option]) -> Settings:
    """Understand parsed options: ours and a target's own (`extra`).

    Raises:
        ConfigError: an option's text can't be understood.
    """
    texts = {
        name: str(getattr(options, name.replace("-", "_"), None) or "") for name, *_ in (*_OPTIONS, *OBSERVING, *extra)
    }
    texts |= {"users": str(options.num_users or 1), "spawn-rate": str(options.spawn_rate or 1)}  # Locust's own
    limits = Limits(
        drain_s=_duration(texts, "drain"),
        max_in_flight=_above_0(texts, "max-in-flight", int),
        answer_timeout_s=_above_0(texts, "answer-timeout", parse_duration),
    )
    by_runs = texts["schedule"] in {"spread", "burst"}
    known = texts["runs"].strip() or not by_runs or not texts["scenarios"].strip()
    return Settings(
        host=host.strip().rstrip("/"),
        schedule=_schedule(texts, _DEFAULT_RUNS) if known else None,
        limits=limits,
        seed=_whole(texts, "seed"),
        slos=several(texts["slo"]),
        abort_on=tuple(parse_abort(rule) for rule in several(texts["abort-on"])),
        cleanup=_read(texts, "cleanup", Cleanup.parse),
        cleanup_rate=_above_0(texts, "cleanup-rate", parse_rate),
        most_runs=None if texts["yes"] or not host.strip() else _whole(texts, "max-runs"),
        redact=several(texts["redact"]),
        texts=texts,
    )


def _schedule(texts: Mapping[str, str], default_runs: int) -> Schedule | Concurrency:
    words = {name: text.strip() for name, text in texts.items()}
    if words["schedule"] == "concurrency":
        return _concurrency(words)
    words["runs"] = words["runs"] or str(default_runs)
    if words["schedule"] in {"stages", "replay"}:
        if not words["schedule-file"]:
            raise ConfigError(f"the schedule {words['schedule']} needs a file", "give it with --schedule-file")
        read = read_stages if words["schedule"] == "stages" else read_replay
        return read(Path(words["schedule-file"]))
    for name, parse in (("for", parse_duration), ("over", parse_duration), ("runs", int), ("times", int)):
        _read(words, name, parse)
    try:
        return make(words)
    except ConfigError as error:
        raise ConfigError(f"--schedule {words['schedule']}: {error.message}", error.hint) from error


def _concurrency(words: Mapping[str, str]) -> Concurrency:
    runs = _whole(words, "runs") if words["runs"] else None
    if words["schedule-file"]:
        levels = read_levels(Path(words["schedule-file"]))
    else:
        levels = (Level(int(words["users"]), None if runs else _duration(words, "for")),)
    try:
        return Concurrency(levels, float(words["spawn-rate"]), runs)
    except ConfigError as error:
        raise ConfigError(f"--schedule concurrency: {error.message}", error.hint) from error


def _duration(texts: Mapping[str, str], name: str) -> float:
    return _read(texts, name, parse_duration)


def _whole(texts: Mapping[str, str], name: str) -> int:
    return _read(texts, name, lambda text: int(text.replace("_", "")))


def _above_0(texts: Mapping[str, str], name: str, parse: Callable[[str], N]) -> N:
    value = _read(texts, name, parse)
    if value <= 0:
        raise ConfigError(f"--{name}: it is {texts[name]}", "give a value above 0")
    return value


def _read(texts: Mapping[str, str], name: str, parse: Callable[[str], V]) -> V:
    try:
        return parse(texts[name].strip())
    except ConfigError as error:
        raise ConfigError(f"--{name}: {error.message}", error.hint) from error
    except ValueError:
        raise ConfigError(f"--{name}: '{texts[name]}' is not a number", f"write a number after --{name}") from None

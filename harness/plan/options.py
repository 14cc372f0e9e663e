"""The options of a load test: declared here, by the kinds of schedules and by targets; parsed once, into `Settings`.

Command line, ``locust.conf``, environment, Locust's web form and docs/options.md all come from these declarations.
"""

import argparse
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model.abort import AbortRule, parse_abort
from harness.model.arguments import address, count, duration_above_0, rate_above_0
from harness.model.errors import ConfigError
from harness.model.options import Option, parse_pair, with_defaults
from harness.model.plan import Limits, ObserverPlan
from harness.model.schedules import Concurrency, Replay, Schedule, due_times, find_kind, kinds, schedule_options
from harness.model.schedules.registry import DEFAULT
from harness.model.schedules.schedule import RUNS
from harness.model.slo import Slo, parse_share, parse_slo
from harness.model.text.redaction import without_credentials
from harness.model.units import parse_duration, parse_rate
from harness.plan.schedule_files import read_document, scenarios_of
from harness.targets.credentials import parse_field
from harness.targets.discovery import own_host
from harness.targets.scenarios import ParamMode
from harness.targets.target import Cleanup, Platform

_DEFAULT_RUNS = 60
_BUILT_IN = re.compile(r"[\w-]+")  # a profile's name; anything else is a path


def _parse_page(text: str) -> tuple[str, str]:
    profile, url = parse_pair(text)
    return profile, without_credentials(url)


SCHEDULE = Option("schedule", DEFAULT, f"when runs are due: {', '.join(kinds())}", choices=tuple(kinds()))
NO_WHAT_IF = Option("no-what-if", False, "do not predict what the findings' fixes would bring", in_form=False)
LOAD: tuple[Option, ...] = (
    Option("drain", "10m", "how long to wait for the last runs after the last arrival", parse_duration),
    Option(
        "scenarios", "", "CSV with id,scenario_name,… (default: generated from the pipeline's inputs)", Path, file="csv"
    ),
    Option(
        "param-mode", "columns", "columns: one column per parameter · json:NAME: the row as a JSON list in NAME",
        ParamMode.parse,
    ),
    Option("seed", "7", "seed of the schedule, the generated scenarios and the simulated platform", int),
    Option("slo", "", "objective, as 'p95(run.duration) < 20m'; repeatable", parse_slo, repeatable=True),
    Option("undecided", "pass", "whether objectives that are met, but not proven, pass", choices=("pass", "fail")),
    Option(
        "max-error-ratio", "5%", "share of rejected submissions above which the test fails, with or without an --slo",
        parse_share,
    ),
    Option(
        "baseline", "", "earlier run of the same load, or its report.json; exit code 3 if significantly slower", Path,
        file="report",
    ),
    Option(
        "reasons", "", "your own rows of the catalogue of stated reasons (docs/reference/reasons.md), in YAML", Path,
        in_form=False,
    ),
    Option(
        "abort-on", "", "abort the test when this holds, as 'failed_ratio > 0.2 for 1m'; repeatable", parse_abort,
        repeatable=True,
    ),
    Option(
        "max-runs", "10000", "refuse to send more runs to a real platform, unless --yes is given", int, in_form=False
    ),
    Option("yes", False, "send more than --max-runs", in_form=False),
    Option("cleanup", "none", "what to do with the test's runs at its end", Cleanup, tuple(map(str, Cleanup))),
    Option("cleanup-rate", "20/s", "limit on clean-up requests", rate_above_0),
    Option(
        "simulate", "demo", "profile of the simulated platform; used without --host", file="yaml",
        is_name=lambda text: _BUILT_IN.fullmatch(text) is not None,
    ),
    Option("fault", "", "fault injected into the simulated platform, as store-full or store-full@30s"),
    Option("namespace", "", "namespace of the runs and their pods (multi-user installations)"),
    Option("max-in-flight", "10000", "open requests per worker; arrivals beyond it are recorded as missed", count),
    Option("answer-timeout", "60s", "a submission without a response after this time is rejected", duration_above_0),
    Option("runs-dir", "runs", "where run folders go", Path, in_form=False),
    Option("run-name", "", "name of the run folder (default: time, target, schedule, runs)"),
    Option("overwrite", False, "replace the run folder that has this --run-name", in_form=False),
    NO_WHAT_IF,
)  # fmt: skip
INSECURE = Option("insecure", False, "skip TLS certificate checks (platform and Prometheus)", in_form=False)
CREDENTIALS: tuple[Option, ...] = (
    Option(
        "token-file", "", "file with the bearer token, read again as it changes (default: variable PIPESWARM_TOKEN)",
        in_form=False,
    ),
    Option(
        "kubeconfig-token", False, "send the kubeconfig's bearer token to the platform, renewed by its exec plugin",
        in_form=False,
    ),
    Option(
        "header", "", "header of the requests to the platform, as 'kubeflow-userid: me@example.org'; repeatable",
        parse_field, repeatable=True, in_form=False,
    ),
    Option("cookie-file", "", "cookies of a session at the platform (Netscape's format)", in_form=False),
    Option("client-certificate", "", "PEM file with the certificate to show to the platform", in_form=False),
    Option("client-key", "", "PEM file with its key (default: in the same file)", in_form=False),
    Option("ca-file", "", "PEM file with the authorities of the platform's certificate", in_form=False),
)  # fmt: skip
OBSERVER: tuple[Option, ...] = (
    Option("platform-namespace", "", "namespace of the platform (default: kubeflow); repeatable", repeatable=True),
    Option("kube-context", "", "kubeconfig context of the cluster to observe", in_form=False),
    Option("kube-requests", "20/s", "limit on requests to the Kubernetes API", rate_above_0, in_form=False),
    Option("prometheus", "", "address of a Prometheus with the platform's metrics", without_credentials, in_form=False),
    Option(
        "metric-profile", "", "metrics to query there (default: all profiles that match); repeatable", repeatable=True,
        in_form=False,
    ),
    Option(
        "metrics", "", "metrics page to scrape, as PROFILE=URL; repeatable", _parse_page, repeatable=True, in_form=False
    ),
    Option("store-probe", "", "bucket to write probe objects to, as s3://NAME: detects a full store", in_form=False),
    Option(
        "collector-option", "", "option of a collector, as NAME=VALUE; repeatable", parse_pair, repeatable=True,
        in_form=False,
    ),
    INSECURE,
    Option(
        "redact", "", "parameter whose values are hidden in all that is recorded; repeatable", repeatable=True,
        in_form=False,
    ),
    *CREDENTIALS,
)  # fmt: skip
WEB_FILES = Option(
    "web-files", ".", "folder whose files the web form may use, and into which it uploads", in_form=False
)
WEB_HOST_NAME = Option(
    "web-host-name", "", "further name under which browsers reach the web UI; repeatable",
    repeatable=True, in_form=False,
)  # fmt: skip
SERVE_METRICS = Option(
    "serve-metrics", "", "[ADDRESS:]PORT of a page /metrics for Prometheus, without a login, also headless", address,
    in_form=False,
)  # fmt: skip
WEB = (WEB_FILES, WEB_HOST_NAME, SERVE_METRICS)


def named(*names: str) -> tuple[Option, ...]:
    """The load's options of these names."""
    by_name = {option.name: option for option in (SCHEDULE, *LOAD)}
    return tuple(by_name[name] for name in names)


def declared(platform: Platform) -> tuple[Option, ...]:
    """All options of a load test, with a platform's own options and defaults."""
    ours = (SCHEDULE, *schedule_options(), *LOAD, *OBSERVER, *WEB)
    return (*with_defaults(ours, platform.DEFAULTS), *platform.OPTIONS)


def groups(platform: Platform) -> dict[str, tuple[Option, ...]]:
    """All options of a load test by what they are about, as ``--help`` and the web form group them.

    The first group is what every test is asked for: a target's first option says what runs.
    """
    load = named("schedule") + schedule_options() + tuple(platform.OPTIONS[:1]) + named("scenarios", "slo")
    installation = named("simulate", "fault", "namespace") + OBSERVER
    of_groups = {"Load": load, "Platform": installation, "Pipeline": tuple(platform.OPTIONS[1:]), "Web UI": WEB}
    placed = {option.name for options in (load, installation) for option in options}
    limits = tuple(option for option in LOAD if option.name not in placed)
    return {
        title: with_defaults(options, platform.DEFAULTS)
        for title, options in {**of_groups, "Records and limits": limits}.items()
        if options
    }


def formats_of_files(platform: Platform) -> dict[str, frozenset[str]]:
    """The options that name files, with the formats of each; those of ``--schedule-file`` differ by schedule."""
    found: dict[str, frozenset[str]] = {}
    of_schedules = (option for kind in kinds().values() for option in kind.OPTIONS)
    for option in (*declared(platform), *of_schedules):
        if option.file:
            found[option.name] = found.get(option.name, frozenset()) | {option.file}
    return found


def files_of_schedules() -> tuple[str, ...]:
    """The options that name files which `settings` reads."""
    return tuple(option.name for option in schedule_options() if option.file)


def check_texts(options: argparse.Namespace, platform: Platform) -> None:
    """Check what `settings` checks, as far as no file is read for it.

    Raises:
        ConfigError: naming the option whose text can't be parsed.
    """
    for option in declared(platform):
        option.read(getattr(options, option.dest, None))


def register(parser: Any, platform: Platform) -> None:
    """Add all options of a load test to Locust's parser."""
    for title, options in groups(platform).items():
        group = parser.add_argument_group(f"Pipeswarm: {title}")
        for option in options:
            action = option.add_to(group, env_var=option.variable)
            # What Locust's own parser sets on the arguments that it adds outside of groups.
            action.include_in_web_ui = option.in_form
            action.is_secret = action.is_required = action.is_multiple = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of one load test, parsed.

    `schedule` has 60 runs as long as the number of scenarios is unknown: see `schedule_for`.
    """

    host: str
    schedule: Schedule | Concurrency
    limits: Limits
    seed: int
    slos: tuple[str, ...] = ()
    abort_on: tuple[AbortRule, ...] = ()
    cleanup: Cleanup = Cleanup.NONE
    cleanup_rate: float = 20.0  # requests a second
    most_runs: int | None = None  # none: no bound
    scenarios: Path | None = None
    param_mode: ParamMode = field(default_factory=ParamMode)
    baseline: Path | None = None
    reasons: Path | None = None
    simulate: str = ""
    fault: str = ""
    runs_dir: Path = Path("runs")
    run_name: str = ""
    overwrite: bool = False
    verify_tls: bool = True
    redact: tuple[str, ...] = ()  # parameters
    observer: ObserverPlan = field(default_factory=ObserverPlan)
    target: Mapping[str, str] = field(default_factory=dict)  # texts of the target's own options, and the namespace
    ignored: tuple[str, ...] = ()  # options that were given, and that this kind of schedule does not read
    assumed: tuple[str, ...] = ()  # how texts without a unit were read
    users: int = 1
    traced: bool = False
    no_what_if: bool = False
    per_scenario: Mapping[str, Any] | None = None  # the schedule's values, where it has one run per scenario

    def notes(self) -> str:
        """A note each on units that were assumed, and on what the schedule ignores; "" without any."""
        kind, notes = self.schedule.name, ""
        if self.assumed:
            notes += f"note: without a unit, {', '.join(self.assumed)}\n"
        if self.ignored:
            verb = "is" if len(self.ignored) == 1 else "are"
            notes += f"note: {', '.join(self.ignored)} {verb} ignored by --schedule {kind}\n"
        if self.users > 1 and not isinstance(self.schedule, Concurrency):
            notes += (
                f"note: -u {self.users} is ignored by --schedule {kind}, one user is enough "
                "(--schedule concurrency keeps as many runs in flight as users)\n"
            )
        return notes

    def schedule_for(self, scenarios: int) -> Schedule | Concurrency:
        """The schedule; without ``--runs`` one run per scenario."""
        if self.per_scenario is None:
            return self.schedule
        return _schedule(self.schedule.name, {**self.per_scenario, "scenarios": scenarios})

    def arrivals(self, scenarios: int = 1) -> int:
        """How many arrivals there will be; 0 where the platform's pace decides it."""
        schedule = self.schedule_for(scenarios)
        if isinstance(schedule, Concurrency):
            return schedule.runs or 0
        return len(due_times(schedule, self.seed))


def settings(options: argparse.Namespace, host: str, platform: Platform) -> Settings:
    """Parse what was given for the options of a load test; what is missing in `options` has its default.

    Raises:
        ConfigError: naming the option whose text can't be parsed.
    """
    known = declared(platform)
    texts = {option.name: option.text(getattr(options, option.dest, None)) for option in known}
    host = host.strip().rstrip("/") or own_host(platform, {name: str(text) for name, text in texts.items()})
    given = _read((SCHEDULE, *LOAD, *OBSERVER, *platform.OPTIONS), texts)
    own = find_kind(given["schedule"]).OPTIONS
    values = {
        **_schedule_values(own, texts),
        "users": int(getattr(options, "num_users", None) or 1),  # Locust's own
        "spawn-rate": float(getattr(options, "spawn_rate", None) or 1),
        "scenarios": _DEFAULT_RUNS,
    }
    schedule = _schedule(given["schedule"], values)
    if isinstance(schedule, Replay) and given["scenarios"] is None:
        given["scenarios"] = scenarios_of(Path(schedule.source))
    idle = {schedule_option.name for schedule_option in schedule_options()} - {option.name for option in own}
    return Settings(
        host=host,
        schedule=schedule,
        limits=Limits(
            drain_s=given["drain"],
            max_in_flight=given["max-in-flight"],
            answer_timeout_s=given["answer-timeout"],
            max_error_ratio=given["max-error-ratio"],
            fail_undecided=given["undecided"] == "fail",
        ),
        most_runs=None if given["yes"] or not host else given["max-runs"],
        verify_tls=not given["insecure"],
        observer=observer_plan(given),
        target={option.name: str(texts[option.name]) for option in (*platform.OPTIONS, *named("namespace"))},
        ignored=tuple(
            f"--{option.name}" for option in known if option.name in idle and texts[option.name] != option.default
        ),
        assumed=assumed_units((*own, *LOAD), texts, given["slo"]),
        users=values["users"],
        traced=bool(getattr(options, "otel", False)),  # Locust's own
        per_scenario=values if RUNS in own and values["runs"] is None and given["scenarios"] else None,
        slos=tuple(slo.text for slo in given["slo"]),
        **{name: given[name.replace("_", "-")] for name in _AS_GIVEN},
    )


def assumed_units(options: Iterable[Option], texts: Mapping[str, str | bool], slos: Iterable[Slo]) -> tuple[str, ...]:
    """How rates, durations and limits of objectives were read that have no unit; 0 needs none."""
    bare = [
        (f"--{option.name}", str(texts[option.name]), _ASSUMED[option.parse])
        for option in options
        if option.parse in _ASSUMED
    ]
    bare += [(f"'{slo.text}'", re.split(r"[<>]=?", slo.text)[-1].strip(), slo.unit) for slo in slos if slo.unit]
    return tuple(f"{name} is read as {text}{unit}" for name, text, unit in bare if _is_bare(text))


def _is_bare(text: str) -> bool:
    try:
        return float(text) != 0
    except ValueError:
        return False


_ASSUMED: Mapping[object, str] = {parse_rate: "/s", rate_above_0: "/s", parse_duration: "s", duration_above_0: "s"}
# Fields of `Settings` that are the values of the options of the same names.
_AS_GIVEN = (
    "seed", "abort_on", "cleanup", "cleanup_rate", "scenarios", "param_mode", "baseline", "reasons", "simulate",
    "fault", "runs_dir", "run_name", "overwrite", "no_what_if", "redact",
)  # fmt: skip


def _read(options: Iterable[Option], texts: Mapping[str, str | bool]) -> dict[str, Any]:
    return {option.name: option.read(texts[option.name]) for option in options}


def _schedule_values(options: Iterable[Option], texts: Mapping[str, str | bool]) -> dict[str, Any]:
    """The values of a schedule's options; that of a file is a `Document`, or none."""
    values = _read(options, texts)
    for option in options:
        if option.file:
            values[option.name] = read_document(Path(values[option.name]), option.file) if values[option.name] else None
    return values


def observer_plan(given: Mapping[str, Any]) -> ObserverPlan:
    """What to observe, of the values of `OBSERVER`."""
    return ObserverPlan(
        platform_namespaces=given["platform-namespace"] or ObserverPlan().platform_namespaces,
        kube_context=given["kube-context"],
        kube_requests_per_s=given["kube-requests"],
        prometheus=given["prometheus"] or "",
        metric_profiles=given["metric-profile"],
        metrics=given["metrics"],
        store_probe=given["store-probe"],
        collector_options=given["collector-option"],
        verify_tls=not given["insecure"],
    )


def _schedule(kind: str, values: Mapping[str, Any]) -> Schedule | Concurrency:
    try:
        return find_kind(kind).parse(values)
    except ConfigError as error:
        raise ConfigError(f"--schedule {kind}: {error.message}", error.hint) from error

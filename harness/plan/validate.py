"""Checks a test offline: scenarios, pipeline and baseline are read before anything is started or sent."""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

from harness import reading
from harness.model.baseline import Baseline
from harness.model.errors import ConfigError
from harness.model.scenario import Scenario
from harness.model.schedules import Replay
from harness.plan.environment import default_namespace
from harness.plan.options import Settings
from harness.plan.subprocesses import generate_scenarios
from harness.plan.trace_exporter import exporter_module
from harness.store.baselines import find_baseline
from harness.store.folder import PIPELINE, SCENARIOS
from harness.store.names import demand_free
from harness.store.reasons import read_reasons
from harness.targets.scenarios import Input, ParamMode, read_scenarios
from harness.targets.target import Platform, Prepared

_MOST_GENERATED = 100_000


class OverLimitError(ConfigError):
    """There would be more runs than ``--max-runs``."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A test's configuration, checked offline: everything but what only the platform knows."""

    settings: Settings
    target: str
    prepared: Prepared
    scenarios: tuple[Scenario, ...] | None  # none: the inputs are unknown yet, or they are generated
    baseline: tuple[Baseline, bytes] | None = None  # with its report.json
    reasons: bytes | None = None  # the user's own rows of the catalogue


def check(settings: Settings, target: str, platform: Platform) -> Checked:
    """Read and check everything that is on this machine.

    Raises:
        ConfigError: it can't work; nothing has been started or written.
    """
    if not settings.host and not platform.DEFAULTS.get("simulate"):
        raise ConfigError(f"there is no simulated {target}", f"give --host, or set {platform.HOST_VARIABLE}")
    if settings.run_name:
        demand_free(settings.runs_dir, settings.run_name, overwrite=settings.overwrite)
    if settings.traced:
        exporter_module()
    prepared = platform.prepare(settings.target, simulated=not settings.host)
    if settings.host and not prepared.options.get("namespace") and (namespace := default_namespace(platform)):
        prepared = replace(prepared, options={**prepared.options, "namespace": namespace})
    path, scenarios = settings.scenarios, None
    if path and prepared.inputs is not None:
        scenarios = tuple(read_scenarios(path, prepared.inputs, settings.param_mode))
    elif path and not path.is_file():
        raise ConfigError(
            f"{path} can't be read: there is no such file", f"create it: generate-scenarios --n 100 -o {path}"
        )
    if settings.per_scenario is None or scenarios is not None:
        guard(settings, settings.arrivals(len(scenarios or ())))
    baseline = find_baseline(settings.baseline) if settings.baseline else None
    reasons = read_reasons(settings.reasons) if settings.reasons else None
    return Checked(settings, target, prepared, scenarios, baseline, reasons)


def guard(settings: Settings, arrivals: int) -> None:
    """Guard a real platform against thousands of runs by mistake.

    Raises:
        OverLimitError: there would be more than ``--max-runs``, without ``--yes``.
    """
    if settings.most_runs is not None and arrivals > settings.most_runs:
        raise OverLimitError(
            f"{arrivals:,} runs would be sent to {settings.host}, more than --max-runs {settings.most_runs:,}",
            "if you mean it, add --yes or raise --max-runs",
        )


def scenarios_for(checked: Checked, inputs: tuple[Input, ...]) -> tuple[list[Scenario], bytes]:
    """The scenarios in the order of their arrivals, and the bytes of their CSV: given, or generated from the inputs.

    Raises:
        ConfigError: they don't fit the inputs, or can't be generated.
    """
    scenarios, table = _all_scenarios(checked, inputs)
    schedule = checked.settings.schedule
    if isinstance(schedule, Replay) and schedule.scenarios:
        scenarios = in_order(scenarios, schedule.scenarios, schedule.source)
    if isinstance(schedule, Replay) and schedule.tenants:
        scenarios = _of_tenants(scenarios, schedule.tenants)
    return scenarios, table


def demand_known_tenants(scenarios: Sequence[Scenario], known: Sequence[str]) -> None:
    """Refuse scenarios of tenants that the platform has no place for; where none are `known`, it has one for all.

    Raises:
        ConfigError: naming the first of these tenants.
    """
    unknown = next((scenario for scenario in scenarios if scenario.tenant not in known), None) if known else None
    if unknown is not None:
        who = f"is of the tenant '{unknown.tenant}', who has no namespace" if unknown.tenant else "has no tenant"
        raise ConfigError(
            f"the scenario {unknown.id} {who}", f"give the column tenant one of these: {', '.join(known)}"
        )


def _of_tenants(scenarios: Sequence[Scenario], tenants: Sequence[str]) -> list[Scenario]:
    """One scenario per arrival, in turn where there are fewer, each of the tenant that the schedule names."""
    rounds = (
        replace(scenario, name=f"{scenario.name}-{turn}") if turn > 1 else scenario
        for turn in count(1)
        for scenario in scenarios
    )
    return [replace(scenario, tenant=tenant) for scenario, tenant in zip(rounds, tenants, strict=False)]


def in_order(scenarios: list[Scenario], ids: Sequence[str], source: str) -> list[Scenario]:
    """One scenario per arrival, by the `ids` that the schedule `source` names; repeated ones get a numbered name.

    Raises:
        ConfigError: the schedule names an unknown scenario.
    """
    known = {scenario.id: scenario for scenario in scenarios}
    turns: Counter[str] = Counter()
    ordered = []
    for row, id_ in enumerate(ids, 2):
        if id_ not in known:
            raise ConfigError(
                f"{source}, row {row}, column scenario_id: there is no scenario '{id_}'",
                "give the scenarios that the schedule was made for with --scenarios; of an earlier run, leave it out, "
                "or give its schedule.csv for the due times alone",
            )
        turns[id_] += 1
        scenario = known[id_]
        ordered.append(scenario if turns[id_] == 1 else replace(scenario, name=f"{scenario.name}-{turns[id_]}"))
    return ordered


def _all_scenarios(checked: Checked, inputs: tuple[Input, ...]) -> tuple[list[Scenario], bytes]:
    settings = checked.settings
    if path := settings.scenarios:
        return list(checked.scenarios or read_scenarios(path, inputs, settings.param_mode)), _table(path)
    count = max(min(settings.arrivals(), _MOST_GENERATED), 1)
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
        pipeline, out = Path(place) / PIPELINE, Path(place) / SCENARIOS
        if checked.prepared.package is None:
            out.write_text(_without_values(inputs, count))
        else:
            pipeline.write_bytes(checked.prepared.package)
            # A target's first option says what runs.
            source = next(iter(settings.target.values()), "") or "the pipeline"
            generate_scenarios(checked.prepared.inferred_with, pipeline, count, settings.seed, out, source)
        return read_scenarios(out, inputs, ParamMode()), _table(out)


def _table(path: Path) -> bytes:
    return reading.read_bytes(path, reading.MOST_TABLE_BYTES)


def _without_values(inputs: Sequence[Input], count: int) -> str:
    """A CSV of scenarios without columns for inputs: each input keeps its default on the platform.

    Raises:
        ConfigError: an input has no default.
    """
    needed = [each.name for each in inputs if each.required]
    if needed:
        raise ConfigError(
            f"there are no scenarios, and these inputs have no default: {', '.join(needed)}",
            "give --scenarios FILE with a column for each",
        )
    return "".join(["id,scenario_name\n", *(f"{number},run-{number}\n" for number in range(1, count + 1))])


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": sys.version.split()[0]}
    for name in ("pipeswarm", "locust", "gevent", "geventhttpclient", "kubernetes"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found

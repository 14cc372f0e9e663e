"""Makes plans: of a load test, real or simulated, and of an observation without a load."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.run_name import run_name
from harness.model.scenario import Scenario
from harness.model.schedules import Concurrency, Schedule, due_times, to_mapping
from harness.model.text.redaction import values_of, without_credentials
from harness.plan.validate import Checked, guard, scenarios_for, versions
from harness.store.csv_files import schedule_digest
from harness.targets.scenarios import TENANT, Input, as_cell

_EVERYTHING = {"experiment": "", "experiment_id": "", "namespace": ""}


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """All that is known of a test before its run folder is made.

    `offsets` are the due times in seconds after t0, none for a closed schedule; `table` is the CSV of the scenarios;
    `hidden` are the values that must not be recorded.
    """

    plan: Plan
    schedule: Schedule | Concurrency
    offsets: "array[float]"
    scenarios: list[Scenario]
    table: bytes
    hidden: tuple[str, ...]

    @property
    def run_name(self) -> str:
        """The default name of its run folder."""
        size = self.schedule.most_in_flight if isinstance(self.schedule, Concurrency) else len(self.offsets)
        return run_name(self.plan.target, self.schedule.name, size, self.plan.started_at)


def plan_load(
    checked: Checked, host: str, *, simulated: bool, command: Sequence[str], started_at: int, workers: int = 1
) -> Plan:
    """The plan of a load test whose arrivals are not known yet: see `plan_arrivals`."""
    settings = checked.settings
    return Plan(
        target=checked.target,
        host=host,
        schedule={},
        intended=0,
        seed=settings.seed,
        simulated=simulated,
        target_options=dict(checked.prepared.options),
        limits=settings.limits,
        slos=settings.slos,
        versions=versions(),
        command=tuple(map(without_credentials, command)),
        started_at=started_at,
        workers=workers,
        verify_tls=settings.verify_tls,
        redact=settings.redact,
        observer=settings.observer,
        traced=settings.traced,
        name=settings.run_name,
    )


def plan_arrivals(checked: Checked, plan: Plan, inputs: tuple[Input, ...]) -> PlannedTest:
    """A load test with its arrivals, where the pipeline has these `inputs`.

    Raises:
        ConfigError: scenarios, schedule, redaction or baseline don't fit.
    """
    settings = checked.settings
    scenarios, table = scenarios_for(checked, inputs)
    schedule = settings.schedule_for(len(scenarios))
    offsets = array("d") if isinstance(schedule, Concurrency) else due_times(schedule, settings.seed)
    if isinstance(schedule, Concurrency):
        intended = schedule.runs or 0
    elif offsets:
        intended = len(offsets)
    else:
        raise ConfigError("the schedule has no arrivals", "give a higher rate or a longer time")
    guard(settings, len(offsets))
    plan = replace(plan, schedule=to_mapping(schedule), intended=intended)
    _check_redaction(settings.redact, scenarios, inputs)
    if TENANT in settings.redact:
        scenarios = [replace(scenario, tenant="") for scenario in scenarios]
    if checked.baseline is not None:
        digests = {"schedule": schedule_digest(offsets)} if offsets else {}
        checked.baseline[0].demand_same_load(replace(plan, digests=digests))
    return PlannedTest(plan, schedule, offsets, scenarios, table, _hidden(settings.redact, scenarios, inputs))


def plan_observation(target: str, host: str, options: Mapping[str, object], started_at: int) -> Plan:
    """The plan of an observation without a load of ours: nothing is intended, every run counts.

    Args:
        target: the platform's name.
        host: address of its API; "" for an import.
        options: what narrows its listing down, such as KFP's ``namespace`` and ``experiment_id``.
        started_at: UTC ns; earlier runs and events are left out. 0 leaves nothing out.
    """
    of_target = {**_EVERYTHING, **options}
    return Plan(target, host, {}, intended=0, seed=0, simulated=False, target_options=of_target, started_at=started_at)


def _check_redaction(names: Sequence[str], scenarios: Sequence[Scenario], inputs: Sequence[Input]) -> None:
    """A mistyped name would let its values through."""
    known = {name for scenario in scenarios[:1] for name in scenario.row} | {each.name for each in inputs}
    for name in names:
        if name not in known:
            raise ConfigError(f"--redact {name}: there is no such parameter", f"parameters: {', '.join(sorted(known))}")


def _hidden(names: Sequence[str], scenarios: Sequence[Scenario], inputs: Sequence[Input]) -> tuple[str, ...]:
    """The values of these parameters in the scenarios, and their defaults on the platform."""
    defaults = (as_cell(each.default) for each in inputs if each.name in names and each.default is not None)
    return tuple(dict.fromkeys((*values_of(names, (scenario.row for scenario in scenarios)), *defaults)))

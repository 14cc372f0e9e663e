"""What is kept of a former test, so that another one can be held against it; all of it stands in ``report.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.schedules import in_words

BATCHES = 20
LEAST_BATCHES = 8  # that both tests have
LEAST_RUNS = 60  # that succeeded


@dataclass(frozen=True, slots=True)
class Baseline:
    """A former test.

    Attributes:
        name: its name, for people.
        source: where it was read from.
        plan: of its settings only what a report says.
        batches_s: mean duration of the runs that succeeded, by batch of arrivals, seconds; none where there were none.
        failed_ratio: share of its arrivals that failed, were canceled or rejected.
    """

    name: str
    source: str
    plan: Plan
    batches_s: tuple[float | None, ...]
    failed_ratio: float

    @classmethod
    def parse(cls, report: bytes, source: str) -> "Baseline":
        """The baseline in a ``report.json``; `source` is where it came from.

        Raises:
            ConfigError: it is no such report, or one that nothing can be held against.
        """
        try:
            raw = json.loads(report)
            if not isinstance(raw, dict) or "schema_version" not in raw:
                raise ConfigError(f"the baseline {source} is no report of Pipeswarm", "give a run's folder")
            if "batches_s" not in raw:
                raise ConfigError(
                    f"the baseline {source} was written by an older version", "write its report again: pipeswarm report"
                )
            ledger, verdict = raw["ledger"], raw["validity"]
            failed = ledger["failed"] + ledger["canceled"] + ledger["rejected"]
            failed_ratio = failed / max(ledger["intended"], 1)
            found = cls(raw["name"], source, _plan(raw["plan"]), tuple(raw["batches_s"]), failed_ratio)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"the baseline {source} can't be read: {error!r}", "give a run's folder") from None
        if verdict["verdict"] != "VALID":
            why = (verdict["reasons"] or ["unknown"])[0]
            raise ConfigError(f"the baseline {source} does not count, its test was INVALID: {why}", "give another run")
        if sum(batch is not None for batch in found.batches_s) < LEAST_BATCHES:
            raise ConfigError(
                f"the baseline {source} says too little: {ledger['succeeded']} of its runs succeeded",
                f"give a run of which at least {LEAST_RUNS} did",
            )
        return found

    def demand_same_load(self, plan: Plan) -> None:
        """See to it that a test with `plan` can be held against this one.

        Raises:
            ConfigError: it is of another platform, schedule or scale; what is slower then says nothing.
        """
        for difference in differences(self.plan, plan):
            if difference.startswith(_OF_THE_LOAD):
                raise ConfigError(
                    f"the baseline {self.source} is of another load: {difference}",
                    "repeat its load, or give another run",
                )


_DIGEST, _SHOWN = 64, 12  # digits
_OF_THE_LOAD = ("target", "runs", "schedule")


def differences(a: Plan, b: Plan) -> tuple[str, ...]:
    """Settings in which two tests differ, for people.

    How many runs a closed test came to is no setting. Equal due times are an equal schedule, such as a replayed one.
    """
    closed = "closed" in {a.schedule.get("model"), b.schedule.get("model")}
    same = a.digests.get("schedule", "a") == b.digests.get("schedule", "b")
    named = {
        "target": (a.target, b.target),
        "runs": (0, 0) if closed else (a.intended, b.intended),
        "schedule": (0, 0) if same else (_plain(a.schedule), _plain(b.schedule)),
        **{
            name: (a.digests.get(name), b.digests.get(name)) for name in sorted({*a.digests, *b.digests} - {"schedule"})
        },
    }
    return tuple(f"{name}: {_said(old)} and {_said(new)}" for name, (old, new) in named.items() if old != new)


def _plan(raw: Mapping[str, Any]) -> Plan:
    names = ("target", "host", "schedule", "intended", "seed", "simulated", "digests", "versions", "workers")
    return Plan(**{name: raw[name] for name in names})


def _plain(value: Mapping[str, object]) -> object:
    """As it is read from JSON: a tuple is a list."""
    return json.loads(json.dumps(value))


def _said(value: object) -> object:
    if isinstance(value, str) and len(value) == _DIGEST:
        return value[:_SHOWN]
    return "none" if value is None else in_words(value) if isinstance(value, dict) else value

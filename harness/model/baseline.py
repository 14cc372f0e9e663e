"""An earlier test that a new one is compared with, as its ``report.json`` describes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.schedules import in_words

BATCHES = 20
LEAST_BATCHES = 8  # in both tests
LEAST_RUNS = 60  # successful ones


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier test.

    Attributes:
        name: its name, for people.
        source: path it was read from.
        plan: with only the settings that a report holds.
        batches_s: mean duration of successful runs by batch of arrivals, seconds; None for a batch without any.
        failed_ratio: share of its arrivals that failed, were canceled or were rejected.
    """

    name: str
    source: str
    plan: Plan
    batches_s: tuple[float | None, ...]
    failed_ratio: float

    @classmethod
    def parse(cls, report: bytes, source: str) -> "Baseline":
        """The baseline in a ``report.json``; `source` is its path.

        Raises:
            ConfigError: it is not such a report, its test was invalid, or too few of its runs succeeded.
        """
        try:
            raw = json.loads(report)
            if not isinstance(raw, dict) or "schema_version" not in raw:
                raise ConfigError(f"the baseline {source} is not a report of Pipeswarm", "give a run's folder")
            if "batches_s" not in raw:
                raise ConfigError(
                    f"the baseline {source} was written by an older version", "rewrite its report: pipeswarm report"
                )
            ledger, verdict = raw["ledger"], raw["validity"]
            failed = ledger["failed"] + ledger["canceled"] + ledger["rejected"]
            failed_ratio = failed / max(ledger["intended"], 1)
            found = cls(raw["name"], source, _plan(raw["plan"]), tuple(raw["batches_s"]), failed_ratio)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"the baseline {source} can't be read: {error!r}", "give a run's folder") from None
        if verdict["verdict"] != "VALID":
            why = (verdict["reasons"] or ["unknown"])[0]
            raise ConfigError(f"the baseline {source} is INVALID: {why}", "give another run")
        if sum(batch is not None for batch in found.batches_s) < LEAST_BATCHES:
            raise ConfigError(
                f"the baseline {source} is too small: {ledger['succeeded']} of its runs succeeded",
                f"give a test with at least {LEAST_RUNS} successful runs",
            )
        return found

    def demand_same_load(self, plan: Plan) -> None:
        """Check that a test with `plan` is comparable.

        Raises:
            ConfigError: its platform, schedule or number of runs differs, so that slower would mean nothing.
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

    The number of runs of a closed test is a result, not a setting. Equal due times are equal schedules, as in a replay.
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
    return tuple(f"{name}: {_in_words(old)} and {_in_words(new)}" for name, (old, new) in named.items() if old != new)


def _plan(raw: Mapping[str, Any]) -> Plan:
    names = ("target", "host", "schedule", "intended", "seed", "simulated", "digests", "versions", "workers")
    return Plan(**{name: raw[name] for name in names})


def _plain(value: Mapping[str, object]) -> object:
    """As JSON would return it: tuples are lists."""
    return json.loads(json.dumps(value))


def _in_words(value: object) -> object:
    if isinstance(value, str) and len(value) == _DIGEST:
        return value[:_SHOWN]
    return "none" if value is None else in_words(value) if isinstance(value, dict) else value

"""An earlier test that a new one is compared with, as its ``report.json`` describes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.schedules import in_words
from harness.model.text.typed import from_plain

BATCHES = 20
LEAST_BATCHES = 8  # in both tests
LEAST_RUNS = 60  # successful ones


@dataclass(frozen=True, slots=True)
class _Validity:
    verdict: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Report:
    """What a baseline needs of a ``report.json``."""

    name: str
    plan: Mapping[str, object]
    batches_s: tuple[float | None, ...]
    ledger: Mapping[str, int]
    validity: _Validity


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
    def parse(cls, report: object, source: str) -> "Baseline":
        """The baseline in a ``report.json``, given as plain values; `source` is its path.

        Raises:
            ConfigError: it is not such a report, its test was invalid, or too few of its runs succeeded.
        """
        if not isinstance(report, Mapping) or "schema_version" not in report:
            raise ConfigError(f"the baseline {source} is not a report of Pipeswarm", "give a run's folder")
        if "batches_s" not in report:
            raise ConfigError(
                f"the baseline {source} was written by an older version", "rewrite its report: pipeswarm report"
            )
        try:
            raw = from_plain(_Report, report)
            ledger, verdict, plan = raw.ledger, raw.validity, _plan(raw.plan)
            failed = ledger["failed"] + ledger["canceled"] + ledger["rejected"]
            succeeded, intended = ledger["succeeded"], ledger["intended"]
        except (KeyError, TypeError) as error:
            raise ConfigError(f"the baseline {source} can't be read: {error}", "give a run's folder") from None
        if verdict.verdict != "VALID":
            raise ConfigError(
                f"the baseline {source} is INVALID: {(*verdict.reasons, 'unknown')[0]}", "give another run"
            )
        if sum(batch is not None for batch in raw.batches_s) < LEAST_BATCHES:
            raise ConfigError(
                f"the baseline {source} is too small: {succeeded} of its runs succeeded",
                f"give a test with at least {LEAST_RUNS} successful runs",
            )
        return cls(raw.name, source, plan, raw.batches_s, failed / max(intended, 1))

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
    return Plan.from_mapping({name: raw[name] for name in names})


def _plain(value: Mapping[str, object]) -> object:
    """As JSON would return it: tuples are lists."""
    return json.loads(json.dumps(value))


def _in_words(value: object) -> object:
    if isinstance(value, str) and len(value) == _DIGEST:
        return value[:_SHOWN]
    return "none" if value is None else in_words(value) if isinstance(value, dict) else value

"""The manifest: the plan as a JSON document with the number of its format."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from harness import reading
from harness.model import ConfigError, Plan
from harness.model.schedules import MOST_ARRIVALS

FORMAT = 1  # of the run folder: raised when an older version would misread it
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
_HINT = "the folder may be damaged, or from another tool"
_LATEST_AT = 2**62  # in the year 2116; differences still fit 64 bits
_LONGEST_S = 1e9


def written(plan: Plan) -> bytes:
    """The document of a plan."""
    return orjson.dumps({"format": FORMAT, **asdict(plan)}, option=_OPTIONS) + b"\n"


def parsed(content: bytes, source: object) -> Plan:
    """The plan in a document; one without a number is of the first format.

    Raises:
        ConfigError: it is of another format, or not a plan; says what is wrong.
    """
    raw = reading.parse_json(content, source, _HINT)
    if not isinstance(raw, dict):
        raise ConfigError(f"{source} is not a mapping", _HINT)
    _check_format(raw.get("format", FORMAT), source)
    try:
        plan = Plan.from_mapping(raw)
    except TypeError as error:
        raise ConfigError(f"{source} can't be read: {error}", _HINT) from error
    if problem := _problem(plan):
        raise ConfigError(f"{source}: {problem}", _HINT)
    return plan


def _check_format(number: object, source: object) -> None:
    if number == FORMAT and not isinstance(number, bool):
        return
    if not isinstance(number, int):
        raise ConfigError(f"{source}: 'format' is {number!r}, not a whole number", _HINT)
    age, then = ("a newer", "install it") if number > FORMAT else ("an older", "read it with that version")
    raise ConfigError(f"{source} is of format {number}, from {age} Pipeswarm; this one reads format {FORMAT}", then)


def _problem(plan: Plan) -> str:
    """The first value that no test can have; "" for none."""
    limits, observer = plan.limits, plan.observer
    bounds = (
        ("intended", plan.intended, 0, MOST_ARRIVALS),
        ("started_at", plan.started_at, 0, _LATEST_AT),
        ("workers", plan.workers, 0, 2**31),
        ("limits.drain_s", limits.drain_s, 0, _LONGEST_S),
        ("limits.max_in_flight", limits.max_in_flight, 1, 2**31),
        ("limits.connect_timeout_s", limits.connect_timeout_s, 1e-3, _LONGEST_S),
        ("limits.answer_timeout_s", limits.answer_timeout_s, 1e-3, _LONGEST_S),
        ("observer.kube_requests_per_s", observer.kube_requests_per_s, 1e-6, _LONGEST_S),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            return f"'{name}' is {value:,}, not between {least:,} and {most:,}"
    for name, option in plan.target_options.items():
        if not _is_scalar(option):
            return f"'target_options.{name}' is neither a text nor a number"
    return _problem_of_schedule(plan.schedule)


def _problem_of_schedule(schedule: Mapping[str, object]) -> str:
    """A schedule has texts and numbers, and lists of them or of its parts, which are such mappings."""
    for name, value in schedule.items():
        for each in value if isinstance(value, list) else [value]:
            inner = each.values() if isinstance(each, dict) and isinstance(value, list) else [each]
            if not all(map(_is_scalar, inner)):
                return f"'schedule.{name}' is not what a schedule has"
    if isinstance(parts := schedule.get("parts", []), list) and all(isinstance(part, dict) for part in parts):
        return ""
    return "'schedule.parts' is not a list of schedules"


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)

"""Dates and times: a range, a step, business hours."""

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from generators.block import Block
from generators.columns import Column
from generators.kinds.kind import Definition, Independent, Kind, KindType
from generators.streams import Ints
from harness.documents import Place
from harness.model import ConfigError, parse_duration

_DAY_MS = 86_400_000
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MAX_DAYS = 40_000
_FORMS = {"D": "%Y-%m-%d", "s": "%Y-%m-%dT%H:%M:%SZ", "ms": "%Y-%m-%dT%H:%M:%S.%fZ"}


@dataclass(frozen=True, slots=True)
class Instants(Independent):
    """Instants on a grid of `step_ms`, in [start, end), each equally likely; milliseconds since 1970, UTC.

    With business hours the grid restarts each day at `opens_ms` after midnight and ends at `closes_ms`, on the given
    `weekdays` (0 is Monday); otherwise it is one grid from start to end. Written as a date if `as_date`, with `pattern`
    if one is given.
    """

    start_ms: int
    end_ms: int
    step_ms: int = 1000
    opens_ms: int = 0
    closes_ms: int = _DAY_MS
    weekdays: tuple[int, ...] = tuple(range(7))
    business: bool = False
    as_date: bool = False
    pattern: str = ""
    unique: bool = False

    main: ClassVar[str] = "range"
    monotone: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; range, step, business hours and format."""
        start, date_start = parse_instant(definition["range"][0], place / "range")
        end, date_end = parse_instant(definition["range"][1], place / "range")
        if date_end:
            end += _DAY_MS  # a range of days includes the last one
        step = _step_ms(definition, place, whole_days=date_start and date_end)
        hours = definition.get("business_hours")
        kind = cls(
            start,
            end,
            step,
            *(_hours(hours, place / "business_hours") if hours else (0, _DAY_MS, tuple(range(7)))),
            business=bool(hours),
            as_date=date_start and date_end and not hours and step % _DAY_MS == 0,
            pattern=definition.get("format", ""),
            unique=definition.get("unique", False),
        )
        if end - start > _MAX_DAYS * _DAY_MS or kind.size < 1:
            raise (place / "range").error(
                f"there is no instant between {definition['range'][0]} and {definition['range'][1]}"
                if kind.size < 1
                else "the range is longer than a century",
                "give a range with at least one step, within business hours if they are set",
            )
        return kind

    @property
    def size(self) -> int:
        """The number of distinct instants."""
        return int(self._days()[1][-1]) if self.end_ms > self.start_ms else 0

    @property
    def _unit(self) -> str:
        """Of the written values: whole seconds would make other instants look the same."""
        return "D" if self.as_date else "ms" if self.start_ms % 1000 or self.step_ms % 1000 else "s"

    @property
    def form(self) -> str:
        """How values are written, in the codes of strftime."""
        return self.pattern or _FORMS[self._unit]

    def draw(self, block: Block) -> Column:
        """The instant at a random position on the grid."""
        size = self.size
        index = block.permuted(size) if self.unique else block.index_below(size)
        instants = self._instants(index).view("datetime64[ms]")
        if self.pattern:
            return Column(instants).text(self.pattern)
        return Column(instants.astype(f"datetime64[{self._unit}]"))

    def _instants(self, index: Ints) -> Ints:
        opens, slots = self._days()
        day = np.searchsorted(slots, index, side="right")
        before = np.concatenate([[0], slots[:-1]])
        return np.asarray(opens[day] + (index - before[day]) * self.step_ms)

    def _days(self) -> tuple[Ints, Ints]:
        """The start of each stretch of the grid, and the cumulative number of its instants."""
        if not self.business:
            count = -(-(self.end_ms - self.start_ms) // self.step_ms)
            return np.array([self.start_ms]), np.array([max(count, 0)])
        days = np.arange(self.start_ms // _DAY_MS, -(-self.end_ms // _DAY_MS), dtype=np.int64)
        days = days[np.isin((days + 3) % 7, self.weekdays)]  # 1970-01-01 was a Thursday
        midnight = days * _DAY_MS
        late = np.maximum(self.start_ms - midnight - self.opens_ms, 0)
        opens = midnight + self.opens_ms + -(-late // self.step_ms) * self.step_ms
        closes = np.minimum(midnight + self.closes_ms, self.end_ms)
        slots = np.cumsum(np.maximum(-(-(closes - opens) // self.step_ms), 0))
        return (opens, slots) if len(days) else (np.array([0]), np.array([0]))


def parse_instant(value: object, place: Place) -> tuple[int, bool]:
    """Milliseconds since 1970 of an ISO date or instant (UTC unless it has an offset), and whether it is a date."""
    if isinstance(value, dt.datetime):
        moment = value
    elif isinstance(value, dt.date):
        return value.toordinal() * _DAY_MS - dt.date(1970, 1, 1).toordinal() * _DAY_MS, True
    else:
        try:
            return parse_instant(dt.date.fromisoformat(str(value)), place)
        except ValueError:
            pass
        try:
            moment = dt.datetime.fromisoformat(str(value))
        except ValueError as error:
            raise place.error(f"'{value}' is not a date or time", "write 2026-01-31 or 2026-01-31T08:00:00Z") from error
    utc = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
    return (utc - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1), False


def _step_ms(definition: Definition, place: Place, *, whole_days: bool) -> int:
    if "step" not in definition:
        return _DAY_MS if whole_days and "business_hours" not in definition and "format" not in definition else 1000
    try:
        step = round(parse_duration(definition["step"]) * 1000)
    except ConfigError as error:
        raise (place / "step").error(error.message, error.hint) from error
    if step < 1:
        raise (place / "step").error(f"the step is {definition['step']}", "give a step of at least 1ms")
    return step


def _hours(hours: Definition | bool, place: Place) -> tuple[int, int, tuple[int, ...]]:
    if hours is True:
        hours = {}
    assert isinstance(hours, dict)
    opens, closes = (
        _time_ms(hours.get(key, given), place / key) for key, given in (("from", "08:00"), ("to", "18:00"))
    )
    if opens >= closes:
        raise place.error("business hours end before they begin", "give `from` before `to`")
    days = tuple(_WEEKDAYS.index(day) for day in hours.get("days", _WEEKDAYS[:5]))
    return opens, closes, days


def _time_ms(value: object, place: Place) -> int:
    try:
        hour, minute = (int(part) for part in str(value).split(":"))
    except ValueError as error:
        raise place.error(f"'{value}' is not a time of day", 'write "08:30"') from error
    if not (0 <= hour <= 24 and 0 <= minute < 60 and hour * 60 + minute <= 1440):
        raise place.error(f"'{value}' is not a time of day", 'write "08:30"')
    return int(hour * 60 + minute) * 60_000


KINDS: dict[str, KindType] = {"datetime": Instants}

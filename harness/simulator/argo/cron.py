"""Schedules of CronWorkflows: the five fields of crontab(5), in UTC."""

from datetime import datetime

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMED = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def is_due(schedule: str, at: datetime) -> bool:
    """Whether a schedule names this minute.

    Raises:
        ValueError: it is no schedule.
    """
    fields = _NAMED.get(schedule.strip(), schedule).split()
    if len(fields) != len(_BOUNDS):
        raise ValueError(f"'{schedule}' does not have the five fields of a cron schedule")
    minute, hour, day, month, weekday = (_values(text, k) for k, text in enumerate(fields))
    weekdays = {value % 7 for value in weekday}
    of_month, of_week = at.day in day, at.isoweekday() % 7 in weekdays
    # crontab(5): where both are restricted, either will do
    on_day = of_month or of_week if fields[2] != "*" and fields[4] != "*" else of_month and of_week
    return at.minute in minute and at.hour in hour and at.month in month and on_day


def _values(text: str, field: int) -> set[int]:
    least, most = _BOUNDS[field]
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = least, most
        else:
            begin, _, end = span.partition("-")
            first = _number(begin, field)
            last = _number(end, field) if end else most if step else first
        if not least <= first <= last <= most:
            raise ValueError(f"'{part}' is outside {least}-{most}")
        found.update(range(first, last + 1, int(step or 1)))
    return found


def _number(text: str, field: int) -> int:
    names = _MONTHS if field == 3 else _DAYS if field == 4 else ()  # month and weekday
    return names.index(text) + (field == 3) if text in names else int(text)

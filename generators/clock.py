"""Stops the clock while Faker draws, so that "a date this year" does not depend on the day of the draw.

Faker's providers read the clock through the names `datetime`, `date` and `dtdate` of their own modules. While a
vocabulary is drawn, these names refer to classes whose present is a fixed instant; afterwards they are restored.
"""

import datetime as dt
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

PRESENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class _Instances(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


class _Date(dt.date, metaclass=_Instances):
    @classmethod
    def today(cls) -> Any:
        return PRESENT.date()


class _Datetime(dt.datetime, metaclass=_Instances):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        return PRESENT.astimezone(tz) if tz else PRESENT.replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return PRESENT.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        return PRESENT.replace(tzinfo=None)


_MODULE = SimpleNamespace(**{**vars(dt), "date": _Date, "datetime": _Datetime})
_FROZEN = {id(dt.date): _Date, id(dt.datetime): _Datetime, id(dt): _MODULE}


@contextmanager
def frozen_faker() -> Iterator[None]:
    """A context in which the present of every loaded Faker provider is `PRESENT`."""
    changed: list[tuple[ModuleType, str, object]] = []
    try:
        for module in [m for name, m in sys.modules.items() if name.startswith("faker.providers.")]:
            for name in ("datetime", "date", "dtdate"):
                value = vars(module).get(name)
                if value is not None and id(value) in _FROZEN:
                    changed.append((module, name, value))
                    setattr(module, name, _FROZEN[id(value)])
        yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)

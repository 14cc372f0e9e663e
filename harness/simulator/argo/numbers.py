"""Whether a field of a workflow holds what Argo's API takes there: a number, a duration, one of some words."""

import re
from collections.abc import Callable
from typing import Any

from harness.model.errors import ConfigError
from harness.simulator.argo.fields import seconds

Check = Callable[[Any], str]  # of a field's value: why it can't be that; "" if it can

_WHOLE = re.compile(r"[0-9]{1,10}")
_MOST = 2**31 - 1


def whole(value: Any) -> str:
    """A whole number from 0 on, as Argo's ``int64``; beyond 2³¹ none means anything here."""
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return "" if right else f"{_shown(value)} is not a whole number from 0 to {_MOST}"


def whole_or_text(value: Any) -> str:
    """The same, also as a text: Kubernetes' ``IntOrString``."""
    return whole(int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value)


def rank(value: Any) -> str:
    """A whole number, also below 0, as a priority."""
    return whole(abs(value)) if isinstance(value, int) and not isinstance(value, bool) else whole(value)


def duration(value: Any) -> str:
    """A text such as ``20`` (seconds) or ``1m30s``."""
    try:
        if isinstance(value, str) and seconds(value) <= _MOST:
            return ""
    except (ConfigError, ValueError):
        pass
    return f"{_shown(value)} is not a duration: write it as '20' (seconds) or '1m30s'"


def _or_tag(check: Check) -> Check:
    """The same, or a text whose tags are replaced when its template is executed."""
    return lambda value: "" if isinstance(value, str) and "{{" in value else check(value)


duration_or_tag, number_or_tag = _or_tag(duration), _or_tag(whole_or_text)


def one_of(*words: str) -> Check:
    """One of some words."""

    def check(value: Any) -> str:
        return "" if isinstance(value, str) and value in words else f"{_shown(value)} is none of {', '.join(words)}"

    return check


def label(value: Any) -> str:
    """Some text."""
    return "" if isinstance(value, str) and value else f"{_shown(value)} is not a text"


def name(value: Any) -> str:
    """Some text that must be there."""
    return label(value)


def _shown(value: Any) -> str:
    return repr(value)[:40]

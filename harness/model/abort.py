"""When a test is to be given up: ``failed_ratio > 0.2 for 1m``.

rule = ratio ("<" | "<=" | ">" | ">=") limit ["for" duration], the words of `harness.model.slo`. With ``for`` the rule
looks at the last so many seconds, once the test is that old; without, at the whole test so far.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.errors import ConfigError
from harness.model.slo import RATIOS, Slo, parse_slo
from harness.model.units import format_duration, parse_duration

# What each ratio counts, and of what it is a share: what the platform is done with (to refuse a run is to fail it, as
# in objectives), or arrivals whose outcome is known.
_ENDED, _ARRIVED = ("done", "failed", "rejected"), ("accepted", "rejected", "missed")
_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "failed_ratio": (("failed", "rejected"), _ENDED),
    "succeeded_ratio": (("done",), _ENDED),
    "rejected_ratio": (("rejected",), _ARRIVED),
    "missed_ratio": (("missed",), _ARRIVED),
}


@dataclass(frozen=True, slots=True)
class AbortRule:
    """`condition` over the last `window_s` seconds, or over the whole test where that is none."""

    text: str
    condition: Slo
    window_s: float | None


def parse_abort(text: str) -> AbortRule:
    """Understand one rule.

    Raises:
        ConfigError: it is not in the grammar above.
    """
    condition, _, window = text.partition(" for ")
    try:
        parsed = parse_slo(condition)
        window_s = parse_duration(window) if window.strip() else None
    except ConfigError as error:
        raise ConfigError(f"--abort-on '{text}': {error.message}", "write it as 'failed_ratio > 0.2 for 1m'") from error
    if parsed.measure not in _PARTS or (window_s is not None and window_s <= 0):
        known = ", ".join(name for name in RATIOS if name in _PARTS)
        raise ConfigError(
            f"--abort-on '{text}' can't be watched", f"name one of {known}, as 'failed_ratio > 0.2 for 1m'"
        )
    return AbortRule(text.strip(), parsed, window_s)


class Watch:
    """Holds a running test against its rules. Times are seconds of any steady clock."""

    def __init__(self, rules: tuple[AbortRule, ...]) -> None:
        self._rules = rules
        self._seen: deque[tuple[float, Mapping[str, int]]] = deque()
        self._keep_s = max((rule.window_s or 0.0 for rule in rules), default=0.0)

    def broken(self, now_s: float, counts: Mapping[str, int]) -> str | None:
        """The words of a rule that says to give up, with the value that does; none when none does."""
        if not self._rules:
            return None
        self._seen.append((now_s, counts))
        while len(self._seen) > 1 and self._seen[1][0] <= now_s - self._keep_s:
            self._seen.popleft()
        for rule in self._rules:
            value = self._value(rule, now_s, counts)
            if value is not None and rule.condition.holds(value):
                within = f" in the last {format_duration(rule.window_s)}" if rule.window_s else ""
                return f"{rule.text}: it was {value:.3g}{within}"
        return None

    def _value(self, rule: AbortRule, now_s: float, counts: Mapping[str, int]) -> float | None:
        """The ratio in the rule's window; none when the window is not full or nothing happened in it."""
        before: Mapping[str, int] = {}
        if rule.window_s is not None:
            olds = [seen for at_s, seen in self._seen if at_s <= now_s - rule.window_s]
            if not olds:
                return None
            before = olds[-1]
        part, whole = (
            sum(counts[name] - before.get(name, 0) for name in names) for names in _PARTS[rule.condition.measure]
        )
        return part / whole if whole else None

"""When to abort a test: ``failed_ratio > 0.2 for 1m``.

rule = ratio ("<" | "<=" | ">" | ">=") limit ["for" duration] ["after" number], with the ratios of `harness.model.slo`.
With ``for`` the rule applies to a sliding window of that length, once the test is that old; without, to the whole test
so far. It applies from ``after`` runs on: 20 by default, with ``for`` 1.

``blocked`` alone is a rule as well: some run waits for what will not come unless someone intervenes, as its cluster
states (a missing secret or image, a taint that is not tolerated), and has waited so for a minute.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.errors import ConfigError
from harness.model.slo import RATIOS, Slo, parse_slo
from harness.model.units import counted, format_duration, parse_duration

_HINT = "write it as 'failed_ratio > 0.2 for 1m', 'failed_ratio > 0.2 after 50' or 'blocked'"
_MIN_RUNS = 20  # one failed run of one is no ratio
_RULE = re.compile(
    r"(?P<condition>.*?)(?:\s+for\s+(?P<window>.*?))?(?:\s+after\s+(?P<least>\d+)(?:\s+runs)?)?\s*", re.DOTALL
)
# Numerator and denominator of each ratio: the latter are ended runs (a rejected one has failed, as in objectives), or
# arrivals whose outcome is known. A rejection is known long before the ends of runs that were due at the same time:
# it counts when runs that were due later have ended.
_ENDED, _ARRIVED = ("done", "failed", "rejected_with_ended"), ("accepted", "rejected", "missed")
BLOCKED = "blocked"
_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "failed_ratio": (("failed", "rejected_with_ended"), _ENDED),
    "succeeded_ratio": (("done",), _ENDED),
    "rejected_ratio": (("rejected",), _ARRIVED),
    "missed_ratio": (("missed",), _ARRIVED),
}


@dataclass(frozen=True, slots=True)
class AbortRule:
    """`condition` over the last `window_s` seconds, None is the whole test; of `least` runs or more."""

    text: str
    condition: Slo
    window_s: float | None
    least: int


def parse_abort(text: str) -> AbortRule:
    """Parse one rule.

    Raises:
        ConfigError: it does not follow the grammar above.
    """
    if text.strip() == BLOCKED:
        return AbortRule(BLOCKED, Slo(BLOCKED, BLOCKED, "", None, ">", 0.0), None, 1)
    parts = _RULE.fullmatch(text)
    assert parts is not None  # the condition may be any text
    window = parts["window"]
    try:
        parsed = parse_slo(parts["condition"])
        window_s = None if window is None else parse_duration(window)
    except ConfigError as error:
        raise ConfigError(f"the rule '{text}': {error.message}", _HINT) from error
    least = int(parts["least"] or (_MIN_RUNS if window_s is None else 1))
    if parsed.measure not in _PARTS or (window_s is not None and window_s <= 0) or least < 1:
        known = ", ".join(name for name in RATIOS if name in _PARTS)
        raise ConfigError(f"the rule '{text}' can't be evaluated during a test", f"{_HINT}; ratios: {known}")
    return AbortRule(text.strip(), parsed, window_s, least)


class Watch:
    """Evaluates the rules of a running test. Times are seconds of any monotonic clock."""

    def __init__(self, rules: tuple[AbortRule, ...]) -> None:
        self._rules = rules
        self._seen: deque[tuple[float, Mapping[str, int]]] = deque()
        self._keep_s = max((rule.window_s or 0.0 for rule in rules), default=0.0)

    def broken(self, now_s: float, counts: Mapping[str, int]) -> str | None:
        """The first rule that holds, with its value, as a sentence; None while none does."""
        self._seen.append((now_s, counts))
        while len(self._seen) > 1 and self._seen[1][0] <= now_s - self._keep_s:
            self._seen.popleft()
        for rule in self._rules:
            if rule.text == BLOCKED:
                if counts.get(BLOCKED):
                    return f"{BLOCKED}: {counted(counts[BLOCKED], 'run')} wait for what will not come by itself"
                continue
            value = self._value(rule, now_s, counts)
            if value is not None and rule.condition.holds(value):
                window = f" in the last {format_duration(rule.window_s)}" if rule.window_s else ""
                return f"{rule.text}: it was {value:.3g}{window}"
        return None

    def _value(self, rule: AbortRule, now_s: float, counts: Mapping[str, int]) -> float | None:
        """The ratio in the rule's window; None if the test is younger than the window, or too little happened in it."""
        before: Mapping[str, int] = {}
        if rule.window_s is not None:
            older = [seen for at_s, seen in self._seen if at_s <= now_s - rule.window_s]
            if not older:
                return None
            before = older[-1]
        part, whole = (
            sum(counts[name] - before.get(name, 0) for name in names) for names in _PARTS[rule.condition.measure]
        )
        return part / whole if whole >= rule.least else None

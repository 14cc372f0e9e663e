"""The kinds of messages between a master and its workers. Each names its ``test``.

From the master: CLOCK ``{sent}``, GO (`Assignment.pack`), MORE ``{dues, last}``, STOP ``{why, at_once}``, and KEPT
``{upto, over, unwanted}``: it has a worker's records up to this position, or does not know the test.
From a worker: CLOCK_IS ``{sent, here}``, and ROWS ``{at, lines, over, error}``: records from position `at` on; with
`over` there will be none after them.
"""

from typing import Any

from harness.store.recovery import kind_of_line

GO, MORE, STOP, CLOCK, KEPT = "pipeswarm-go", "pipeswarm-more", "pipeswarm-stop", "pipeswarm-clock", "pipeswarm-kept"
ROWS, CLOCK_IS = "pipeswarm-rows", "pipeswarm-clock-is"

_LATEST = 2**62
_WHOLE: dict[str, tuple[str, ...]] = {ROWS: ("at",), CLOCK_IS: ("sent", "here")}  # fields that are whole numbers


def problem(kind: str, data: object) -> str:
    """What is wrong with a message of a worker; "" if nothing is."""
    if not isinstance(data, dict) or not isinstance(data.get("test"), str):
        return "it names no test"
    for name in _WHOLE[kind]:
        if type(data.get(name)) is not int or not 0 <= data[name] < _LATEST:
            return f"'{name}' is not a position or an instant"
    return _problem_of_rows(data) if kind == ROWS else ""


def _problem_of_rows(data: dict[str, Any]) -> str:
    lines = data.get("lines")
    if not isinstance(lines, bytes) or not isinstance(data.get("over"), bool) or not isinstance(data.get("error"), str):
        return "it has no lines, or does not say whether they are the last"
    if lines and not lines.endswith(b"\n"):
        return "its last record is not complete"
    bad = sum(kind_of_line(line) is None for line in lines.splitlines())
    return f"{bad:,} of its lines are no records" if bad else ""

"""The truth table as a page: what was true, what was said first, and what was observed."""

from collections.abc import Sequence

from tests.support.situations.controller import VERSION
from tests.support.situations.perform import Outcome, Told

_HEAD = """\
# Truth table on real parts

Situations made on a real Kubernetes (API server, scheduler, controllers) and Argo's workflow controller {argo}; kubelets are stand-ins. Each is loaded by `locust -f
locustfiles/argo.py` and observed live, with a Prometheus that scrapes controller, API server and etcd every 5 s; the second verdict is that of the same run
without its metrics. Made by `make rehearse ARGS=--table`, or judged anew from run folders that it kept (`--record`, then `--table --judge FOLDER`);
`tests/support/situations/table.py` holds the situations. **✗** marks what is wrong.

**First right: {right} of {count} with Prometheus ({share:.0%}), {right_without} of {count} without ({share_without:.0%}). False at 80 % or more: {false}.**

| situation | truth | first with Prometheus | first without | observed |
|---|---|---|---|---|
"""


def page(outcomes: Sequence[Outcome]) -> str:
    """Markdown with a row for each situation."""
    done = [each for each in outcomes if each.with_metrics and each.without]
    right = sum(each.with_metrics.is_right(each.situation) for each in done if each.with_metrics)
    right_without = sum(each.without.is_right(each.situation) for each in done if each.without)
    count = max(1, len(outcomes))
    head = _HEAD.format(
        argo=VERSION, right=right, right_without=right_without, count=len(outcomes),
        share=right / count, share_without=right_without / count, false=sum(bool(false_of(each)) for each in done),
    )  # fmt: skip
    return head + "".join(map(_row, outcomes))


def false_of(outcome: Outcome) -> list[str]:
    """What either report claims at 80 % or more, and is not so."""
    return sorted({name for each in outcome.told for name in each.false(outcome.situation)})


def line(outcome: Outcome) -> str:
    """For the terminal."""
    if not outcome.told:
        return f"{outcome.situation.name}: not performed: {(outcome.errors or ('no run folder',))[-1][-300:]}"
    firsts = " / ".join(dict.fromkeys(_first(outcome, each) for each in outcome.told))
    wrong = f" (of the rig: {'; '.join(outcome.errors)})" if outcome.errors else ""
    return f"{'right' if outcome.is_right else 'WRONG'}  {outcome.situation.name}: {firsts}{wrong}"


def _row(outcome: Outcome) -> str:
    its = outcome.situation
    if outcome.with_metrics is None or outcome.without is None:
        why = " ".join((outcome.errors or ("no run folder",))[-1].split())[-160:]
        return f"| {its.name} | {its.truth} | not performed: {_cell(why)} | | |\n"
    cells = (its.name, its.truth, _first(outcome, outcome.with_metrics), _first(outcome, outcome.without),
             f"{outcome.with_metrics.observed} ({outcome.with_metrics.verdict})")  # fmt: skip
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _first(outcome: Outcome, told: Told) -> str:
    mark = "" if told.is_right(outcome.situation) else " **✗**"
    false = told.false(outcome.situation)
    wrong = f"; false: {', '.join(false)}" if false else ""
    if not told.findings:
        return f"nothing{mark}"
    name, confidence, title = told.findings[0]
    return f"`{name}` {confidence:.0%}{mark}: {title}{wrong}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

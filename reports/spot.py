"""What evictions did to a test and what to do about it: tables, lines of Markdown, and JSON."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from harness.analysis.result import Result
from harness.analysis.spot.advice import Advice, StepAdvice
from harness.analysis.spot.recorded import Losses
from harness.model.units import counted
from reports.tables import Column, Table, amount_text, numbers, seconds_text

_MOST_TASKS = 50


def spot_tables(result: Result) -> tuple[Table, ...]:
    """Losses, attempts by task, and advice by step; none where nothing was lost and no spot machine was used."""
    losses, advised = result.losses, result.spot_advice
    if losses is None:
        return ()
    columns = (Column("Metric"), Column("Value", number=True), Column("", long=True))
    tables = [
        Table("Evictions", columns, tuple(row for row in _losses(losses) if row[1])),
        Table("Attempts by task", numbers("Task", "Pods", "Lost", "Pods per result", "Work", "Work lost"),
              tuple(_attempts(losses)), count=f"{len(losses.tasks):,} tasks"),
    ]  # fmt: skip
    return (*tables, _advice_table(advised)) if advised is not None else tuple(tables)


def _losses(found: Losses) -> Iterable[tuple[str, str, str]]:
    rate = found.rate
    if rate is not None:
        seen = f"{rate.losses:,} in {amount_text(rate.hours)} node-hours"
        few = "" if rate.is_known else "; too few for advice on retries"
        yield "Evictions of a machine per hour", f"{rate.value:.2g}", f"{_interval(rate.low, rate.high)}; {seen}{few}"
    yield "Runs that lost a pod", f"{found.hit:,}", ""
    if found.hit:
        yield "of these, succeeded", f"{found.survived:,}", f"{found.survived / found.hit:.0%} survived"
    if found.abandoned:
        what = "the retry policy did not cover them, or no retry was left: see docs/spot.md"
        yield "Lost pods that were not tried again", f"{found.abandoned:,}", what
    what = "the spot nodes' hours × the share of their work that was lost"
    yield "Node-hours lost", amount_text(found.lost_node_hours), what
    yield "Money lost", amount_text(found.lost_money), "at the price of the spot nodes"
    if found.added.count:
        much = f"median {seconds_text(found.added.at(0.5).value)}, most {seconds_text(found.added.most)}"
        what = f"{much}; from the start of lost attempts to that of the next"
        yield "Time added to a run that was hit, mean", seconds_text(found.added.mean), what
    yield from _costs(found)


def _costs(found: Losses) -> Iterable[tuple[str, str, str]]:
    paid = found.comparison
    if paid is None:
        hint = "give prices: report RUN --price POOL=0.09 --price POOL@on-demand=0.45"
        yield "Cost against on demand", "unknown", hint
        return
    low, high = paid.saving_interval
    yield "Cost of the spot nodes", amount_text(paid.spot), f"{paid.price_ratio:.0%} of the price on demand"
    yield "The same work on demand", amount_text(paid.on_demand), _interval(paid.low, paid.high)
    yield "Saved", f"{paid.saving:.0%}", f"95 % interval {low:.0%} to {high:.0%}, for the share of lost work"


def _interval(low: float, high: float) -> str:
    return f"95 % interval {low:.2g} to {high:.2g}"


def _attempts(found: Losses) -> Iterable[tuple[str, ...]]:
    for task in found.tasks[:_MOST_TASKS]:
        each = "" if task.attempts is None else f"{task.attempts:.2f}"
        yield (
            task.task or "(none)", f"{task.pods:,}", f"{task.lost:,}", each, seconds_text(task.worked_s),
            seconds_text(task.lost_s),
        )  # fmt: skip


def _advice_table(advised: Advice) -> Table:
    columns = numbers(
        "Step", "Spot", "Retries", "Back-off", "Longest time", "Fails", "Attempts", "Work lost", "Time added",
        "Cheaper below",
    )  # fmt: skip
    rows = tuple(
        (
            step.task, _spot_word(step), "> 20" if step.retries is None else f"{step.retries}",
            seconds_text(step.backoff_s), seconds_text(step.max_s), f"{step.failing:.2%}", f"{step.attempts:.2f}",
            seconds_text(step.lost_s), seconds_text(step.added_s), f"{step.break_even:.0%} of on demand",
        )
        for step in advised.steps[:_MOST_TASKS]
    )  # fmt: skip
    return Table("Advice for each step on spot nodes", columns, rows, _assumed(advised))


def _spot_word(step: StepAdvice) -> str:
    if step.spot is None:
        return "if the price is right"
    return "yes" if step.spot else "no"


def _assumed(advised: Advice) -> str:
    failing = "" if advised.failing is None else f"; with all steps on spot nodes {advised.failing:.2%} would fail"
    whose = "the objective's" if advised.from_slo else "assumed, as no objective limits it"
    return (
        f"Re-simulated from the recorded attempts, with losses drawn at {advised.rate_per_hour:.2g} per machine and "
        "hour (the upper end of the interval), each followed by a recorded wait. The limit on failed runs is "
        f"{advised.limit:.2%} ({whose}){failing}. Retries presume that the retry policy covers lost pods."
    )


def spot_lines(result: Result) -> list[str]:
    """A section of Markdown, in which nothing is quoted from the platform."""
    losses, advised = result.losses, result.spot_advice
    if losses is None or not losses.hit:
        return []
    lines = [f"- {losses.survived:,} of {counted(losses.hit, 'run')} that lost a pod succeeded"]
    lines.append(f"- {amount_text(losses.lost_node_hours) or '0'} node-hours of work were lost")
    if losses.comparison is not None:
        low, high = losses.comparison.saving_interval
        lines.append(f"- Saved against on demand: {losses.comparison.saving:.0%} ({low:.0%} to {high:.0%})")
    if advised is not None:
        lines.append(f"- {_assumed(advised)}")
    return ["## Evictions", "", *lines, ""]


def spot_document(result: Result) -> dict[str, Any] | None:
    """The same figures as plain values."""
    losses, advised = result.losses, result.spot_advice
    if losses is None:
        return None
    rate, paid = losses.rate, losses.comparison
    return {
        "evictions_per_hour": None if rate is None else asdict(rate) | {"value": rate.value},
        "runs_hit": losses.hit,
        "runs_survived": losses.survived,
        "abandoned": losses.abandoned,
        "tasks": [asdict(task) | {"attempts": task.attempts} for task in losses.tasks],
        "lost_node_hours": losses.lost_node_hours,
        "lost_money": losses.lost_money,
        "added_s": {"mean": losses.added.mean, "median": losses.added.at(0.5).value, "max": losses.added.most},
        "clustered": losses.clustered,
        "cost": None if paid is None else asdict(paid) | {
            "saving": paid.saving, "saving_interval": list(paid.saving_interval),
        },
        "advice": None if advised is None else asdict(advised),
    }  # fmt: skip

"""Predictions as they are printed: for people, and as one JSON object."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from harness.cli import printing
from harness.model.effects import Figure, Prediction
from harness.model.units import format_duration
from harness.planning.identify import Identified, Measures
from harness.planning.identify.fitting import FITTED
from harness.planning.identify.reproduction import Reproduction
from harness.planning.what_if import WhatIf
from reports.document import prediction_document

_MOST_TENANTS, _LONGEST_NAME = 4, 36  # in a table; characters of a change's name
_MAX_TIMES_RECORDED_PODS = 1.5  # times the pods on a node: far beyond what was recorded
_COLUMNS = ("p50_s", "p95_s", "makespan_s", "node_hours", "cost")


def as_json(found: WhatIf, fixes: Mapping[str, str]) -> str:
    """The JSON object of ``--json``; `fixes` are what is simulated for the findings' fixes."""
    of = found.identified
    document = {
        "reproduction": reproduction(of.reproduction),
        "recorded": asdict(of.recorded),
        "simulated": asdict(of.simulated),
        "binds": found.binds,
        "predictions": [
            prediction_document(replace(prediction, simulated=fixes.get(prediction.name, "")))
            for prediction in found.predictions
        ],
        "settings": [{"name": s.name, "value": str(s), "source": s.source, "count": s.count} for s in of.settings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def reproduction(of: Reproduction) -> dict[str, object]:
    """How well the test is reproduced."""
    return {
        "reproduced": not of.misfits,
        "within": of.within,
        "misfits": [misfit.name for misfit in of.misfits],
        "compared": [asdict(compared) for compared in (*of.totals, *of.phases, of.lost, of.nodes)],
    }


def as_text(found: WhatIf, fixes: Mapping[str, str], *, settings: bool = False) -> str:
    """The predictions as a table, after how well the model reproduces the test; long changes stand below it."""
    of = found.identified
    long = {each.name: f"change {k}" for k, each in enumerate(found.predictions, 1) if len(each.name) > _LONGEST_NAME}
    shown = replace(found, predictions=tuple(replace(p, name=long.get(p.name, p.name)) for p in found.predictions))
    sentence = str(of.reproduction)
    lines = printing.wrapped(f"{sentence[0].upper()}{sentence[1:]}.")
    if not found.reproduced:
        lines += ["", *printing.table(list(_compared(of))), ""]
        lines += printing.wrapped(
            "No prediction: a model that does not reproduce the test does not say what a change brings."
        )
    elif found.predictions:
        lines += ["", *printing.table([_HEAD, _today(of.recorded, found.binds), *map(_row, shown.predictions)], (0, 7))]
        if of.recorded.tenants:
            lines += ["", *printing.table([*_of_tenants(shown)])]
        lines += ["", *(line for name in long for line in printing.wrapped(f"{long[name]}: {name}"))]
        lines += _notes(found, fixes)
    else:
        lines += printing.wrapped("No finding has a fix that can be simulated: ask for a change with --set or --sweep.")
    if settings:
        lines += ["", *printing.table(list(_compared(of)))] if found.reproduced else []
        lines += ["", "Settings:", *(f"  {setting}" for setting in of.settings)]
    return "\n".join(lines)


_HEAD = ("", "p50", "p95", "makespan", "failed", "node hours", "cost", "binds then")


def _compared(of: Identified) -> Iterator[tuple[str, ...]]:
    yield "", "recorded", "simulated", ""
    for compared in (*of.reproduction.totals, *of.reproduction.phases):
        if compared.recorded or compared.simulated:
            yield (
                compared.name,
                format_duration(compared.recorded),
                format_duration(compared.simulated),
                "off" if compared.off else "",
            )
    yield "lost runs", f"{of.recorded.lost:.1%}", f"{of.simulated.lost:.1%}", ""
    nodes = of.reproduction.nodes
    yield "nodes", f"{nodes.recorded:.1f}", f"{nodes.simulated:.1f}", "off" if nodes.off else ""


def _today(recorded: Measures, binds: str) -> tuple[str, ...]:
    cost = "" if recorded.cost is None else f"{recorded.cost:.2f}"
    return (
        "as recorded", format_duration(recorded.p50_s), format_duration(recorded.p95_s),
        format_duration(recorded.makespan_s), f"{recorded.lost:.1%}", f"{recorded.node_hours:.1f}", cost, binds,
    )  # fmt: skip


def _row(of: Prediction) -> tuple[str, ...]:
    p50, p95, makespan, hours, cost = (of.figures.get(name) for name in _COLUMNS)
    times = (_time(figure) for figure in (p50, p95, makespan))
    return of.name, *times, _failed(of.failed), _amount(hours, 1), _amount(cost, 2), of.binds


def _time(figure: Figure | None) -> str:
    return "" if figure is None else f"{format_duration(figure.value)} ({figure.interval})"


def _failed(of: Figure) -> str:
    return f"{of.value:.1%}" + (f" ({of.low:.1%} to {of.high:.1%})" if of.low < of.high else "")


def _amount(figure: Figure | None, digits: int) -> str:
    return "" if figure is None else f"{figure.value:.{digits}f} ({figure.change[1]:+.0%})"


def _of_tenants(found: WhatIf) -> Iterator[tuple[str, ...]]:
    """A row for each change: fairness, and how long the runs of the slowest tenants take."""
    of = found.identified.recorded
    slowest = sorted(of.tenants, key=lambda name: -of.tenants[name].mean_s)[:_MOST_TENANTS]
    yield "", "fairness", *(f"{name} {figure}" for name in slowest for figure in ("mean", "p95"))
    times = (value for name in slowest for value in (of.tenants[name].mean_s, of.tenants[name].p95_s))
    yield "as recorded", _share(of.fairness), *map(format_duration, times)
    for prediction in found.predictions:
        figures = (prediction.tenants.get(name, {}).get(figure) for name in slowest for figure in ("mean_s", "p95_s"))
        yield prediction.name, _share(prediction.fairness and prediction.fairness[0]), *map(_changed, figures)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _changed(figure: Figure | None) -> str:
    return "" if figure is None else f"{format_duration(figure.value)} ({figure.change[1]:+.0%})"


def _notes(found: WhatIf, fixes: Mapping[str, str]) -> Iterator[str]:
    yield from printing.wrapped("In brackets: the change, with a 90 % interval for times.")
    fitted = [setting.name for setting in found.identified.settings if setting.source == FITTED]
    if any(name in prediction.name for name in fitted for prediction in found.predictions):
        yield from printing.wrapped(
            f"Fitted, not read (other values may explain the waits as well): {', '.join(fitted)}"
        )
    for prediction in found.predictions:
        then, seen = prediction.most_per_node
        if not found.identified.uses_known and then > _MAX_TIMES_RECORDED_PODS * seen > 0:
            yield from printing.wrapped(
                f"{prediction.name}: up to {then:.0f} pods on a node at once, and never more than {seen:.0f} in the "
                "test; what cores they use was not measured, so how they would slow each other is not predicted"
            )
        if prediction.name in fixes:
            yield from printing.wrapped(f"{prediction.name}: simulated with {fixes[prediction.name]}")

"""The tenants of a test side by side."""

from harness.analysis.result import Result
from harness.model.units import counted
from reports.tables import Table, amount_text, numbers, seconds_text


def tenants_line(result: Result) -> str:
    """How fairly the tenants were treated, in one line; "" without tenants."""
    found = result.tenants
    if found is None:
        return ""
    if found.fairness is None or found.worst is None:
        return f"{counted(len(found.tenants), 'tenant')}, which can't be compared: no two ran the same scenario"
    without = [each.name or "(none)" for each in found.tenants if each.intended and not each.succeeded]
    starved = f"; not in it, as no run succeeded: {', '.join(without)}" if without else ""
    return (
        f"{counted(len(found.tenants), 'tenant')}, fairness {found.fairness:.2f} (Jain's index, 1 is even); "
        f"{found.worst.name} was slowest: {found.worst.slowdown:.2f} × the others' time for the same scenarios{starved}"
    )


def tenant_table(result: Result) -> Table:
    """One row per tenant."""
    found = result.tenants
    rows = () if found is None else found.tenants
    columns = numbers(
        "Tenant", "Intended", "Succeeded", "Failed", "Lost", "Runs/h", "Mean", "p95", "Waited", "Slowdown"
    )
    cells = tuple(
        (
            each.name or "(none)", f"{each.intended:,}", f"{each.succeeded:,}", f"{each.failed:,}", f"{each.lost:,}",
            amount_text(each.per_hour), *map(seconds_text, (each.mean_s, each.p95_s, each.waited_s)),
            "" if each.slowdown is None else f"{each.slowdown:.2f}",
        )
        for each in rows
    )  # fmt: skip
    note = (
        "Durations are those of runs that succeeded; waited is the mean time in which they did no work; slowdown is "
        "their duration against the other tenants' runs of the same scenarios."
    )
    return Table("Tenants", columns, cells, f"{note} {tenants_line(result)}.")

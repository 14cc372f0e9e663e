"""The tenants of a test side by side."""

from harness.analysis.result import Result
from harness.model.units import counted
from reports.tables import Table, amount_text, numbers, seconds_text


def tenants_line(result: Result) -> str:
    """How fairly the tenants were treated, in one line; "" without tenants."""
    tenants = result.tenants
    if tenants is None:
        return ""
    if tenants.fairness is None or tenants.worst is None:
        return f"{counted(len(tenants.tenants), 'tenant')}, which can't be compared: no two ran the same scenario"
    without = [tenant.name or "(none)" for tenant in tenants.tenants if tenant.intended and not tenant.succeeded]
    starved = f"; not in it, as no run succeeded: {', '.join(without)}" if without else ""
    return (
        f"{counted(len(tenants.tenants), 'tenant')}, fairness {tenants.fairness:.2f} (Jain's index, 1 is even); "
        f"{tenants.worst.name} was slowest: {tenants.worst.slowdown:.2f} × the others' time for the same "
        f"scenarios{starved}"
    )


def tenant_table(result: Result) -> Table:
    """One row per tenant."""
    tenants = result.tenants
    rows = () if tenants is None else tenants.tenants
    columns = numbers(
        "Tenant", "Intended", "Succeeded", "Failed", "Lost", "Runs/h", "Mean", "p95", "Waited", "Slowdown"
    )
    cells = tuple(
        (
            row.name or "(none)", f"{row.intended:,}", f"{row.succeeded:,}", f"{row.failed:,}", f"{row.lost:,}",
            amount_text(row.per_hour), *map(seconds_text, (row.mean_s, row.p95_s, row.waited_s)),
            "" if row.slowdown is None else f"{row.slowdown:.2f}",
        )
        for row in rows
    )  # fmt: skip
    note = (
        "Durations are those of runs that succeeded; waited is the mean time in which they did no work; slowdown is "
        "their duration against the other tenants' runs of the same scenarios."
    )
    return Table("Tenants", columns, cells, f"{note} {tenants_line(result)}.")

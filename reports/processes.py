"""Runs that are processes: what they used, and the phases that they reported."""

from harness.analysis.result import Result
from harness.model.units import counted, format_bytes, format_duration
from reports.tables import Column, Table, seconds_text

_MOST_REMARKS = 3


def processes_line(result: Result) -> str:
    """CPU time and peak memory in one line; "" where runs are no processes."""
    processes = result.processes
    if processes is None:
        return ""
    cpu, most_cpu = format_duration(processes.cpu_s), format_duration(processes.most_cpu_s)
    peak, most_peak = format_bytes(processes.peak_bytes), format_bytes(processes.most_peak_bytes)
    return f"{cpu} of CPU time per run (at most {most_cpu}), peak memory {peak} (at most {most_peak})"


def process_remarks(result: Result) -> list[str]:
    """What was said of runs that succeeded, the most frequent first."""
    remarks = result.processes.remarks if result.processes is not None else ()
    return [f"{counted(runs, 'run')}: {remark}" for remark, runs in remarks[:_MOST_REMARKS]]


def reported_table(result: Result) -> Table:
    """The phases that the processes reported, by scenario."""
    processes = result.processes
    rows = () if processes is None else processes.phases
    columns = (
        Column("Scenario"), Column("Phase"), Column("Runs", number=True), Column("Mean per run", number=True),
    )  # fmt: skip
    line = processes_line(result)
    note = " ".join(
        ("Of runs that succeeded.", *(f"{process_remark}." for process_remark in (line, *process_remarks(result))))
    )
    return Table(
        "Phases that the processes reported",
        columns,
        tuple((row.scenario, row.name, f"{row.runs:,}", seconds_text(row.mean_s)) for row in rows),
        note if processes is not None else "",
    )

"""``pipeswarm resources RUN``: what each step should request, and how many runs then fit a node."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from harness.analysis.cost.resources import Fit, StepNeed, as_cores, as_memory, fits, step_needs
from harness.cli import printing
from harness.model.errors import ConfigError, ExitCode
from harness.planning.pipeline_requests import requests_by_task
from harness.planning.timelines import timeline_of
from harness.store.folder import PIPELINE, RunFolder


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("run", type=Path, help="a run folder with CPU and memory measurements of pods (metrics-server)")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the run folder, derive requests per step, and print them with the runs per node."""
    timeline = timeline_of(arguments.run)
    folder = RunFolder.open(arguments.run)
    file = folder.path / PIPELINE
    current = requests_by_task(folder.read_bytes(PIPELINE), file) if folder.has(PIPELINE) else {}
    needs = step_needs(timeline, current)
    if not needs:
        raise ConfigError(
            f"{arguments.run} has no measurements of the CPU and memory of pods",
            "install metrics-server; it samples about every 15 s, so steps must last longer than that",
        )
    before, after = fits(timeline, current), fits(timeline, {need.task: need.advice for need in needs})
    printing.show(arguments, lambda: _text(needs, before, after), lambda: _json(needs, before, after))
    return ExitCode.OK


def _json(needs: tuple[StepNeed, ...], before: tuple[Fit, ...], after: tuple[Fit, ...]) -> str:
    document = {
        "steps": [asdict(need) | {"line": need.line} for need in needs],
        "fit_now": [asdict(fit) | {"sentence": fit.sentence} for fit in before],
        "fit_then": [asdict(fit) | {"sentence": fit.sentence} for fit in after],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _text(needs: tuple[StepNeed, ...], before: tuple[Fit, ...], after: tuple[Fit, ...]) -> str:
    rows = [["step", "pods", "CPU p95", "max", "request", "memory p95", "max", "request", "advice", "OOM", "throttled"]]
    for need in needs:
        cpu_now = "–" if need.now.cpu_request is None else as_cores(need.now.cpu_request)
        memory_now = "–" if need.now.memory_request is None else as_memory(need.now.memory_request)
        cpu = as_cores(need.cpu_p95), as_cores(need.cpu_most), cpu_now
        memory = as_memory(need.memory_p95), as_memory(need.memory_most), memory_now
        oom = "–" if need.oom_share is None else "<0.1%" if need.oom_share < 0.001 else f"{need.oom_share:.1%}"
        throttled = "–" if need.throttled is None else f"{need.throttled.share:.0%}"
        advice = as_memory(need.advice.memory_request or 0)
        rows.append([need.task, f"{need.pods}", *cpu, *memory, advice, oom, throttled])
    lines = printing.table(rows)
    lines += ["OOM: share of pods expected to need more memory than the advice"]
    if any(need.throttled is not None and need.throttled.by_periods for need in needs):
        lines += ["throttled: share of the CFS periods"]
    elif any(need.throttled is not None for need in needs):
        lines += ["throttled: share of the measurements at the CPU limit"]
    lines += ["", *(need.line for need in needs), ""]
    lines += [f"{fit.pool}, now: {fit.sentence}" for fit in before]
    lines += [f"{fit.pool}, with this advice: {fit.sentence}" for fit in after]
    lines += [f"warning: {need.task}: {note}" for need in needs for note in need.notes]
    return "\n".join(lines)

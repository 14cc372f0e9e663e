"""``pipeswarm resources RUN``: what each step should request, and how many runs then fit a node."""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import printing
from harness.model.errors import ConfigError, ExitCode
from harness.model.units import parse_quantity
from harness.planning.observations import timeline_of

if TYPE_CHECKING:
    from harness.analysis.cost.resources import Fit, Resources, StepNeed

_KEYS = {
    "cpu_request": ("resourceCpuRequest", "cpuRequest", 1.0),
    "cpu_limit": ("resourceCpuLimit", "cpuLimit", 1.0),
    "memory_request": ("resourceMemoryRequest", "memoryRequest", 1e9),
    "memory_limit": ("resourceMemoryLimit", "memoryLimit", 1e9),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("run", type=Path, help="a run folder with measurements of pods (metrics-server)")
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, fold, print."""
    from harness.analysis.cost.resources import fits, step_needs
    from harness.cli.simulate import SIMULATED_TIME
    from harness.store.folder import PIPELINE

    timeline = timeline_of(arguments.run)
    pipeline = arguments.run / PIPELINE
    current = current_resources(pipeline.read_bytes()) if pipeline.is_file() else {}
    needs = step_needs(timeline, current)
    if not needs:
        simulated = timeline.plan.host.startswith(SIMULATED_TIME)
        raise ConfigError(
            f"{arguments.run} has no measurements of the CPU and memory of pods",
            "simulated time knows none: load the platform itself, or the one that pipeswarm simulate serve serves"
            if simulated
            else "metrics-server samples every 15 s or so: it has to be installed, and steps have to last longer",
        )
    before, after = fits(timeline, current), fits(timeline, {need.task: need.advice for need in needs})
    printing.show(arguments, lambda: _text(needs, before, after), lambda: _json(needs, before, after))
    return ExitCode.OK


def current_resources(package: bytes) -> "dict[str, Resources]":
    """Requests and limits by task of a compiled pipeline.

    Raises:
        ConfigError: a quantity in it can't be understood.
    """
    import yaml

    from harness.analysis.cost.resources import Resources

    spec = next(yaml.load_all(package, Loader=yaml.CSafeLoader))
    executors = spec.get("deploymentSpec", {}).get("executors", {})
    found = {}
    for task, label in _tasks(spec, spec.get("root", {})):
        given = executors.get(label, {}).get("container", {}).get("resources", {})
        found[task] = Resources(**{name: _quantity(given, *keys) for name, keys in _KEYS.items()})
    return found


def _tasks(spec: Mapping[str, Any], component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each task that runs a container and its executor's label, in nested pipelines too."""
    for name, task in component.get("dag", {}).get("tasks", {}).items():
        inner = spec.get("components", {}).get(task.get("componentRef", {}).get("name", ""), {})
        if "executorLabel" in inner:
            yield str(name), str(inner["executorLabel"])
        else:
            yield from _tasks(spec, inner)


def _quantity(given: Mapping[str, Any], text: str, number: str, unit: float) -> float | None:
    """Since KFP 2.7 as a Kubernetes quantity, before that as a number of cores or of gigabytes."""
    if text in given:
        return parse_quantity(str(given[text]))
    return float(given[number]) * unit if number in given else None


def _json(needs: "tuple[StepNeed, ...]", before: "tuple[Fit, ...]", after: "tuple[Fit, ...]") -> str:
    document = {
        "steps": [asdict(need) | {"line": need.line} for need in needs],
        "fit_now": [asdict(fit) | {"sentence": fit.sentence} for fit in before],
        "fit_then": [asdict(fit) | {"sentence": fit.sentence} for fit in after],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _text(needs: "tuple[StepNeed, ...]", before: "tuple[Fit, ...]", after: "tuple[Fit, ...]") -> str:
    from harness.analysis.cost.resources import as_cores, as_memory

    rows = [["step", "pods", "CPU p95", "most", "now", "memory p95", "most", "now"]]
    for need in needs:
        cpu_now = "–" if need.now.cpu_request is None else as_cores(need.now.cpu_request)
        memory_now = "–" if need.now.memory_request is None else as_memory(need.now.memory_request)
        cpu = as_cores(need.cpu_p95), as_cores(need.cpu_most), cpu_now
        memory = as_memory(need.memory_p95), as_memory(need.memory_most), memory_now
        rows.append([need.task, f"{need.pods}", *cpu, *memory])
    lines = printing.table(rows)
    lines += ["", *(need.line for need in needs), ""]
    lines += [f"{fit.pool}, as it is: {fit.sentence}" for fit in before]
    lines += [f"{fit.pool}, with these: {fit.sentence}" for fit in after]
    lines += [f"warning: {need.task}: {note}" for need in needs for note in need.notes]
    return "\n".join(lines)

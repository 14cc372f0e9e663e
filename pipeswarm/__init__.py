"""The public Python interface: locustfiles, plugins and notebooks import from here, and nothing else is promised.

Names are loaded when they are first used. So a plugin for the load does not pull in pandas, and one for the report does
not pull in Locust, which patches the standard library.
"""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.analysis.timeline import Timeline
    from harness.collectors.collector import Collector, Observation, Source
    from harness.detectors.capability import Capability
    from harness.detectors.detector import CannotJudgeError, Detector
    from harness.drive.user import PipelineUser
    from harness.model.errors import ConfigError, ExitCode, PipeswarmError, TargetUnreachableError
    from harness.model.findings import Evidence, Finding
    from harness.model.http import Exchange, HttpAnswer, HttpRequest
    from harness.model.live.observer import LiveObserver
    from harness.model.options import Option
    from harness.model.plan import Plan
    from harness.model.records import Event, Node, Sample, Span, Submission
    from harness.model.scenario import Scenario
    from harness.model.schedules import (
        Burst,
        Concurrency,
        Constant,
        Level,
        Poisson,
        Ramp,
        Replay,
        Schedule,
        Spread,
        Stages,
    )
    from harness.model.schedules.schedule import OpenSchedule
    from harness.model.text.redaction import Redaction
    from harness.model.units import parse_duration, parse_rate
    from harness.store.folder import RunFolder
    from harness.targets.completed_run import CompletedRun
    from harness.targets.scenarios import Input, InputType
    from harness.targets.target import (
        CleansUp,
        Cleanup,
        DescribesTasks,
        HasServices,
        ListedRun,
        ListsRuns,
        Platform,
        Prepared,
        Redactable,
        RejectedError,
        ReportsBack,
        RunPage,
        Service,
        SetUp,
        SubmitsAhead,
        Target,
        TaskDetail,
        Watched,
        WatchesRuns,
    )

__all__ = [
    "Burst", "CannotJudgeError", "Capability", "CleansUp", "Cleanup", "Collector", "CompletedRun", "Concurrency",
    "ConfigError", "Constant", "DescribesTasks", "Detector", "Event", "Evidence", "Exchange", "ExitCode",
    "Finding", "HasServices", "HttpAnswer", "HttpRequest", "Input", "InputType", "Level", "ListedRun",
    "ListsRuns", "LiveObserver", "Node", "Observation", "OpenSchedule", "Option", "PipelineUser",
    "PipeswarmError", "Plan", "Platform", "Poisson", "Prepared", "Ramp", "Redactable", "Redaction",
    "RejectedError", "Replay", "ReportsBack", "RunFolder", "RunPage", "Sample", "Scenario", "Schedule", "Service",
    "SetUp", "Source", "Span", "Spread", "Stages", "Submission", "SubmitsAhead", "Target", "TargetUnreachableError",
    "TaskDetail", "Timeline", "Watched", "WatchesRuns", "parse_duration", "parse_rate",
]  # fmt: skip

_NAMES_BY_MODULE = {
    "harness.analysis.timeline": "Timeline",
    "harness.collectors.collector": "Collector Observation Source",
    "harness.detectors.capability": "Capability",
    "harness.detectors.detector": "CannotJudgeError Detector",
    "harness.drive.user": "PipelineUser",
    "harness.model.errors": "ConfigError ExitCode PipeswarmError TargetUnreachableError",
    "harness.model.findings": "Evidence Finding",
    "harness.model.http": "Exchange HttpAnswer HttpRequest",
    "harness.model.live.observer": "LiveObserver",
    "harness.model.options": "Option",
    "harness.model.plan": "Plan",
    "harness.model.records": "Event Node Sample Span Submission",
    "harness.model.text.redaction": "Redaction",
    "harness.model.scenario": "Scenario",
    "harness.model.schedules": "Burst Concurrency Constant Level Poisson Ramp Replay Schedule Spread Stages",
    "harness.model.schedules.schedule": "OpenSchedule",
    "harness.model.units": "parse_duration parse_rate",
    "harness.store.folder": "RunFolder",
    "harness.targets.completed_run": "CompletedRun",
    "harness.targets.scenarios": "Input InputType",
    "harness.targets.target": "CleansUp Cleanup DescribesTasks HasServices ListedRun ListsRuns Platform Prepared "
    "Redactable RejectedError ReportsBack RunPage Service SetUp SubmitsAhead Target TaskDetail Watched WatchesRuns",
}
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}
_BAD_CONFIG = 2  # ExitCode.BAD_CONFIG, which lies in the package that may be hidden


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    _refuse_a_hidden_package()
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__


def _refuse_a_hidden_package() -> None:
    """Say so if a user's `harness` hides ours: Locust puts the locustfile's folder first on the path.

    Raises:
        ImportError: it does. Locust would show a traceback, so there the process ends with one sentence.
    """
    spec = find_spec("harness")
    path = Path(spec.origin) if spec is not None and spec.origin else None
    if path is not None and path.resolve() != Path(__file__).resolve().parents[1] / "harness" / "__init__.py":
        hider = path.parent if path.name == "__init__.py" else path
        problem = f"{hider} hides Pipeswarm's own package 'harness'"
        fix = "rename it, or move the locustfile to another folder"
        if "locust.main" not in sys.modules:
            raise ImportError(f"{problem}: {fix}")
        sys.stderr.write(f"error: {problem}\n  → {fix}\n")
        sys.exit(_BAD_CONFIG)

"""Any command: one process per scenario, on the machine of the load generator.

The answer to a submission is the end of its process, so a run ends with its answer and nothing is listed. The exchange
of the load starts the process (`harness.drive.http.clients`); an address of this kind is never contacted.
"""

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.options import Option
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.model.text.typed import from_plain
from harness.targets.command.ended import Ended
from harness.targets.command.words import OF_SCENARIOS, filled, placeholders, words_of
from harness.targets.completed_run import CompletedRun
from harness.targets.scenarios import Input, InputType, as_cell
from harness.targets.target import PROCESSES, Prepared, RejectedError, SetUp

__all__ = ["DEFAULTS", "HOST_VARIABLE", "OPTIONS", "CommandTarget", "from_plan", "prepare"]

OPTIONS = (
    Option(
        "command", "", "command to run for each scenario, as 'python step.py --n {n}'; {n} is the value of column n",
        in_form=False,
    ),
)  # fmt: skip
# A process may take minutes; a hundred at once are more than any machine has cores for.
DEFAULTS = {"host": PROCESSES, "answer-timeout": "15m", "max-in-flight": "100"}
HOST_VARIABLE = ""

_SCRIPTS = frozenset({".py", ".sh", ".r", ".R", ".jl", ".js", ".pl", ".rb"})


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:  # noqa: ARG001  # see `Platform.prepare`
    """Check that the command is there and can be executed; see `Platform.prepare`."""
    words = words_of(texts["command"])
    if "{" not in words[0]:
        _demand_executable(words[0])
    inputs = tuple(Input(name, InputType.STRING, required=True) for name in placeholders(words))
    return Prepared({"words": orjson.dumps(words).decode()}, title_of(words), inputs)


def _demand_executable(program: str) -> None:
    if shutil.which(program) is not None:
        return
    if Path(program).is_dir():
        raise ConfigError(f"--command: {program} is a folder", "name a program")
    if Path(program).exists() and os.sep in program:
        raise ConfigError(f"--command: {program} can't be executed", f"chmod +x {program}, or name its interpreter")
    raise ConfigError(f"--command: there is no program {program}", "check the spelling and PATH")


def title_of(words: Sequence[str]) -> str:
    """What a command is called in reports: its script, or else its program."""
    return Path(next((word for word in words[1:] if Path(word).suffix in _SCRIPTS), words[0])).name


def from_plan(plan: Plan, package: bytes | None = None) -> "CommandTarget":  # noqa: ARG001  # see `Platform.from_plan`
    """The target of a plan."""
    return CommandTarget(orjson.loads(str(plan.target_options["words"])), plan.limits.answer_timeout_s)


class CommandTarget:
    """A command line, as `words` with placeholders; each of its processes may take `time_limit_s` seconds."""

    def __init__(self, words: Sequence[str], time_limit_s: float) -> None:
        self._words = words
        self._time_limit_s = time_limit_s
        self._title = title_of(words)

    def set_up(self, exchange: Exchange) -> SetUp:
        """Nothing is needed but an exchange that runs processes; see `Target.set_up`."""
        demand_processes(exchange)
        return SetUp({}, tuple(Input(name, InputType.STRING, required=True) for name in placeholders(self._words)))

    def submit(self, scenario: Scenario, exchange: Exchange) -> CompletedRun:
        """One process; see `Target.submit`."""
        own = dict(zip(OF_SCENARIOS, (scenario.id, scenario.name), strict=True))
        values = own | {name: as_cell(value) for name, value in scenario.values.items()}
        argv = filled(self._words, values)
        return run_process(exchange, argv, str(uuid.uuid4()), self._title, self._time_limit_s)


def demand_processes(exchange: Exchange) -> None:
    """Check that the exchange runs processes.

    Raises:
        TargetUnreachableError: it talks to an address instead.
    """
    answer = exchange(HttpRequest("GET", "/"))
    if answer.status != 200 or answer.body != PROCESSES.encode():
        raise TargetUnreachableError("processes have no address", "they run on this machine: leave --host out")


def run_process(exchange: Exchange, argv: Sequence[str], run: str, title: str, time_limit_s: float) -> CompletedRun:
    """Run one process to its end, as the run called `run`; `title` is what it is called in reports.

    Raises:
        RejectedError: no process was started.
        TargetUnreachableError: there is no telling how it ended.
    """
    wanted = orjson.dumps({"argv": argv, "time_limit_s": time_limit_s})
    return completed(exchange(HttpRequest("POST", "/", wanted)), run, title, time_limit_s)


def completed(answer: HttpAnswer, run: str, title: str, time_limit_s: float) -> CompletedRun:
    """The run that an answer describes.

    Raises:
        RejectedError: no process was started.
    """
    try:
        document = orjson.loads(answer.body)
        if answer.status == 200:
            return from_plain(Ended, document).as_run(run, title, time_limit_s)
        message = str(document["not_started"])
    except (ValueError, KeyError, TypeError):
        message = answer.body.decode(errors="replace")
    raise RejectedError(answer.status, f"{title} was not started: {message}")

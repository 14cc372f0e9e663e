"""How a process ended: what its supervisor reports, as a run."""

from dataclasses import dataclass

from harness.model.phases import COMPUTING, FAILED, PROCESS_CPU_SECONDS, PROCESS_PEAK_BYTES, QUEUED, SUCCEEDED
from harness.model.units import counted, format_duration
from harness.targets.completed_run import CompletedRun, Part

_WAIT = "wait"  # begins the names of phases in which nothing is done
_LINES = 3  # of standard error


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process.

    Attributes:
        exit_code: negative: ended by the signal of this number.
        took_s: from its start to its end.
        cpu_s: of it and all processes that it started.
        peak_bytes: the most resident memory of all of them together, sampled, or that of the largest one.
        phases: (phase, seconds) as it reported them.
        remarks: what it remarked itself.
        unreadable: lines of phases or remarks that could not be read.
        errors: the end of its standard error.
        timed_out: it was ended for exceeding its time limit.
        killed: it ignored SIGTERM then.
        left_behind: processes that were still there after its end, and were ended.
        machine: where it ran.
    """

    exit_code: int
    took_s: float
    cpu_s: float
    peak_bytes: int
    phases: tuple[tuple[str, float], ...] = ()
    remarks: tuple[str, ...] = ()
    unreadable: int = 0
    errors: str = ""
    timed_out: bool = False
    killed: bool = False
    left_behind: int = 0
    machine: str = ""

    def as_run(self, run: str, task: str, time_limit_s: float) -> CompletedRun:
        """The run that the process was. Time for which it reports no phase is the task `task`, or the rest of it."""
        succeeded = self.exit_code == 0 and not self.timed_out
        rest_s = max(0.0, self.took_s - sum(seconds for _, seconds in self.phases))
        reported = (
            Part(name, QUEUED if name.startswith(_WAIT) else COMPUTING, seconds) for name, seconds in self.phases
        )
        return CompletedRun(
            run,
            SUCCEEDED if succeeded else FAILED,
            "; ".join(filter(None, (self._why(time_limit_s), *self._remarks()))),
            task,
            node=self.machine or None,
            parts=(Part(f"rest of {task}" if self.phases else task, COMPUTING, rest_s), *reported),
            used=((PROCESS_CPU_SECONDS, self.cpu_s), (PROCESS_PEAK_BYTES, float(self.peak_bytes))),
        )

    def _why(self, time_limit_s: float) -> str:
        """Why it failed; "" if it succeeded."""
        lines = " · ".join([line.strip() for line in self.errors.splitlines() if line.strip()][-_LINES:])
        said = f": {lines}" if lines else ""
        if self.timed_out:
            how = ", ignored SIGTERM and was killed" if self.killed else " and was ended"
            return f"it was not over after {format_duration(time_limit_s)} (--answer-timeout){how}{said}"
        if self.exit_code < 0:
            return f"ended by signal {-self.exit_code}{said}"
        return f"exit code {self.exit_code}{said}" if self.exit_code else ""

    def _remarks(self) -> tuple[str, ...]:
        left = f"{self.left_behind} processes were left behind and ended" if self.left_behind > 1 else ""
        if self.left_behind == 1:
            left = "a process was left behind and ended"
        lines = f"{counted(self.unreadable, 'line')} of phases could not be read" if self.unreadable else ""
        return *self.remarks, left, lines

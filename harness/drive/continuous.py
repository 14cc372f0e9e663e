"""An observation that does not end: one run folder a day, or a batch, and the report of each that is over.

A run belongs to the folder in whose time it was created: the next folder begins with the first run that the last one
has not got. A restart goes on with the folder that it finds unfinished. The oldest are deleted when all take too much.
"""

import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from threading import Event as Flag
from typing import Any

import gevent

from harness.drive import processes
from harness.drive.background import LiveDiagnosis, Observer
from harness.drive.web import metrics_page
from harness.drive.web.guard import Guard
from harness.model.live.metrics import exposition
from harness.model.phases import RUN, TERMINAL_STATES
from harness.model.plan import Plan
from harness.model.records import Span
from harness.model.text.inert import for_output
from harness.model.units import format_bytes
from harness.store.folder import REPORT, Recorder, RunFolder

_LOOK_S = 1.0
_CARE_EVERY = 30  # looks between two restarts of an observer that dies, and between two counts of bytes
_DIAGNOSE_EVERY = "60s"
_SHARE = 0.25  # of all bytes, one folder may take
_LOOK_BACK_NS = 120 * 10**9  # runs that were created since are looked for, as far as no folder has them
_STAMP_NS = 10**9  # platforms stamp in whole seconds
_STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Parts:
    """When a folder is over.

    Attributes:
        gap_s: after no run was in flight for so long, once there were some; None is at midnight, UTC.
        most_bytes: of all folders together; one is over at a quarter of it, too.
    """

    gap_s: float | None
    most_bytes: int

    def over(self, begun_at: int, now_at: int, idle_s: float | None, size: int) -> bool:
        """Whether a folder is.

        Args:
            begun_at: UTC ns.
            now_at: UTC ns.
            idle_s: since a run was in flight; None where none was.
            size: in bytes.
        """
        if size > _SHARE * self.most_bytes:
            return True
        if self.gap_s is None:
            return _day(begun_at) != _day(now_at)
        return idle_s is not None and idle_s >= self.gap_s


@dataclass(slots=True)
class _Part:
    folder: RunFolder
    begun_at: int
    recorder: Recorder
    observer: Observer
    diagnosis: LiveDiagnosis
    size: int = 0
    runs: Mapping[str, int] = field(default_factory=dict)  # count by state
    active_at: int | None = None  # when a run was last in flight, or seen to have ended

    def look(self, now_at: int) -> None:
        before, self.runs = self.runs, self.folder.read_live("observer").get("runs") or {}
        if self.runs != before or any(count for state, count in self.runs.items() if state not in TERMINAL_STATES):
            self.active_at = now_at

    def idle_s(self, now_at: int) -> float | None:
        return None if self.active_at is None else (now_at - self.active_at) / 1e9

    def end(self) -> None:
        self.diagnosis.end()
        self.observer.end()
        self.recorder.close()


class Continuous:
    """The service.

    Args:
        runs_dir: where its folders are, beside others.
        prefix: of their names; the time of their beginning follows.
        plan: of an observation that begins at a time, UTC ns.
        environment: added to that of the observers, as for credentials.
        parts: when a folder is over, and what all may take.
        clock: UTC ns.
    """

    def __init__(
        self, runs_dir: Path, prefix: str, plan: Callable[[int], Plan], environment: Mapping[str, str], parts: Parts,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:  # fmt: skip
        self._runs_dir = runs_dir
        self._own = re.compile(rf"{re.escape(prefix)}-\d{{8}}T\d{{6}}Z(?:-\d+)?")
        self._prefix = prefix
        self._plan = plan
        self._environment = environment
        self._parts = parts
        self._clock = clock
        self._part: _Part | None = None
        self._reports: dict[Path, processes.Process] = {}

    def run(self, stop: Flag) -> None:
        """Observe until `stop` is set.

        Raises:
            ConfigError: the observer rejects its options, or no folder can be made.
        """
        unfinished = self._unfinished()
        newest = next(iter(self.folders()), None)
        self._part = self._begin(unfinished, _last_created(RunFolder.open(newest)) if newest else 0)
        self._part.observer.wait_until_observing()
        for path in self.folders():
            self._report(path)
        looks = 0
        while not stop.is_set():
            gevent.sleep(_LOOK_S)
            looks += 1
            self._look(self._part, care=looks % _CARE_EVERY == 0)
        self._part.end()
        for process in self._reports.values():
            process.wait()

    def folders(self) -> list[Path]:
        """Its own that are there, the latest first."""
        paths = self._runs_dir.iterdir() if self._runs_dir.is_dir() else ()
        return sorted((path for path in paths if self._own.fullmatch(path.name)), reverse=True)

    def page(self) -> str:
        """What is observed now, and the findings so far, as metrics."""
        if self._part is None:
            return ""
        folder = self._part.folder
        findings = folder.read_live("findings").get("findings") or ()
        return exposition({"observer": folder.read_live("observer"), "findings": findings})

    def _look(self, part: _Part, *, care: bool) -> None:
        now_at = self._clock()
        part.look(now_at)
        if care:
            part.observer.restart_if_dead()
            part.size = _size(part.folder.path)
            self._prune()
        if self._parts.over(part.begun_at, now_at, part.idle_s(now_at), part.size):
            part.end()
            self._part = self._begin(None, _last_created(part.folder))
            self._report(part.folder.path)

    def _unfinished(self) -> RunFolder | None:
        """The latest folder, if it is of the same platform, has no report yet, and its day is not over."""
        for path in self.folders()[:1]:
            folder = RunFolder.open(path)
            if folder.has(REPORT):
                return None
            recorded, plan = folder.read_plan(), self._plan(self._clock())
            same = (recorded.target, recorded.host, recorded.observer) == (plan.target, plan.host, plan.observer)
            if same and not self._parts.over(recorded.started_at, self._clock(), None, _size(path)):
                return folder
        return None

    def _begin(self, folder: RunFolder | None, last_at: int) -> _Part:
        """Go on with the folder, or begin a new one, whose runs were created after `last_at`, UTC ns."""
        now_at = self._clock()
        if folder is None:
            name = f"{self._prefix}-{datetime.fromtimestamp(now_at / 1e9, UTC):{_STAMP}}"
            folder = RunFolder.create(self._runs_dir, name)
            folder.write_plan(self._plan(max(last_at + _STAMP_NS, now_at - _LOOK_BACK_NS)))
        plan = folder.read_plan()
        _say(f"observing into {folder.path}")
        recorder = folder.recorder()
        observer = Observer(folder, plan, recorder, self._environment, most_restarts=sys.maxsize)
        return _Part(folder, plan.started_at, recorder, observer, LiveDiagnosis(folder, _DIAGNOSE_EVERY))

    def _report(self, path: Path) -> None:
        if (self._part is None or path != self._part.folder.path) and not (path / REPORT).is_file():
            _say(f"{path} is over, its report follows")
            self._reports[path] = processes.start_beside(["report", str(path), "--quiet"], path / "report.log", {})

    def _prune(self) -> None:
        """Delete the oldest folders; what is being written stays."""
        self._reports = {path: process for path, process in self._reports.items() if process.poll() is None}
        finished = {path for path in self.folders() if path not in self._reports and (path / REPORT).is_file()}
        for path in superfluous([(path, _size(path)) for path in self.folders()], self._parts.most_bytes):
            if path in finished:
                _say(f"{path} is deleted: all folders together take more than {format_bytes(self._parts.most_bytes)}")
                shutil.rmtree(path, ignore_errors=True)


def superfluous(folders: Sequence[tuple[Path, int]], most_bytes: int) -> list[Path]:
    """Those of the folders, with their sizes and the latest first, that are more than `most_bytes` with later ones."""
    sums = accumulate(size for _, size in folders)
    return [path for (path, _), total in zip(folders, sums, strict=True) if total > most_bytes]


def serve(address: tuple[str, int], page: Callable[[], str]) -> Any:
    """Serve `page` under ``/metrics``, until the server that is returned is stopped.

    Raises:
        ConfigError: it can't listen there.
    """
    server = metrics_page.serve(*address, page, Guard((address[0],)))
    _say(f"metrics: http://{address[0]}:{server.server_port}/metrics")
    return server


def _last_created(folder: RunFolder) -> int:
    """When the latest run in it was created, UTC ns; 0 without any."""
    return max((span.started_at for span in folder.records(Span) if span.phase == RUN), default=0)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def _day(at: int) -> int:
    return at // (86_400 * 10**9)


def _say(text: str) -> None:
    print(for_output(text), file=sys.stderr, flush=True)

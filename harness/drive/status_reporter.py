"""Shows a test while it runs and when it is over: in the terminal, in the run folder, in the web UI."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gevent

from harness.drive.console import say
from harness.drive.history import History
from harness.drive.progress_line import Progress
from harness.drive.runner import SessionRunner
from harness.model.live import LiveLoad, Stage

_SHOW_EVERY_S = 1.0
_UNWRITTEN = "{} can't be written: {}; the ends of runs are seen once there is room"


class StatusReporter:
    """Shows the latest test of this process, or that there is none yet."""

    def __init__(self) -> None:
        self._runner: SessionRunner | None = None
        self._progress = Progress()
        self._refresher: gevent.Greenlet | None = None
        self._history = History()
        self._load = LiveLoad()
        self._refusal = self._warning = ""

    def begin(self) -> None:
        """Forget the test before: another one was requested."""
        self._runner, self._history, self._load = None, History(), LiveLoad()
        self._refusal = self._warning = ""

    def warn(self, warning: str) -> None:
        """Show a warning beside the test, after those shown already."""
        self._warning = "; ".join(filter(None, (self._warning, warning)))

    def refuse(self, refusal: str) -> None:
        """Show why a test could not be started."""
        self._refusal = refusal
        if not self._load.stage:
            self._load = LiveLoad("not started")

    def follow(self, runner: SessionRunner) -> None:
        """Show this test from now on."""
        self._runner, self._history, self._progress = runner, History(), Progress()
        self._refresher = gevent.spawn(self._refresh_regularly, runner)

    def done(self, runner: SessionRunner) -> None:
        """The test is over: show its final state, or the error that kept it from starting."""
        if self._refresher is not None and self._runner is runner:
            self._refresher.kill()
            self._refresh(runner)
            self._progress.done(self._load, self._live("observer"))
        elif runner.verdict:
            self.refuse(runner.verdict)

    def state(self) -> dict[str, Any]:
        """See `web_tab.Source`."""
        return {
            "load": self._load.to_mapping(),
            "observer": self._live("observer"),
            "findings": self._live("findings").get("findings", []),
            "history": self._history.columns(),
            "warning": self._warning,
            "verdict": self._refusal or (self._runner.verdict if self._runner is not None else ""),
            "report": self.document("report.html") is not None,
        }

    def document(self, name: str) -> Path | None:
        """See `web_tab.Source`."""
        runner = self._runner
        if runner is None or runner.folder is None or runner.stage is not Stage.OVER:
            return None
        path = runner.folder.path / name
        return path if path.is_file() else None

    def _live(self, part: str) -> Mapping[str, Any]:
        """The latest state that another process of the test wrote to its folder."""
        folder = self._runner.folder if self._runner is not None else None
        return folder.read_live(part) if folder is not None else {}

    def _refresh_regularly(self, runner: SessionRunner) -> None:
        while True:
            self._refresh(runner)
            self._progress.show(self._load, self._live("observer"), self._live("findings"))
            gevent.sleep(_SHOW_EVERY_S)

    def _refresh(self, runner: SessionRunner) -> None:
        self._load = runner.live()
        self._history.add(self._load, self._live("observer"))
        if runner.folder is not None:
            try:
                runner.folder.write_live("load", self._load.to_mapping())
            except OSError as error:  # a full disk ends the test when a record can't be written
                warning = _UNWRITTEN.format(runner.folder.path, error.strerror)
                if warning not in self._warning:
                    self.warn(warning)
                    say(f"\nwarning: {warning}\n")

"""What people are told of a test: while it goes in terminal, folder and web UI, and at its end."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent

from harness.drive.console import say
from harness.drive.history import History
from harness.drive.progress_line import Progress
from harness.drive.session import Session, Stage
from harness.model.errors import ExitCode

_SHOW_EVERY_S = 1.0


class StatusReporter:
    """Shows the test of this process; without one, that there is none."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._progress = Progress()
        self._shower: gevent.Greenlet | None = None
        self._history = History()
        self._load: Mapping[str, Any] = {}
        self._refusal = self._warning = ""

    def begin(self) -> None:
        """Another test begins: what was told of the one before is over."""
        self._session, self._history, self._load = None, History(), {}
        self._refusal = self._warning = ""

    def warn(self, warning: str) -> None:
        """Show a sentence beside the test."""
        self._warning = warning

    def refuse(self, refusal: str) -> None:
        """A test could not be done, and that is all there is to say of it."""
        self._refusal = refusal
        self._load = self._load or {"stage": "not started"}

    def follow(self, session: Session) -> None:
        """From now on it is about this test."""
        self._session, self._history, self._progress = session, History(), Progress()
        self._shower = gevent.spawn(self._show_regularly)

    def done(self) -> None:
        """The test is over; say so once more everywhere."""
        if self._shower is not None:
            self._shower.kill()
            self._show()
            self._progress.done(self._load, self.live("observer"))

    def state(self) -> dict[str, Any]:
        """All that the web UI shows, as plain values."""
        session = self._session
        report = self.document("report.html")
        return {
            "load": self._load,
            "observer": self.live("observer"),
            "findings": self.live("findings").get("findings", []),
            "history": self._history.columns(),
            "warning": self._warning,
            "verdict": self._refusal or (session.verdict if session is not None else ""),
            "report": report is not None,
        }

    def live(self, part: str) -> Mapping[str, Any]:
        """What another process of the test last said in its folder."""
        folder = self._session.folder if self._session is not None else None
        return folder.read_live(part) if folder is not None else {}

    def document(self, name: str) -> Path | None:
        """A document of the test's folder, once it is there."""
        session = self._session
        if session is None or session.folder is None or session.stage is not Stage.OVER:
            return None
        path = session.folder.path / name
        return path if path.is_file() else None

    def _show_regularly(self) -> None:
        while True:
            self._show()
            self._progress.show(self._load, self.live("observer"), self.live("findings"))
            gevent.sleep(_SHOW_EVERY_S)

    def _show(self) -> None:
        session = self._session
        assert session is not None
        self._load = session.live()
        self._history.add(self._load, self.live("observer"))
        if session.folder is not None:
            with suppress(OSError):  # a full disk ends the test where a record can't be written
                session.folder.write_live("load", self._load)


def conclude(code: ExitCode, verdict: str, why: str = "", *, aside: bool = False) -> None:
    """The last words of a test; `why` is said in place of the code's meaning, `aside` leaves stdout to others."""
    out = sys.stderr if aside or verdict.startswith("error:") else sys.stdout
    told = f"{verdict.rstrip()}\n" if verdict else ""
    say(f"{told}exit code {int(code)}: {why or code.meaning}\n", out)


def summarize_for_github(report: Path | None) -> None:
    """A job's summary page on GitHub gets the report, as its file in ``GITHUB_STEP_SUMMARY`` asks for."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and report is not None:
        with Path(summary).open("a", encoding="utf-8") as out:
            out.write(report.read_text(encoding="utf-8"))

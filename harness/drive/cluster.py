"""The master's link to its workers: each message goes to the test that it names, even after that test's end."""

from collections import Counter
from pathlib import Path
from typing import Any

import gevent

from harness.drive import processes
from harness.drive.cluster_messages import CLOCK_IS, KEPT, ROWS, problem
from harness.drive.console import say
from harness.drive.distributed import Books, DistributedGenerator
from harness.drive.load_generator import LedgerClosedError, UnwritableError
from harness.model.errors import ConfigError
from harness.model.inert import one_line
from harness.model.units import counted
from harness.store.folder import RunFolder
from harness.store.recovery import find_folder, merge, merge_spool, unfinished
from harness.store.spools import leftovers, read_spool


def finish_killed(runs_dir: Path) -> None:
    """Write the reports of earlier tests whose load was killed, with the records that it left elsewhere."""
    for folder in unfinished(runs_dir):
        say(f"{folder.path}: its load was killed; its report is written first\n")
        processes.report(folder.path)


class Cluster:
    """Routes the messages of workers.

    Only a test's own workers add to it. Their records of a test that is over are added to its run folder, and its
    report is written again; those of an earlier master's test stay in their spools, which the next start finds.
    """

    def __init__(self, runner: Any, runs_dir: Path) -> None:
        self._runner = runner
        self._runs_dir = runs_dir
        self._test = ""  # the latest one
        self._generator: DistributedGenerator | None = None
        self._tests: dict[str, tuple[RunFolder, frozenset[str]]] = {}  # of this master, with their workers
        self._malformed: Counter[str] = Counter()  # messages by worker
        self._outdated: set[Path] = set()  # folders whose report lacks records
        for kind in (ROWS, CLOCK_IS):
            runner.register_message(kind, self._receive)

    def generator(self, test: str, folder: RunFolder, books: Books) -> DistributedGenerator:
        """The load generator of a test.

        Raises:
            PipeswarmError: no worker is connected.
        """
        self._generator, self._test = DistributedGenerator(test, self._runner, books), test
        self._tests[test] = folder, self._generator.clients
        return self._generator

    def recover_leftovers(self) -> None:
        """Add the spools that dead workers of this machine left to their run folders below `runs_dir`."""
        for path in leftovers():
            try:
                origin, _ = read_spool(path)
                if folder := find_folder(self._runs_dir, origin.test):
                    say(f"{folder.path}: {merge_spool(folder, path)}, from {path}\n")
                    path.unlink(missing_ok=True)
                    self._report(folder)
            except (ConfigError, OSError) as error:
                say(f"warning: the spool {path} stays: {error}\n")

    def _receive(self, msg: Any, **_: object) -> None:
        if wrong := problem(msg.type, msg.data):
            self._refuse(str(msg.node_id), wrong)
            return
        test = msg.data["test"]
        try:
            if test == self._test and self._generator is not None:
                self._generator.receive(msg)
                return
        except UnwritableError:
            return  # the worker keeps what is not acknowledged
        except LedgerClosedError:
            pass
        if msg.type == ROWS:
            self._recover(test, msg.node_id, msg.data)

    def _recover(self, test: str, client: str, rows: dict[str, Any]) -> None:
        """Add records that come too late for their test. Without an answer the worker sends them again."""
        folder, clients = self._tests.get(test, (None, frozenset[str]()))
        folder, upto = folder if client in clients else None, rows["at"]
        if folder is not None:
            try:
                recovered = merge(folder, rows["lines"].splitlines(keepends=True), f"worker {client}")
            except (ConfigError, OSError):
                return
            upto += len(rows["lines"])
            if recovered.records:
                self._outdated.add(folder.path)
                say(f"{folder.path}: {recovered}, from worker {client}\n")
            if rows["over"] and folder.path in self._outdated:
                self._report(folder)
        answer = {"test": test, "upto": upto, "over": rows["over"] and folder is not None, "unwanted": folder is None}
        self._runner.send_message(KEPT, answer, client)

    def _refuse(self, client: str, wrong: str) -> None:
        """Ignore a malformed message; it is told once of each worker, and again with each tenfold number of them."""
        self._malformed[client] += 1
        count = self._malformed[client]
        if count == 10 ** (len(str(count)) - 1):
            say(f"warning: {counted(count, 'message')} of worker {one_line(client)} ignored: {wrong}\n")

    def _report(self, folder: RunFolder) -> None:
        self._outdated.discard(folder.path)
        gevent.spawn(processes.report, folder.path)

"""The newest records of a test that goes on: a look at a long test takes no more memory than one at a short test."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pandas as pd

from harness.model.forgetting import Ids
from harness.model.phases import LASTING, PLATFORM
from harness.model.records import Event, Node, Sample, Span, Submission
from harness.store import files
from harness.store.folder import KINDS, MOST_RECORDS, RunFolder

_OF_THE_TEST = frozenset({"Observer", "Test", PLATFORM})  # kinds of events
_STARTED = "Started"


def _lasting(sample: Mapping[str, Any]) -> object:
    return (sample["metric"], sample["labels"]) if sample["metric"] in LASTING else None


def _of_test(event: Mapping[str, Any]) -> object:
    """The window counts as a test of its own: it begins with its first arrival."""
    kept = event["kind"] in _OF_THE_TEST and event["reason"] != _STARTED
    return (event["kind"], event["object"], event["reason"]) if kept else None


# Of the records before the window, the last one of each of these still holds; none: it does not.
_HOLDS: Mapping[type, Callable[[Mapping[str, Any]], object]] = {
    Sample: _lasting,
    Event: _of_test,
    Node: lambda node: node["name"],
}


class Newest:
    """A window on the end of a folder's records, with what still holds from before.

    It moves from one look to the next, for all kinds of records at once: what is recorded of a run comes after its
    submission, so that the runs in the window are there as a whole. Earlier runs are left out.

    Args:
        folder: to which records are appended.
        most: bytes of the window.
    """

    def __init__(self, folder: RunFolder, most: int) -> None:
        self._folder = folder
        self._most = most
        self._begins = dict.fromkeys(KINDS, 0)
        self._looks: deque[Mapping[type, int]] = deque()  # sizes of the files
        self._holding: dict[type, dict[object, bytes]] = {kind: {} for kind in KINDS}
        self._left_out = Ids()  # runs

    def move(self) -> None:
        """Take in what was appended, and leave out what is older than the window then."""
        sizes = {kind: files.size_of(self._folder.path, _lines(kind)) or 0 for kind in KINDS}
        self._looks.append(sizes)
        while (excess := self._size(sizes) - self._most) > 0:
            if self._looks[0] is sizes:  # so much was appended since the look before
                share = excess / self._size(sizes)
                for kind, begin in self._begins.items():
                    self._leave_out(kind, begin + round(share * (sizes[kind] - begin)))
                return
            for kind, size in self._looks.popleft().items():
                self._leave_out(kind, size)

    def read(self, kind: type) -> bytes:
        """The lines of a kind."""
        lines = b"".join(self._holding[kind].values())
        if not self._folder.has(_lines(kind)):
            return lines
        with self._folder.open_file(_lines(kind), MOST_RECORDS) as file:
            file.seek(self._begins[kind])
            return lines + file.read()

    def chosen(self, frame: pd.DataFrame, kind: type) -> pd.DataFrame:
        """The rows of a kind without those of runs that are left out."""
        if kind not in {Span, Event} or not len(self._left_out):
            return frame
        runs = frame["run"]
        out = {run for run in runs.unique() if run in self._left_out}
        return frame[~runs.isin(out)].reset_index(drop=True) if out else frame

    def _size(self, sizes: Mapping[type, int]) -> int:
        return sum(sizes.values()) - sum(self._begins.values())

    def _leave_out(self, kind: type, until: int) -> None:
        if self._begins[kind] >= until:
            return
        with self._folder.open_file(_lines(kind), MOST_RECORDS) as file:
            file.seek(self._begins[kind])
            while self._begins[kind] < until and (line := file.readline()).endswith(b"\n"):
                self._begins[kind] += len(line)
                self._note(kind, line)

    def _note(self, kind: type, line: bytes) -> None:
        try:
            record = orjson.loads(line)
            if kind is Submission and record["run"]:
                self._left_out.add(record["run"])
            key = _HOLDS[kind](record) if kind in _HOLDS else None
        except (ValueError, KeyError, TypeError):
            return  # torn, or no record: the look itself says so
        if key is not None:
            self._holding[kind][key] = line


def _lines(kind: type) -> str:
    return f"{KINDS[kind]}.jsonl"

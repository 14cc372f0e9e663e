"""``pipeswarm recover``: spools into a run folder, with its report, and clear refusals."""

import json
import tempfile
from pathlib import Path

import pytest

from harness.cli import main
from harness.model import Outcome, Plan, Submission
from harness.model.errors import ExitCode
from harness.store import RunFolder
from harness.store.folder import encode
from harness.store.spools import Origin, Spool, spool_path

TEST, T0 = "0123abcd", 1_700_000_000_000_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = RunFolder.create(tmp_path, "r")
    folder.write_plan(Plan("kfp", "h", {"name": "burst"}, 4, 7, simulated=True, id=TEST, started_at=T0))
    folder.write_schedule([0.0] * 4)
    return folder


def spooled(worker: int, *seqs: int, test: str = TEST) -> Path:
    spool = Spool(spool_path(test, worker), Origin(test, "r", worker))
    for seq in seqs:
        row = Submission(seq, "s", f"{seq}-s", T0, T0 + 1, T0 + 2, Outcome.ACCEPTED, f"r{seq}", worker, 200, None)
        spool.append(encode(row))
    spool.close()
    return spool.path


def test_the_spools_on_this_machine_are_added_and_deleted(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    found, other = [spooled(0, 0, 2), spooled(1, 1, 3)], spooled(0, 0, test="ffff")
    assert main(["recover", str(folder.path)]) == ExitCode.OK
    assert sorted(row.seq for row in folder.records(Submission)) == [0, 1, 2, 3]
    assert [path.exists() for path in (*found, other)] == [False, False, True]
    said = capsys.readouterr().out
    assert said.count("2 arrivals recovered (2 records; 0 known already)") == 2
    assert "INVALID" in said
    report = json.loads((folder.path / "report.json").read_text())
    assert report["ledger"]["unaccounted"] == 0
    for name in ("report.html", "report.md"):
        text = (folder.path / name).read_text()
        assert text.count("Recovered: 2 arrivals of worker") == 2


def test_named_spools_are_added_once_and_kept(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    spool = spooled(0, 0, 2)
    counts = []
    for _ in range(2):
        assert main(["recover", str(folder.path), str(spool), "--json"]) == ExitCode.OK
        counts.append(json.loads(capsys.readouterr().out)["spools"][0]["recovered"])
    assert [(count["arrivals"], count["known"]) for count in counts] == [(2, 0), (0, 2)]
    assert len(folder.records(Submission)) == 2
    assert spool.exists()


def test_refusals_name_the_file_and_change_nothing(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    foreign, text = spooled(0, 0, test="ffff"), folder.path.parent / "x.txt"
    text.write_text("hello\n")
    for given, said in (
        ([str(foreign)], f"{foreign} holds records of another test"),
        ([str(text)], f"{text} is not a spool"),
        ([str(folder.path / "none")], "No such file or directory"),
        ([], "there is no spool of"),
    ):
        assert main(["recover", str(folder.path), *given]) == ExitCode.BAD_CONFIG
        assert said in capsys.readouterr().err
    assert folder.records(Submission) == []

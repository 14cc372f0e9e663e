from types import SimpleNamespace

from harness.drive.session.status_reporter import StatusReporter
from harness.model.live.state import LiveLoad, Stage
from harness.store import RunFolder


def test_a_run_folder_without_room_is_told_once_while_the_test_goes_on(tmp_path, monkeypatch, capsys):
    """The observer holds its records then: without a word, the test would look as if no run ended."""

    def full(*_):
        raise OSError(28, "No space left on device")

    folder = RunFolder.create(tmp_path, "r")
    monkeypatch.setattr(RunFolder, "write_live", full)
    test = SimpleNamespace(folder=folder, stage=Stage.DRAINING, verdict="", live=lambda: LiveLoad(Stage.DRAINING))
    reporter = StatusReporter()
    reporter.follow(test)
    for _ in range(3):
        reporter.done(test)
        reporter.follow(test)
    reporter.done(test)
    told = f"{folder.path} can't be written: No space left on device; the ends of runs are seen once there is room"
    assert reporter.state()["warning"] == told
    assert capsys.readouterr().err.count(told) == 1

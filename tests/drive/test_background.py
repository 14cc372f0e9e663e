"""What the observer of a test is told on its command line, and not by the folder, which may come from anybody."""

import pytest

from harness.drive import background
from harness.model import Plan
from harness.model.plan import ObserverPlan
from harness.store import RunFolder


@pytest.mark.parametrize("verify", [True, False])
def test_the_observer_is_told_whether_the_certificates_of_its_sources_are_checked(tmp_path, monkeypatch, verify):
    commands = []
    monkeypatch.setattr(background.processes, "start_beside", lambda command, *_: commands.append(command))
    folder = RunFolder.create(tmp_path, "a")
    observer = ObserverPlan(verify_tls=verify)
    plan = Plan(
        "kfp", "https://platform", {"name": "burst"}, 1, 7, simulated=False, verify_tls=False, observer=observer
    )
    background.Observer(folder, plan, None, {})
    assert ("--insecure" in commands[0]) is not verify
    assert commands[0][commands[0].index("--host") + 1] == "https://platform"

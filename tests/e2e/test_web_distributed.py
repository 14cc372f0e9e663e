"""The web UI of a master whose workers send the arrivals."""

import json

from tests.support.e2e import PIPELINE, free_port, wait_for
from tests.support.web_ui import start_web_ui


def test_the_tab_shows_the_workers_arrivals_and_the_report_at_the_end(locust, platform):
    bus = str(free_port())
    ui = start_web_ui(
        locust, "--master", "--master-bind-port", bus, "--host", platform.url, "--pipeline", PIPELINE, "--max-runs", "100",
        KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    locust.start("--worker", "--master-port", bus)
    wait_for(lambda: ui.json("/stats/requests")["workers"])
    form = {"user_count": 3, "spawn_rate": 3, "host": platform.url, "schedule": "concurrency", "runs": 9}
    assert ui.start(**form)[1]["success"]
    dispatching = wait_for(lambda: (load := ui.state()["load"])["stage"] == "dispatching" and load)
    assert "closed model" in dispatching["load"]
    locust.start("--worker", "--master-port", bus)  # too late for this test
    over = wait_for(lambda: (now := ui.state())["load"]["stage"] == "over" and now["report"] and now)
    assert [over["load"][name] for name in ("intended", "sent", "accepted", "done")] == [9, 9, 9, 9]
    assert over["load"]["lag_p99_s"] > 0
    assert over["verdict"]
    assert max(over["history"]["in_flight"]) > 0
    assert over["history"]["ready_nodes"][-1] >= 2
    page = ui.read("/pipeline-runs/report.html")
    (folder,) = (locust.place / "runs").iterdir()
    assert page == (folder / "report.html").read_bytes()
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").read_text().splitlines()]
    assert {row["worker"] for row in rows} == {0}
    wait_for(lambda: len(ui.json("/stats/requests")["workers"]) == 2)
    ui.process.terminate()
    assert locust.finish(ui.process).code is not None

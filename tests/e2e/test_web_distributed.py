"""The web UI of a master whose workers send the arrivals."""

import json
import urllib.parse
import urllib.request

from tests.support.e2e import ROOT, free_port, wait_for

PIPELINE = str(ROOT / "harness/targets/training.yaml")


def shown(address):
    """The state of the tab "Pipeline runs"."""
    with urllib.request.urlopen(f"{address}/pipeline-runs/state", timeout=5) as answer:
        return json.load(answer)


def test_the_tab_shows_the_workers_arrivals_and_the_report_at_the_end(locust, platform):
    port, bus = free_port(), str(free_port())
    address = f"http://127.0.0.1:{port}"
    master = locust.start(
        "--master", "--master-bind-port", bus, "--web-host", "127.0.0.1", "--web-port", str(port), "--host", platform.url,
        "--pipeline", PIPELINE, KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    locust.start("--worker", "--master-port", bus)
    wait_for(lambda: json.load(urllib.request.urlopen(f"{address}/stats/requests"))["workers"])
    form = {
        "user_count": 3, "spawn_rate": 3, "host": platform.url, "schedule": "concurrency", "runs": 9, "max_runs": 100,
        "yes": "false",
    }  # fmt: skip
    started = urllib.request.urlopen(f"{address}/swarm", data=urllib.parse.urlencode(form).encode())
    assert json.load(started)["success"]
    dispatching = wait_for(lambda: (load := shown(address)["load"])["stage"] == "dispatching" and load)
    assert "closed model" in dispatching["load"]
    locust.start("--worker", "--master-port", bus)  # too late for this test
    over = wait_for(lambda: (now := shown(address))["load"]["stage"] == "over" and now["report"] and now)
    assert [over["load"][name] for name in ("intended", "sent", "accepted", "done")] == [9, 9, 9, 9]
    assert over["load"]["lag_p99_s"] > 0
    assert over["verdict"]
    assert max(over["history"]["in_flight"]) > 0
    assert over["history"]["ready_nodes"][-1] >= 2
    page = urllib.request.urlopen(f"{address}/pipeline-runs/report.html").read()
    (folder,) = (locust.place / "runs").iterdir()
    assert page == (folder / "report.html").read_bytes()
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").read_text().splitlines()]
    assert {row["worker"] for row in rows} == {0}
    wait_for(lambda: len(json.load(urllib.request.urlopen(f"{address}/stats/requests"))["workers"]) == 2)
    master.terminate()
    assert locust.finish(master).code is not None

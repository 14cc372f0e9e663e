"""The example of a custom platform in docs/load.md, exactly as documented."""

import json
import re

import pytest

from harness.model.http import HttpAnswer
from tests.support.e2e import ROOT
from tests.support.servers import serving

NAMES: list[str] = []


def answer(request):
    """That of a service that executes a job at once, and rejects every fifth."""
    NAMES.append(json.loads(request.body)["name"])
    return (
        HttpAnswer(200, json.dumps({"id": f"job-{len(NAMES)}"}).encode())
        if len(NAMES) % 5
        else HttpAnswer(503, b"no room")
    )


@pytest.fixture
def service():
    with serving(answer) as url:
        yield url


def test_the_documented_example_loads_a_platform_of_its_own(locust, tmp_path, service):
    platform, locustfile = re.findall(r"```python\n(.*?)```", (ROOT / "docs/load.md").read_text(), re.DOTALL)
    assert max(len(platform.splitlines()), len(locustfile.splitlines())) <= 20
    (tmp_path / "jobs.py").write_text(platform)
    (tmp_path / "load.py").write_text(locustfile)
    (tmp_path / "few.csv").write_text("id,scenario_name\n" + "".join(f"{k},s\n" for k in range(20)))
    nowhere = locust.headless("-f", str(tmp_path / "load.py"), "--scenarios", "few.csv")
    assert nowhere.code == 2, nowhere.err
    assert "JOBS_ENDPOINT" in nowhere.err
    finished = locust.headless(
        "-f", str(tmp_path / "load.py"), "--scenarios", "few.csv", "--over", "2s", JOBS_ENDPOINT=service,
        KUBECONFIG=str(tmp_path / "none"),
    )  # fmt: skip
    assert finished.code in {3, 4}, finished.err + finished.out
    outcomes = [row["outcome"] for row in finished.rows()]
    assert (outcomes.count("accepted"), outcomes.count("rejected")) == (16, 4)
    assert sorted(NAMES[-20:]) == sorted(f"{k}-s" for k in range(20))  # of the last try
    ledger = finished.report()["ledger"]
    assert ledger["in_flight"] == 0, ledger
    assert (finished.folder / "observer.log").read_text().count("Traceback") == 0

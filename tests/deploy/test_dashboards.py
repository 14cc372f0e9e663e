"""Every query of the dashboards and rules answers in a real Prometheus that scrapes our page and the platforms' pages."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from harness.model.http import HttpAnswer
from harness.model.live.metrics import exposition
from tests.support.live_views import LOAD, OBSERVED
from tests.support.prometheus_server import real_prometheus
from tests.support.servers import serving, until

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json"))}
RULES = [
    rule for group in yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"] for rule in group["rules"]
]
TEST = {
    "load": {**LOAD, "accepted": 190, "awaited": 1, "lag_s": 0.1, "ends_age_s": 5.0},
    "observer": OBSERVED,
    "findings": [{"name": "quota", "confidence": 0.9}],
}


def page():
    recorded = sorted((Path(__file__).parent / "pages").glob("*.txt"))
    return "".join([exposition(TEST), *(path.read_text() for path in recorded)])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with (
        serving(lambda _: HttpAnswer(200, page().encode(), {"content-type": "text/plain; version=0.0.4"})) as served,
        real_prometheus(tmp_path_factory.mktemp("prometheus"), served.removeprefix("http://")) as url,
    ):
        until(lambda: asked(url, "rate(pipeswarm_arrivals_sent_total[1m])"), "two scrapes")
        yield url


def asked(url, query):
    """The series that a query answers with."""
    with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=60) as answer:
        return json.load(answer)["data"]["result"]


def queries():
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield pytest.param(target["expr"].replace("$__rate_interval", "1m"), id=f"{name}: {panel['title']}")
    for rule in RULES:
        yield pytest.param(re.fullmatch(r"(?s)(.*) [<>] [\d.e]+", rule["expr"])[1], id=rule["alert"])


@pytest.mark.xdist_group("prometheus")
@pytest.mark.parametrize("query", list(queries()))
def test_a_query_answers(prometheus, query):
    assert asked(prometheus, query)


def test_a_query_of_a_misspelt_metric_would_be_noticed(prometheus):
    assert asked(prometheus, "pipeswarm_arrivals_sent") == []


def test_every_metric_of_ours_is_on_a_dashboard():
    shown = json.dumps(BOARDS)
    ours = set(re.findall(r"^# TYPE (pipeswarm_\w+)", exposition(TEST), re.MULTILINE))
    assert {name for name in ours if name not in shown} == set()


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_dashboard_has_what_grafana_reads(board):
    assert board["schemaVersion"] >= 36
    assert re.fullmatch(r"pipeswarm-[a-z]{1,30}", board["uid"])
    assert {each["name"] for each in board["templating"]["list"]} == {"datasource"}
    ids, taken = [panel["id"] for panel in board["panels"]], set()
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        assert panel["type"] in {"timeseries", "stat"}
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, "panels overlap"
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)


def test_promtool_accepts_the_rules():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on this machine: install Debian's package prometheus")
    done = subprocess.run(
        [promtool, "check", "rules", DEPLOY / "prometheus-rules.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} rules found" in done.stdout

"""The adapter as used by a runtime: the contract, the data, and the limits."""

import asyncio
import base64
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from harness.simulator.engine.distributions import fixed
from harness.simulator.hetida.adapter.limits import Gate, Limits
from harness.simulator.hetida.adapter.plants import Plants, instant, stamp
from harness.simulator.hetida.adapter.rest import application

RANGE = {"from": "2026-01-01T00:00:00.000000000Z", "to": "2026-01-01T01:00:00.000000000Z"}


def use(talk, **limits):
    """Let `talk(client)` use an adapter."""

    async def all_of_it():
        gate = Gate(Limits(**limits), 7)
        async with TestClient(TestServer(application(Plants(3), gate))) as client:
            return await talk(client)

    return asyncio.run(all_of_it())


async def lines(answer):
    assert answer.status == 200, await answer.text()
    return [json.loads(line) for line in (await answer.text()).splitlines()]


def test_a_series_has_a_point_for_each_step_of_the_range_with_both_ends():
    async def talk(client):
        answer = await client.get("/timeseries", params=[("id", "plant-0001/temperature"), *RANGE.items()])
        attributes = json.loads(base64.b64decode(answer.headers["Data-Attributes"]))
        return await lines(answer), attributes

    rows, attributes = use(talk)
    assert len(rows) == 61
    assert rows[0].keys() == {"timeseriesId", "timestamp", "value"}
    assert rows[0]["timestamp"] == RANGE["from"]
    assert rows[-1]["timestamp"] == RANGE["to"]
    assert attributes["plant-0001/temperature"]["ref_interval_end_timestamp"] == RANGE["to"]


def test_several_series_come_in_one_answer_and_the_same_question_has_the_same_answer():
    async def talk(client):
        asked = [("id", "a"), ("id", "b"), *RANGE.items()]
        return [await lines(await client.get("/timeseries", params=asked)) for _ in range(2)]

    first, second = use(talk)
    assert first == second
    assert {row["timeseriesId"] for row in first} == {"a", "b"}
    values = [[row["value"] for row in first if row["timeseriesId"] == name] for name in "ab"]
    assert values[0] != values[1]


def test_a_part_of_a_range_is_a_part_of_its_answer():
    plants = Plants()
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    whole = list(plants.series("x", begin, begin + timedelta(hours=2)))
    assert list(plants.series("x", begin + timedelta(minutes=30), begin + timedelta(hours=1))) == whole[30:61]


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00 00:00", "2026-01-01T00:00:00"]
)  # fmt: skip
def test_stamps_are_read_as_clients_write_them(text):
    assert stamp(instant(text)) == "2026-01-01T00:00:00.000000000Z"


@pytest.mark.parametrize(
    ("path", "name", "rows"),
    [
        ("/timeseries", "timeseriesId", [{"timestamp": "2026-01-01T00:10:00.000000000Z", "value": 1.5}]),
        ("/dataframe", "id", [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]),
        ("/multitsframe", "id", [{"timestamp": "2026-01-01T00:10:00Z", "metric": "m", "value": 2}]),
    ],
)
def test_sent_data_can_be_loaded_again(path, name, rows):
    attributes = base64.b64encode(b'{"unit": "K"}').decode()

    async def talk(client):
        posted = await client.post(path, params={name: "sink"}, json=rows, headers={"Data-Attributes": attributes})
        assert posted.status == 200
        return await lines(await client.get(path, params=[("id", "sink"), *RANGE.items()]))

    found = use(talk)
    assert [{k: v for k, v in row.items() if k != "timeseriesId"} for row in found] == rows


def test_frames_of_plants_are_served():
    async def talk(client):
        wide = await lines(await client.get("/multitsframe", params=[("id", "plant-0002"), *RANGE.items()]))
        table = await lines(await client.get("/dataframe", params={"id": "plants"}))
        return wide, table

    wide, table = use(talk)
    assert {row["metric"] for row in wide} == {"temperature", "pressure", "flow"}
    assert [row["plant"] for row in table] == ["plant-0001", "plant-0002", "plant-0003"]


def test_plants_can_be_browsed_from_the_root_to_their_series():
    async def talk(client):
        async def get(path, **query):
            answer = await client.get(path, params=query)
            assert answer.status == 200
            return await answer.json()

        root = await get("/structure")
        leaf = await get("/structure", parentId=root["thingNodes"][0]["id"])
        one = await get(f"/sources/{leaf['sources'][0]['id']}")
        node = await get(f"/thingNodes/{root['thingNodes'][0]['id']}")
        return root, leaf, one, node, await get("/sources/", filter="0002/flow"), await get("/info")

    root, leaf, one, node, found, info = use(talk)
    assert len(root["thingNodes"]) == 3
    assert one == leaf["sources"][0]
    assert one["type"] == "timeseries(float)"
    assert node["id"] == one["thingNodeId"]
    assert [each["id"] for each in found["sources"]] == ["plant-0002/flow"]
    assert info["id"] == "plants"


def test_metadata_is_kept_for_each_thing_by_its_key():
    async def talk(client):
        body = {"key": "unit", "value": "K", "dataType": "string"}
        path = "/sinks/plant-0001/anomalies/metadata"
        assert (await client.post(f"{path}/unit", json=body)).status == 200
        missing = (await client.get("/sources/plant-0001/anomalies/metadata/unit")).status
        return (
            body,
            await (await client.get(f"{path}/unit")).json(),
            await (await client.get(f"{path}/")).json(),
            missing,
        )

    body, one, every, missing = use(talk)
    assert one == body
    assert every == [body]
    assert missing == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/timeseries?id=a&from=yesterday&to=today", None), ("GET", "/timeseries?from=2026-01-01&to=2026-01-02", None),
        ("GET", "/timeseries?id=a", None), ("POST", "/timeseries", b"[]"), ("POST", "/dataframe?id=a", b"{}"),
        ("POST", "/dataframe?id=a", b"nope"),
    ],
)  # fmt: skip
def test_malformed_requests_get_a_422(method, path, body):
    async def talk(client):
        return (await client.request(method, path, data=body)).status

    assert use(talk) == 422


def test_a_capacity_is_never_exceeded_and_those_without_room_wait():
    seen = []

    async def all_of_it():
        gate = Gate(Limits(2, fixed(0.01)), 7)

        async def one():
            async with gate.request("/timeseries"):
                seen.append((gate.serving, gate.waiting))

        await asyncio.gather(*(one() for _ in range(10)))
        return gate

    gate = asyncio.run(all_of_it())
    assert len(seen) == 10
    assert max(serving for serving, _ in seen) == 2
    assert max(waiting for _, waiting in seen) == 8
    assert (gate.serving, gate.waiting) == (0, 0)
    assert gate.requests["/timeseries", "ok"] == 10


def test_injected_errors_have_their_share_and_are_counted():
    async def talk(client):
        for _ in range(200):
            await client.get("/dataframe", params={"id": "plants"})
        return await (await client.get("/metrics")).text()

    text = use(talk, errors=0.3)
    errors = sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if 'result="injected error"' in line)
    assert 35 <= errors <= 85
    assert "pipeswarm_adapter_request_seconds_count 200" in text.replace("{}", "")


def test_the_command_serves_and_prints_the_backends_configuration(tmp_path):
    command = [
        sys.executable,
        "-P",
        "-m",
        "harness.cli",
        "simulate",
        "adapter",
        "--latency",
        "1ms..2ms",
        "--capacity",
        "4",
    ]
    process = subprocess.Popen(
        [*command, "--die-with-parent"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = json.loads(process.stdout.readline())["url"]

        async def ask():
            async with aiohttp.ClientSession() as session, session.get(f"{url}/info") as answer:
                return await answer.json()

        assert asyncio.run(ask())["name"] == "plants"
    finally:
        process.terminate()
        _, message = process.communicate(timeout=20)
    assert f'HETIDA_DESIGNER_ADAPTERS="plants|plants|{url}|{url}"' in message
    assert process.returncode == 0

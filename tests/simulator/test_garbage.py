"""Old garbage is collected only when idle; the usual work leaves none."""

import asyncio
import gc
import http.client
import json
import weakref
from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.simulator.hetida.execution import Job
from harness.simulator.profile.file import load_profile
from harness.simulator.serve import ServeOptions, build
from harness.simulator.serving import Collector, ListenOptions, listening

EXECUTION = Path(__file__).parents[1] / "support/recorded_hetida/runtime_request.json"
HETIDA = """
pools: [{name: runtime, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
hetida: {runtime: {nodes: 1, cores: 4, replicas: 1, workers: 1}, executions: [{compute: 1ms}]}
"""


class Node:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collector() -> Iterator[Collector]:
    before = gc.get_threshold()
    yield Collector()
    gc.set_threshold(*before)
    gc.unfreeze()


def old_garbage() -> "weakref.ref[Node]":
    node = Node()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(node)


def test_old_garbage_is_collected_when_the_simulation_is_idle(collector: Collector) -> None:
    dead = old_garbage()
    collector.collect_if_idle(5_000, quiet_s=inf)  # they have just come
    assert dead() is not None
    assert collector.collect_if_idle(5_000, quiet_s=inf)
    assert dead() is None


@pytest.mark.parametrize(
    ("requests", "quiet_s"), [((10, 10), inf), ((5_000, 5_001), inf), ((5_000, 5_000), 0.0)],
    ids=["little can have come together", "requests come in", "something is due"],
)  # fmt: skip
def test_it_is_not_collected_otherwise(collector: Collector, requests: tuple[int, int], quiet_s: float) -> None:
    dead = old_garbage()
    for count in requests:
        assert not collector.collect_if_idle(count, quiet_s)
    assert dead() is not None


def test_it_is_collected_once(collector: Collector) -> None:
    assert [collector.collect_if_idle(5_000, inf) for _ in range(4)] == [False, True, False, False]


@pytest.mark.usefixtures("collector")
def test_python_itself_collects_only_the_young() -> None:
    dead = old_garbage()
    many = [[number] for number in range(300_000)]
    assert dead() is not None, len(many)


def test_connections_and_executions_are_freed_without_a_look(tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(HETIDA)
    assert asyncio.run(left_after_requests(profile)) == []


async def left_after_requests(profile: Path) -> list[str]:
    """The names of what is still there some time after clients were served."""
    app, clock = build(ServeOptions(load_profile(str(profile))))
    driving = asyncio.create_task(clock.run())
    left: list[str] = []
    try:
        async with listening(app, ListenOptions(), "it") as (url, _):
            gc.collect()
            gc.disable()
            others = {id(each) for each in of_requests()}  # of whatever else this process does
            await asyncio.to_thread(execute, url, 5)
            for _ in range(100):  # the server hears a little later that they hung up
                left = sorted(type(each).__name__ for each in of_requests() if id(each) not in others)
                if not left:
                    break
                await asyncio.sleep(0.02)
    finally:
        gc.enable()
        driving.cancel()
    return left


def of_requests() -> list[object]:
    """What lives as long as a request or its connection."""
    return [each for each in gc.get_objects() if isinstance(each, Job) or type(each).__name__.endswith("Transport")]


def execute(url: str, times: int) -> None:
    body = json.dumps(json.loads(EXECUTION.read_text()))
    for _ in range(times):
        with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)) as connection:
            connection.request("POST", "/engine/runtime", body)
            assert json.loads(connection.getresponse().read())["result"] == "ok"

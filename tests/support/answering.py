"""A service that answers each submission with its result, and a locustfile for it: the smallest possible platform."""

import asyncio
import itertools
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

PLATFORM = """
import json

from harness.model.http import HttpRequest
from harness.targets.completed_run import CompletedRun
from harness.targets.target import Prepared, SetUp

OPTIONS, DEFAULTS, HOST_VARIABLE = (), {}, "ANSWERING_ENDPOINT"


class Answering:
    def set_up(self, exchange):
        return SetUp({}, ())

    def submit(self, scenario, exchange):
        body = json.dumps({"name": scenario.run_name}).encode()
        return CompletedRun(json.loads(exchange(HttpRequest("POST", "/", body)).body)["id"], "SUCCEEDED")


prepare, from_plan = (lambda texts, simulated: Prepared({}, "answering", ())), (lambda plan, package=None: Answering())
"""
LOCUSTFILE = """
from harness.drive.user import PipelineUser


class AnsweringRuns(PipelineUser):
    platform = "answering"
"""


@dataclass
class Service:
    """The ids of the answered runs, by connection, in order; and how many were asked for."""

    url: str = ""
    asked: int = 0
    answered: dict[int, list[str]] = field(default_factory=dict)

    def runs(self):
        return [run for runs in self.answered.values() for run in runs]

    def acknowledged(self):
        """Runs whose response was certainly read: their connection carried another request afterwards."""
        return {run for runs in self.answered.values() for run in runs[:-1]}


@contextmanager
def answering(delay_s=0.02):
    """Run the service in a thread."""
    service, ids = Service(), itertools.count()

    async def answer(reader, writer):
        runs = service.answered.setdefault(next(ids), [])
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            service.asked += 1
            await asyncio.sleep(delay_s)
            run = f"run-{next(ids)}"
            body = json.dumps({"id": run}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            runs.append(run)
        writer.close()

    with serving(service, answer):
        yield service


@contextmanager
def serving(service, converse):
    """Let `converse` lead each connection, in a thread; the service gets its address."""
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def serve():
        server = await asyncio.start_server(converse, "127.0.0.1", 0)
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()

    thread = threading.Thread(target=lambda: (loop.create_task(serve()), loop.run_forever()), daemon=True)
    thread.start()
    assert ready.wait(10)

    def stop():
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_later(0.05, loop.stop)

    yield
    loop.call_soon_threadsafe(stop)
    thread.join(10)


def locustfile(place, scenarios=50):
    """Write platform, locustfile and scenarios into `place`; returns the options for them."""
    (place / "answering.py").write_text(PLATFORM)
    (place / "answering_load.py").write_text(LOCUSTFILE)
    (place / "few.csv").write_text("id,scenario_name\n" + "".join(f"{k},s\n" for k in range(scenarios)))
    return ["-f", str(place / "answering_load.py"), "--scenarios", "few.csv"]

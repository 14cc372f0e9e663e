"""The smallest server that keeps connections open: one answer for every question, late by as much as one likes."""

import asyncio
import json
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Self

DELAY_S = 0.05
# All that a KFP client may ask for in one object: the ids of a set-up, and a run of its own for every submission.
_ANSWER = json.dumps(
    {
        "experiment_id": "e",
        "experiments": [{"experiment_id": "e"}],
        "pipelines": [{"pipeline_id": "p"}],
        "pipeline_versions": [{"pipeline_version_id": "v"}],
        "pipeline_spec": {"root": {"inputDefinitions": {}}},
        "run_id": "%032d",
    }
).encode()
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_ANSWER % 0)
# What both sides know: a silence, on the machine's monotonic clock, and the requests so far.
_SILENT_AT, _SILENT_S, _REQUESTS = range(3)


class _Connection(asyncio.Protocol):
    def __init__(self, shared: SynchronizedArray, delay_s: float) -> None:
        self._shared, self._delay_s, self._waiting = shared, delay_s, b""

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._waiting) < end + 4 + length:
                return
            self._waiting = self._waiting[end + 4 + length :]
            self._answer()

    def _answer(self):
        shared, now = self._shared, time.monotonic()
        shared[_REQUESTS] += 1
        silent_s = shared[_SILENT_AT] + shared[_SILENT_S] - now
        wait_s = silent_s if 0 < silent_s <= shared[_SILENT_S] else self._delay_s
        asyncio.get_running_loop().call_later(wait_s, self._transport.write, _HEAD + _ANSWER % int(shared[_REQUESTS]))


def _serve(ready, shared, delay_s):
    async def run():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(shared, delay_s), "127.0.0.1", 0, backlog=4096)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own, which answers after `DELAY_S`; a context that ends it."""

    port: int
    process: multiprocessing.Process
    shared: SynchronizedArray

    @classmethod
    def start(cls) -> Self:
        context = multiprocessing.get_context("spawn")
        ready, shared = context.Queue(), context.Array("d", 3, lock=False)
        process = context.Process(target=_serve, args=(ready, shared, DELAY_S), daemon=True)
        process.start()
        return cls(ready.get(timeout=30), process, shared)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> int:
        """How many have come."""
        return int(self.shared[_REQUESTS])

    def be_silent(self, at: float, seconds: float) -> None:
        """Answer nothing from `at` (monotonic) for `seconds`; what came in between is answered then."""
        self.shared[_SILENT_S] = seconds
        self.shared[_SILENT_AT] = at

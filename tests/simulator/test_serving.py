"""What all servers of the simulator do alike."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from harness.simulator.serving import ListenOptions, listening


def test_a_client_that_hangs_up_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(hung_up()) == "ConnectionResetError"
    assert not caplog.records


async def hung_up() -> str:
    """A client asks and goes away before the answer begins; the name of what the handler met."""
    met: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(request: web.Request) -> web.StreamResponse:
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.01)
        try:
            await (response := web.StreamResponse()).prepare(request)
        except ConnectionResetError:
            met.set_result("ConnectionResetError")
            raise
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    async with listening(app, ListenOptions(), "it") as (url, _):
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: it\r\n\r\n")
        return await asyncio.wait_for(met, 30)

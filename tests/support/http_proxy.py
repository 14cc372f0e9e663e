"""An HTTP proxy that is a process of its own; whatever it is asked for, it connects with one port of this machine.

``python -m tests.support.http_proxy PORT [ACCOUNT]`` prints its own port, and then the first line of each request.
"""

import asyncio
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from urllib.parse import urlsplit


@dataclass
class Running:
    """A proxy: its address, and what it was asked for."""

    url: str
    asked: list[str]


@contextmanager
def http_proxy(port: int, account: str = "") -> Iterator[Running]:
    """Run one before `port`; with an `account`, as ``user:password``, it demands that."""
    command = [sys.executable, "-m", "tests.support.http_proxy", str(port), account]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = Running(f"http://127.0.0.1:{process.stdout.readline().strip()}", [])
    reader = Thread(target=lambda: found.asked.extend(map(str.strip, process.stdout or ())), daemon=True)
    # The list grows line by line, as `extend` takes from an iterator.
    reader.start()
    try:
        yield found
    finally:
        process.terminate()
        process.wait()
        reader.join(10)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(2**16):
            writer.write(piece)
    writer.close()


async def _serve(port: int, account: str) -> None:
    wanted = f"proxy-authorization: basic {b64encode(account.encode()).decode()}".lower().encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            first, _, rest = head.partition(b"\r\n")
            print(first.decode(), flush=True)
            method, place, _ = first.decode().split()
            if account and wanted not in head.lower():
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                writer.close()
                return
            from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                parts = urlsplit(place)
                path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
                to_server.write(
                    f"{method} {path} HTTP/1.1\r\n".encode()
                    + rest.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
                )
            await asyncio.gather(_pass(reader, to_server), _pass(from_server, writer))

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2]))

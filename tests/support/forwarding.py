"""A server before a platform's: it passes requests on, and keeps a log of its own of the runs that were acknowledged."""

import asyncio
import itertools
import json
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.answering import Service, serving


async def message(reader):
    """One HTTP message: its first line, and all of its bytes."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    return head.split(b"\r\n", 1)[0], head, await reader.readexactly(length)


@contextmanager
def forwarding(url):
    """Run it before the KFP API at `url`; a connection of the platform's that breaks is broken for the client, too."""
    service, ids = Service(), itertools.count()
    platform = urlsplit(url)

    async def forward(reader, writer):
        runs = service.answered.setdefault(next(ids), [])
        with suppress(asyncio.IncompleteReadError, OSError):
            answers, requests = await asyncio.open_connection(platform.hostname, platform.port)
            try:
                while True:
                    asked, *request = await message(reader)
                    requests.writelines(request)
                    answered, *answer = await message(answers)
                    writer.writelines(answer)
                    if asked.startswith(b"POST /apis/v2beta1/runs ") and answered.split()[1] == b"200":
                        runs.append(json.loads(answer[-1])["run_id"])
            finally:
                requests.close()
        writer.close()

    with serving(service, forward):
        yield service

"""Reads answers of the network within bounds: a server may send a byte a second, or never stop."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import urllib3

from harness.model.http import LONG_ANSWER, too_long

_PATIENCE = 4.0  # of the time to the next byte: for the whole answer
_PART = 2**16
_ANSWER_S = 60.0  # where a request has no timeout
_MOST_OF_LINE = 2**24  # bytes; etcd stores 1.5 MiB of an object


def read_whole(answer: urllib3.BaseHTTPResponse, answer_s: float, most_bytes: int = LONG_ANSWER) -> bytes:
    """The unpacked body of an answer that was requested with ``preload_content=False``; its connection is free again.

    Raises:
        urllib3.exceptions.HTTPError: the connection was lost, the answer is longer than `most_bytes`, or not whole
            after four times `answer_s`, which is the limit between two of its bytes.
    """
    until_s, parts, size = time.monotonic() + _PATIENCE * answer_s, [], 0
    try:
        while part := answer.read1(_PART):
            parts.append(part)
            size += len(part)
            _check(size, most_bytes, until_s)
    except BaseException:
        answer.close()  # what else it sends is not the next answer
        raise
    answer.release_conn()
    return b"".join(parts)


def _check(size: int, most_bytes: int, until_s: float) -> None:
    if size > most_bytes:
        raise urllib3.exceptions.HTTPError(too_long(most_bytes))
    if time.monotonic() > until_s:
        raise urllib3.exceptions.HTTPError("the answer takes too long")


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream, as they arrive, without their ends.

    Raises:
        urllib3.exceptions.HTTPError: a line is longer than 16 MiB.
    """
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        first, *further = chunk.split(b"\n")
        for part in further:
            yield b"".join((*held, first))
            held, size, first = [], 0, part
        held.append(first)
        size += len(first)
        if size > _MOST_OF_LINE:
            raise urllib3.exceptions.HTTPError(f"a line of {too_long(_MOST_OF_LINE)}")
    if size:
        yield b"".join(held)


def read_within_bounds(pool: Any) -> None:
    """Have the official Kubernetes client's pool read every answer as `read_whole` does, but for streams.

    A stream is a successful answer that was requested with ``preload_content=False``.
    """
    send = pool.request

    def request(*given: Any, preload_content: bool = True, **named: Any) -> urllib3.BaseHTTPResponse:
        answer: urllib3.BaseHTTPResponse = send(*given, preload_content=False, **named)
        if answer.status // 100 == 2 and not preload_content:
            return answer
        timeout = getattr(named.get("timeout"), "read_timeout", None)
        body = read_whole(answer, float(timeout) if isinstance(timeout, int | float) else _ANSWER_S)
        return urllib3.HTTPResponse(body, answer.headers, answer.status, reason=answer.reason)

    pool.request = request

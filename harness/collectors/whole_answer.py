"""Reads an answer within bounds: a server may send a byte a second, or never stop."""

import time

import urllib3

_MOST_BYTES = 2**28  # unpacked; a page of 500 of the largest workflows is half of it
_PATIENCE = 4.0  # of the time to the next byte: for the whole answer
_PART = 2**16


def read_whole(answer: urllib3.BaseHTTPResponse, answer_s: float) -> bytes:
    """The unpacked body of an answer that was requested with ``preload_content=False``; its connection is free again.

    Raises:
        urllib3.exceptions.HTTPError: the connection was lost, the answer is longer than 256 MiB, or not whole after
            four times `answer_s`, which is the limit between two of its bytes.
    """
    until_s, parts, size = time.monotonic() + _PATIENCE * answer_s, [], 0
    try:
        while part := answer.read1(_PART):
            parts.append(part)
            size += len(part)
            _check(size, until_s)
    except BaseException:
        answer.close()  # what else it sends is not the next answer
        raise
    answer.release_conn()
    return b"".join(parts)


def _check(size: int, until_s: float) -> None:
    if size > _MOST_BYTES:
        raise urllib3.exceptions.HTTPError(f"its answer is longer than {_MOST_BYTES // 2**20} MiB")
    if time.monotonic() > until_s:
        raise urllib3.exceptions.HTTPError("its answer takes too long")

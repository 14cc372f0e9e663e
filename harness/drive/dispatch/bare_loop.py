"""What a bare loop sends on this machine: how fast arrivals due at the same instant can leave."""

import time

import gevent
from gevent import socket
from geventhttpclient.response import HTTPSocketResponse

_AT_ONCE, _ROUNDS = 16, 16  # few connections, as descriptors may be scarce
_BESIDES = 2.0  # a submission takes this many times as long: TLS, its JSON, the ledger
_BODY = b"x" * 300  # about a submission's
_REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
_CHUNK = 2**16


def sends_per_s() -> float:
    """Submissions per second, from 256 exchanges over local sockets, a greenlet each: some 50 ms of this process."""
    pairs = [socket.socketpair() for _ in range(_AT_ONCE)]
    parts = [(part, end) for pair in pairs for part, end in zip((_ask, _answer), pair, strict=True)]
    began_s = time.perf_counter()
    try:
        for _ in range(_ROUNDS):
            gevent.joinall([gevent.spawn(part, end) for part, end in parts])
        took_s = time.perf_counter() - began_s
    finally:
        for _, end in parts:
            end.close()
    return _AT_ONCE * _ROUNDS / took_s / _BESIDES


def _ask(end: socket.socket) -> None:
    end.sendall(_REQUEST)
    HTTPSocketResponse(end, _CHUNK, method="POST").read()


def _answer(end: socket.socket) -> None:
    end.recv(_CHUNK)
    end.sendall(_RESPONSE)

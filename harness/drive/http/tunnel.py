"""A tunnel through an HTTP proxy to a server that speaks TLS (``CONNECT``: RFC 9110, section 9.3.6)."""

import re
from collections.abc import Mapping

import gevent
from gevent import socket

_MOST_BYTES = 2**16  # of the proxy's answer
_CHUNK = 4096
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})([^\r\n]*)")
_END = b"\r\n\r\n"


def open_tunnel(
    connection: socket.socket, address: tuple[str, int], headers: Mapping[str, str], timeout_s: float
) -> None:
    """Have the proxy at the other end of `connection` connect it with `address`; `headers` are for the proxy.

    Raises:
        OSError: it refuses, hangs up, or does not answer in time.
    """
    host, port = address
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    fields = "".join(f"{name}: {value}\r\n" for name, value in {"Host": place, **headers}.items())
    with gevent.Timeout(timeout_s, TimeoutError("the proxy does not answer: timed out")):
        connection.sendall(f"CONNECT {place} HTTP/1.1\r\n{fields}\r\n".encode("latin-1"))
        answer = b""
        while _END not in answer:
            piece = connection.recv(_CHUNK)
            answer += piece
            if not piece or len(answer) > _MOST_BYTES:
                raise ConnectionError("the proxy's answer is not HTTP")
    status = _STATUS.match(answer)
    if not status:
        raise ConnectionError("the proxy's answer is not HTTP")
    if not status[1].startswith(b"2"):
        reason = status[2].decode(errors="replace").strip()
        raise ConnectionRefusedError(f"the proxy answered {status[1].decode()} {reason}".rstrip())
    if not answer.endswith(_END):  # the server speaks only after the client
        raise ConnectionError("the proxy sent data of its own")

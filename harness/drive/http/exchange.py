"""One request and its response on an open connection, also where a server answers early, twice or compressed."""

import select
import zlib

from gevent import monkey, socket, ssl
from geventhttpclient.response import HTTPParseError, HTTPSocketResponse

from harness.model.http import HttpAnswer, too_long

_CHUNK = 16 * 1024  # bytes read at once: listings and results with data are long
PIECE = 64 * 1024  # bytes sent before looking for an early answer
_FIRST_FINAL_STATUS = 200  # those below announce another response
# gevent's poll yields to other greenlets; this one doesn't wait, so it needn't.
_poll = monkey.get_original("select", "poll")
_HUNG_UP = getattr(select, "POLLRDHUP", 0)


def exchange(connection: socket.socket, message: bytes, method: str, most_bytes: int) -> tuple[HttpAnswer, bool]:
    """Send a request and read its response; also returns whether `connection` can be used again.

    Raises:
        OSError: the connection broke, or more than `most_bytes` arrived.
        HTTPParseError: the response is not HTTP, or has an encoding that was not asked for.
    """
    complete = _send(connection, message)
    response = _Response(connection, most_bytes, method)
    body = response.read()
    headers = {name.lower(): value for name, value in response.headers}
    answer = HttpAnswer(response.final_status, _decoded(body, headers.get("content-encoding", ""), most_bytes), headers)
    return answer, complete and not response.surplus and not response.should_close()


def is_quiet(connection: socket.socket) -> bool:
    """Whether an idle connection is open and nothing has arrived on it that a next response could be mistaken for."""
    arrived = _arrived(connection)
    if not arrived:
        return True
    if arrived & _HUNG_UP or not isinstance(connection, ssl.SSLSocket):
        return False
    connection.settimeout(0)  # a TLS server also sends session tickets, which are no data
    try:
        connection.recv(1)
    except ssl.SSLWantReadError:
        connection.settimeout(None)
        return True
    except OSError:
        pass
    return False


class _Response(HTTPSocketResponse):  # type: ignore[misc]  # untyped
    """The final response to a request. Bytes after it belong to no request: `surplus` says that there were some."""

    def __init__(self, connection: socket.socket, most_bytes: int, method: str) -> None:
        self.final_status = 0
        self.surplus = False
        self._most_bytes = most_bytes
        self._fed = 0
        super().__init__(connection, _CHUNK, method=method)

    def feed(self, data: bytes) -> None:
        self._fed += len(data)
        if self._fed > self._most_bytes:
            raise OSError(too_long(self._most_bytes))
        try:
            super().feed(data)
        except HTTPParseError:
            if not self.final_status:
                raise
            self.surplus = True

    def _on_message_begin(self) -> None:
        if self.final_status:
            raise HTTPParseError("a second response to one request")
        super()._on_message_begin()

    def _on_message_complete(self) -> None:
        self.message_complete = True
        status = self.get_code()
        if status >= _FIRST_FINAL_STATUS:
            self.final_status = status

    def release(self) -> None:
        """The caller owns the connection; the library would ask several times whether to close it."""
        self._sock = None


def _send(connection: socket.socket, message: bytes) -> bool:
    """Send it; False if the server answers or hangs up before it has read all of it, as with 413."""
    try:
        for start in range(0, len(message), PIECE):
            if start and _arrived(connection):
                return False
            connection.sendall(message[start : start + PIECE])
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _arrived(connection: socket.socket) -> int:
    poll = _poll()
    poll.register(connection, select.POLLIN | _HUNG_UP)
    return next((events for _, events in poll.poll(0)), 0)


def _decoded(body: bytes, encoding: str, most_bytes: int) -> bytes:
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise HTTPParseError(f"encoded as {encoding!r}, which was not asked for")
    unpacked = zlib.decompressobj(wbits=31)
    try:
        plain = unpacked.decompress(body, most_bytes)
    except zlib.error as error:
        raise HTTPParseError(f"damaged gzip: {error}") from error
    if not unpacked.eof:
        raise HTTPParseError(f"gzip that is cut off, or longer than {most_bytes >> 20} MiB")
    return plain

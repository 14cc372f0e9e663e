"""A server on a loopback socket that answers byte by byte what a test says, in the test's event loop."""

from contextlib import ExitStack

import pytest
from gevent.server import StreamServer

OK = b"HTTP/1.1 200 OK\r\nX-Node: n1\r\nContent-Length: 2\r\n\r\n{}"
TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"


class Server:
    """Answers each request with the next of `answers`, the last one forever; `None` closes without a response."""

    def __init__(self, *answers, at="127.0.0.1", **tls):
        self.answers = list(answers) or [OK]
        self.connections, self.requests = [], []
        self._server = StreamServer((at, 0), self.serve, **tls)
        self._server.start()
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{'[::1]' if ':' in at else 'localhost'}:{self._server.server_port}"

    def serve(self, connection, _):
        self.connections.append(connection)
        while request := self.read(connection):
            self.requests.append(request)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if answer is None:
                break
            connection.sendall(answer)
            if b"close" in answer or (b"HTTP/1.0" in answer and b"keep-alive" not in answer):
                break
        connection.close()

    @staticmethod
    def read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            try:
                more = connection.recv(65536)
            except OSError:  # a test closes connections meanwhile
                more = b""
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def stop(self):
        self._server.stop(timeout=0)
        for connection in self.connections:
            connection.close()


@pytest.fixture
def serve():
    with ExitStack() as stack:

        def start(*answers, **where):
            server = Server(*answers, **where)
            stack.callback(server.stop)
            return server

        yield start

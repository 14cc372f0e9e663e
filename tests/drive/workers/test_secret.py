"""Sockets as Locust opens them: who shares the secret connects, nobody else does, and both sides say so.

In interpreters of their own: Locust patches whichever it is imported into.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.e2e import free_port, locust  # noqa: F401  # a fixture

SECRET, OTHER = "correct horse battery", "correct horse batterx"
PAIR = """
from contextlib import suppress

import gevent
from harness.drive.workers import secret as cluster_secret
from locust.exception import RPCSendError
from locust.rpc import Message, zmqrpc

cluster_secret.share({master!r})
server = zmqrpc.Server("127.0.0.1", 0)
cluster_secret.share({worker!r})
client = zmqrpc.Client("127.0.0.1", server.port, "w")
with suppress(RPCSendError):  # refused before it sends
    client.send(Message("hello", None, "w"))
with gevent.Timeout({wait_s}, exception=False):
    print(server.recv_from_client()[1].type)
    server.send_to_client(Message("welcome", None, "w"))
    print(client.recv().type)
"""


def exchange(master, worker, wait_s):
    code = PAIR.format(master=master, worker=worker, wait_s=wait_s)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("secret", ["", SECRET])
def test_those_with_the_same_secret_connect(secret):
    assert exchange(secret, secret, 30) == (["hello", "welcome"], "")


@pytest.mark.parametrize(("master", "worker"), [(SECRET, OTHER), (SECRET, ""), ("", SECRET)])
def test_others_get_no_message_through_and_are_told(master, worker):
    received, said = exchange(master, worker, 1.0)
    assert received == []
    assert "error: the master refuses this worker: PIPESWARM_CLUSTER_SECRET is not the same here and there" in said


def listens_on(port):
    """The addresses of the sockets that listen at `port`, as the kernel lists them."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    sockets = [line.split() for table in tables for line in table]
    return {fields[1].split(":")[0] for fields in sockets if fields[3] == "0A" and fields[1].endswith(f":{port:04X}")}


LOOPBACK, ALL = {"0100007F"}, {"0" * 8, "0" * 32}


@pytest.mark.parametrize(
    ("secret", "options", "said", "addresses"),
    [
        ("", (), "The master accepts workers of this machine only", LOOPBACK),
        ("", ("--master-bind-host", "0.0.0.0"), "warning: whoever reaches the master's port can become a worker", ALL),
        (SECRET, (), "Waiting for workers", ALL),
    ],
)
def test_without_a_secret_a_master_listens_on_loopback_unless_told_otherwise(locust, secret, options, said, addresses):  # noqa: F811
    port = free_port()
    process = locust.start(
        "--headless", "--master", "--expect-workers", "1", "--master-bind-port", str(port), *options,
        PIPESWARM_CLUSTER_SECRET=secret,
    )  # fmt: skip
    lines = []
    assert any(said in line for line in process.stderr if lines.append(line) is None), lines
    assert listens_on(port)
    assert listens_on(port) <= addresses
    assert bool(secret) is not any("master's port" in line or "machine only" in line for line in lines)


def test_a_short_secret_is_refused(locust):  # noqa: F811
    finished = locust.finish(locust.start("--headless", "--master", PIPESWARM_CLUSTER_SECRET="short"))
    assert finished.code == 2
    assert "error: PIPESWARM_CLUSTER_SECRET has 5 characters; a secret needs 16 or more" in finished.err

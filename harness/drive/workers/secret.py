"""The secret that a master and its workers share: with it their connections are encrypted and only its holders connect.

ZeroMQ's CURVE (https://rfc.zeromq.org/spec/26/) does both. The master's key pair is derived from the secret, and a
client must know a server's public key, which is never sent, before it can say anything: a worker without the secret
gets no answer, a master without it no worker. Locust opens the sockets, so its constructor is extended.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from harness.drive.conclusion import refuse
from harness.drive.console import say
from harness.model.errors import ConfigError
from harness.plan.environment import cluster_secret

from locust.rpc import zmqrpc
from locust.runners import MasterRunner

VARIABLE = "PIPESWARM_CLUSTER_SECRET"
_LOOPBACK = "127.0.0.1"
_OWN = frozenset({_LOOPBACK, "localhost", "::1"})
_CLOSED = (
    f"The master accepts workers of this machine only; for others set {VARIABLE} to the same secret here and there, or "
    "give --master-bind-host."
)
_EXPOSED = (
    "whoever reaches the master's port can become a worker, read the scenarios and forge results: "
    f"set {VARIABLE} to the same secret for master and workers"
)
_MIN_CHARACTERS = 16
# Slow on purpose: whoever records a handshake must not be able to try many secrets.
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}
_FAILED = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL

_open_socket = zmqrpc.BaseSocket.__init__


def configure(parser: Any) -> None:
    """Share the secret of the environment; without one a master listens on loopback unless another address is given."""
    secret = cluster_secret()
    try:
        share(secret)
    except ConfigError as error:
        refuse(error)
    if not secret:
        parser.set_defaults(master_bind_host=_LOOPBACK)


def say_exposure(runner: Any, options: Any) -> None:
    """Say who can become a worker of this master, if it has no secret."""
    if isinstance(runner, MasterRunner) and not cluster_secret():
        bound_to = options.master_bind_host
        if bound_to not in _OWN:
            say(f"warning: {_EXPOSED}\n")
        elif not options.processes:
            say(f"{_CLOSED}\n")


def share(secret: str) -> None:
    """From now on sockets of this process connect only to those of processes with the same secret ("": with none).

    Raises:
        ConfigError: the secret is too short.
    """
    if secret and len(secret) < _MIN_CHARACTERS:
        raise ConfigError(
            f"{VARIABLE} has {len(secret)} characters; a secret needs {_MIN_CHARACTERS} or more",
            "make one: openssl rand -hex 16",
        )
    keys = _key_pair(secret) if secret else None

    def open_socket(socket: Any, kind: int, ipv4_only: bool) -> None:
        _open_socket(socket, kind, ipv4_only)
        if keys is not None:
            _encrypt(socket.socket, keys, server=kind == zmq.ROUTER)
        refused = _refused_worker if kind == zmq.ROUTER else _refused_by_master
        gevent.spawn(_watch, socket.socket.get_monitor_socket(_FAILED | zmq.EVENT_MONITOR_STOPPED), refused)

    zmqrpc.BaseSocket.__init__ = open_socket


def _key_pair(secret: str) -> tuple[bytes, bytes]:
    """Public and secret key, Z85-encoded."""
    key = z85.encode(hashlib.scrypt(secret.encode(), salt=b"pipeswarm cluster", **_SCRYPT))
    return zmq.curve_public(key), key


def _encrypt(socket: Any, keys: tuple[bytes, bytes], *, server: bool) -> None:
    if server:
        socket.curve_publickey, socket.curve_secretkey = keys
        socket.curve_server = True
    else:
        socket.curve_serverkey = keys[0]
        socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()


def _watch(events: Any, refused: Callable[[], None]) -> None:
    """Say once per socket that a handshake has failed."""
    said = False
    with suppress(zmq.ZMQError):  # the socket is closed
        while (event := recv_monitor_message(events)["event"]) != zmq.EVENT_MONITOR_STOPPED:
            if event & _FAILED and not said:
                refused()
                said = True


def _refused_worker() -> None:
    say(f"warning: a worker was refused: its {VARIABLE} is not the master's\n")


def _refused_by_master() -> None:
    say(f"error: the master refuses this worker: {VARIABLE} is not the same here and there\n")

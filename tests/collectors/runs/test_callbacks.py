"""The receiver of callbacks, with real requests: each run's end is recorded once, however often it is posted."""

import json
import socket
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from harness.collectors.journal import Journal
from harness.collectors.runs.callbacks import open_collector
from harness.model.errors import ConfigError
from harness.model.live.observer import LiveObserver
from harness.model.phases import COMPUTING, SUCCEEDED
from harness.model.plan import Plan
from harness.model.records import Event, Span
from harness.store import RunFolder
from harness.targets.completed_run import CompletedRun
from tests.support.observations import observation as observed_by

RECEIVED_AT = 1_790_000_000 * 10**9


class Platform:
    """A target whose callbacks are a run's id and its compute time."""

    def read_callback(self, body):
        try:
            run, seconds = json.loads(body)
        except ValueError:
            return None
        return CompletedRun(run, SUCCEEDED, task="t", phases=((COMPUTING, seconds),))


def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def observation(tmp_path, listen, target=None):
    folder = RunFolder.create(tmp_path, "run")
    plan = Plan("hetida", "http://x", {}, 1, 0, False, {"callback_listen": listen} if listen else {})
    journal = Journal(folder.recorder(), now=lambda: RECEIVED_AT)
    return observed_by(folder, journal, plan=plan, target=target or Platform())


@contextmanager
def receiving(seen, listen):
    """A running collector; yields a function that posts a body and returns the status."""
    collector, stop = open_collector(seen), threading.Event()
    thread = threading.Thread(target=collector.collect, args=(stop,))
    thread.start()

    def post(body):
        try:
            with urllib.request.urlopen(f"http://{listen}/", data=body, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    try:
        yield collector, post
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()


def test_a_result_is_recorded_as_the_runs_end_with_its_phases_before_it(tmp_path):
    listen = free()
    seen = observation(tmp_path, listen)
    with receiving(seen, listen) as (collector, post):
        assert collector.live() == LiveObserver(callbacks=0), "the load waits until it listens"
        assert post(b'["r1", 2.5]') == 204
        assert collector.live() == LiveObserver(callbacks=1)
    (event,) = seen.folder.records(Event)
    assert (event.kind, event.object, event.reason, event.at) == ("Run", "r1", SUCCEEDED, RECEIVED_AT)
    computing = next(span for span in seen.folder.records(Span) if span.phase == COMPUTING)
    assert (computing.ended_at, computing.ended_at - computing.started_at) == (RECEIVED_AT, 2_500_000_000)


def test_a_repeated_result_counts_once_and_an_invalid_one_is_refused(tmp_path):
    listen = free()
    seen = observation(tmp_path, listen)
    with receiving(seen, listen) as (_, post):
        assert [post(b'["r1", 1]'), post(b'["r1", 1]'), post(b"nonsense"), post(b"")] == [204, 204, 400, 400]
    assert len(seen.folder.records(Event)) == 1


def test_many_results_at_once_are_all_recorded(tmp_path):
    listen = free()
    seen = observation(tmp_path, listen)
    with receiving(seen, listen) as (_, post):
        senders = [threading.Thread(target=post, args=(json.dumps([f"r{k}", 1]).encode(),)) for k in range(100)]
        for each in senders:
            each.start()
        for each in senders:
            each.join()
    assert {event.object for event in seen.folder.records(Event)} == {f"r{k}" for k in range(100)}


def test_without_callbacks_there_is_nothing_to_do(tmp_path):
    assert open_collector(observation(tmp_path, "")) is None
    assert open_collector(observation(tmp_path, free(), target=object())) is None


def test_an_occupied_port_is_a_configuration_error(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="--callback-url"):
            open_collector(observation(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}"))

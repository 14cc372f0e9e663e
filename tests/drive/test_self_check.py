"""The load generator finds itself out: a real worker whose target's code costs too much, up to the finding."""

import gc
import itertools
import re
import time
from array import array

import gevent
import numpy as np
import pytest
from gevent.pywsgi import WSGIServer

from harness.analysis import lateness
from harness.analysis.timeline import Timeline, floats
from harness.detectors.controller import api_errors
from harness.detectors.doubts import generator_lag, submissions_limited
from harness.detectors.doubts import slow_accepts as slow_detector
from harness.drive.dispatch import bare_loop
from harness.drive.http import client as http_client
from harness.drive.workers import load_generator
from harness.drive.workers.load_generator import Worker
from harness.model import Plan, Sample, Scenario, Submission
from harness.model.phases import GENERATOR_CPU, GENERATOR_RATE
from harness.model.schedules import Burst, Constant
from harness.plan.assignment import Assignment
from harness.store import RunFolder
from harness.store.tables import load, seal
from harness.targets.credentials import Credentials
from tests.support.timelines import Story, at

COSTLY = """
import time

from harness.model.http import HttpRequest
from harness.targets.completed_run import CompletedRun
from harness.targets.target import RejectedError


class Costly:
    def submit(self, scenario, exchange):
        seq = int(scenario.id)
        until = time.process_time() + (BUSY_S if seq % EVERY == 0 else 0.0)
        while time.process_time() < until:
            pass
        answer = exchange(HttpRequest("POST", "/"))
        if answer.status != 200:
            raise RejectedError(answer.status, answer.body.decode())
        return CompletedRun(scenario.run_name, "SUCCEEDED")


def from_plan(plan, package=None):
    return Costly()
"""


@pytest.fixture
def service():
    def answer(_, start_response):
        gevent.sleep(0.02)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"{}"]

    server = WSGIServer(("127.0.0.1", 0), answer, log=None)
    server.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.stop()


@pytest.fixture
def slow_accepts():
    """A platform that answers at once, and whose accept queue of four is served every 30 ms."""
    listening = gevent.socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(4)

    def answer(connection):
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()

    def accept():
        while True:
            gevent.sleep(0.03)
            gevent.spawn(answer, listening.accept()[0])

    accepting = gevent.spawn(accept)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    accepting.kill()
    listening.close()


@pytest.fixture
def limited():
    """A gateway that lets every eighth request through."""
    seen = itertools.count()

    def answer(_, start_response):
        if next(seen) % 8:
            start_response("429 Too Many Requests", [("Content-Length", "4"), ("Retry-After", "1")])
            return [b"slow"]
        start_response("200 OK", [("Content-Length", "2")])
        return [b"{}"]

    server = WSGIServer(("127.0.0.1", 0), answer, log=None)
    server.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.stop()


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """The folder of a load on `host` in which every `every`-th submission keeps the worker busy for `busy_s`."""
    gc.collect()
    gc.freeze()  # what other tests left is no matter of the generator's

    def run(name, host, schedule, *, busy_s=0.0, every=1):
        monkeypatch.setattr(load_generator, "_CPU_EVERY_S", 0.4)
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / f"{name}.py").write_text(COSTLY.replace("BUSY_S", str(busy_s)).replace("EVERY", str(every)))
        offsets = array("d", schedule.offsets(7))
        plan = Plan(name, host, {}, len(offsets), 7, simulated=False, started_at=time.time_ns())
        folder = RunFolder.create(tmp_path, "run")
        folder.write_plan(plan)
        folder.write_schedule(offsets)
        scenarios = [Scenario(str(k), "s", {}, {}) for k in range(len(offsets))]
        with folder.recorder() as recorder:
            Worker(
                Assignment("run", plan, scenarios, offsets, time.time_ns() + 10**9), Credentials(), recorder.write
            ).run()
        seal(folder)
        return Timeline.from_frames(plan, load(folder)), folder

    return run


@pytest.fixture
def findings(recorded, service):
    """What the self-check says of a load of 40 submissions."""

    def run(name, **busy):
        timeline, folder = recorded(name, service, Constant(40.0, 1.0), **busy)
        return generator_lag.detect(timeline), folder

    return run


def test_a_worker_that_needs_more_than_70_percent_of_its_core_is_a_finding(findings, monkeypatch):
    monkeypatch.setattr(generator_lag, "_MIN_SAMPLES", 1)  # a sample is five seconds
    (finding,), folder = findings("hungry", busy_s=0.022, every=1)
    told = [each.value for each in finding.evidence if "of its core" in each.statement]
    first_at = min(each.due_at for each in folder.records(Submission))
    shares = [each.value for each in folder.records(Sample) if each.metric == GENERATOR_CPU and each.at >= first_at]
    often = np.quantile(shares, 0.9)
    # A core that others want too is not to be had to 70 %: then arrivals are late, which is the finding.
    assert told == ([pytest.approx(often)] if often > 0.7 else [])


def test_lag_above_a_tenth_of_a_typical_run_is_a_finding(findings):
    """One submission in twenty leaves 12 ms late, where a run takes 20 ms: within what a valid test may be late."""
    (finding,), _ = findings("hiccup", busy_s=0.012, every=20)
    fact = finding.evidence[0]
    # On a busy machine arrivals may be later than a valid test allows: that is said first.
    assert "of the median run duration" in fact.statement or "arrivals left" in fact.statement
    assert fact.value >= 0.012


def test_a_worker_that_is_on_time_is_no_finding(findings, monkeypatch):
    # Of this machine, which may be busy, nothing is asked.
    monkeypatch.setattr(lateness, "LIMITS", tuple((*each[:2], 10.0, each[3]) for each in lateness.LIMITS))
    monkeypatch.setattr(generator_lag, "_MIN_LAG_S", 10.0)
    assert findings("idle", busy_s=0.0, every=1)[0] == []


def test_slow_accepts_are_the_platforms_latency_and_no_lag(recorded, slow_accepts):
    timeline, _ = recorded("accepting", slow_accepts, Burst(16))
    lag, service = (
        floats(timeline.runs, end) - floats(timeline.runs, start)
        for start, end in (("due_s", "sent_s"), ("sent_s", "answered_s"))
    )
    assert lag.max() < 0.5 < service.max()
    (finding,) = slow_detector.detect(timeline)
    assert finding.title.startswith("The platform accepts connections slowly")


def test_garbage_is_collected_before_connections_are_opened(recorded, service, monkeypatch):
    """A collection over a large heap takes seconds: between the connections and the first arrival it would be lag."""
    order = []
    collect, warm = gc.collect, http_client.HttpClient.warm
    monkeypatch.setattr(gc, "collect", lambda *of: (order.append("collect"), collect(*of))[1])
    monkeypatch.setattr(http_client.HttpClient, "warm", lambda *of: (order.append("warm"), warm(*of))[1])
    recorded("collected", service, Burst(2))
    assert order[:2] == ["collect", "warm"]
    assert "collect" not in order[2:]


def test_a_limit_on_submissions_is_found_with_the_rate_it_lets_through(recorded, limited):
    timeline, _ = recorded("limited", limited, Constant(40.0, 3.0))
    (finding,) = submissions_limited.detect(timeline)
    told = re.fullmatch(r"The platform limits submissions to about ([\d.]+)/s \(429\)", finding.title)
    sent = floats(timeline.runs, "sent_s")
    # A busy machine sends late, and so all the faster: of what was sent an eighth is let through.
    assert told
    assert float(told[1]) == pytest.approx(len(sent) / (sent.max() - sent.min()) / 8, rel=0.25)
    assert "105 times it asked to wait: Retry-After: 1" in [each.statement for each in finding.evidence]
    assert api_errors.detect(timeline) == []


@pytest.mark.parametrize(("share", "found"), [(0.69, False), (0.71, True)])
def test_the_limit_is_70_percent(tmp_path, share, found):
    story = Story(intended=20)
    for seq in range(20):
        story.submit(seq, due=float(seq))
    story.records += [Sample(GENERATOR_CPU, at(float(second)), share, {"worker": "0"}) for second in range(0, 50, 5)]
    assert bool(generator_lag.detect(story.timeline(tmp_path))) is found


@pytest.mark.parametrize(("lag_s", "found"), [(0.009, False), (0.011, True)])
def test_the_limit_of_lag_is_a_tenth_of_the_measured_p50(tmp_path, lag_s, found):
    story = Story(intended=100)
    for seq in range(100):
        run = story.submit(seq, due=float(seq), lag=lag_s if seq < 5 else 0.001, service=0.02)
        story.run(run, seq + 0.02, seq + 0.1)
    assert bool(generator_lag.detect(story.timeline(tmp_path))) is found


def test_a_worker_records_how_fast_a_bare_loop_sends_beside_it(findings):
    _, folder = findings("measured", busy_s=0.0, every=1)
    (rate,) = (sample for sample in folder.records(Sample) if sample.metric == GENERATOR_RATE)
    assert (rate.labels, rate.value > 10.0) == ({"worker": "0"}, True)


def test_the_bare_loop_is_slower_on_a_slower_machine(monkeypatch):
    """Each answer costs 2 ms of CPU: no machine exchanges more than 500 a second."""

    def answer(end):
        until = time.process_time() + 0.002
        while time.process_time() < until:
            pass
        answered(end)

    answered = bare_loop._answer
    monkeypatch.setattr(bare_loop, "_answer", answer)
    monkeypatch.setattr(bare_loop, "_ROUNDS", 2)
    assert bare_loop.sends_per_s() <= 500.0

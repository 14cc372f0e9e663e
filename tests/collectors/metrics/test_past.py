"""Reading a store's past in chunks, against every answer that a store may give."""

import json
import threading
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.collectors.metrics import profiles_file
from harness.collectors.metrics.kube_state_series import ALL
from harness.collectors.metrics.past import AT_ONCE, WINDOW, Ask, PastReader
from harness.collectors.metrics.past_asks import USAGE, Scope, kube_state_asks, metric_asks, parse_matchers
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.model.errors import ConfigError
from harness.model.http import HttpAnswer, HttpRequest
from harness.store import RunFolder
from harness.store.answers import Answers

Answering = Callable[[dict[str, str]], HttpAnswer]


def vector(count: int = 1) -> HttpAnswer:
    result = [{"metric": {"k": str(k)}, "value": [1, "7"]} for k in range(count)]
    return HttpAnswer(
        200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
    )


def refusal(status: int, text: str = "no") -> HttpAnswer:
    return HttpAnswer(status, json.dumps({"status": "error", "error": text}).encode())


class Reading:
    """A reader over scripted answers; what it asked, and how long it waited."""

    def __init__(self, path: Path, answering: Answering, most: int = 10**6, *, stops: bool = False) -> None:
        self.asked: list[dict[str, str]] = []
        self.waited: list[float] = []
        self._answering = answering
        self._lock = threading.Lock()
        self._stops = stops
        self.answers = Answers(RunFolder(path))
        self.reader = PastReader(PrometheusApi(self._exchange).ask, self.answers, most, self._pause)

    def _exchange(self, request: HttpRequest) -> HttpAnswer:
        query = {name: value[0] for name, value in parse_qs(urlsplit(request.path).query).items()}
        with self._lock:
            self.asked.append(query)
        return self._answering(query)

    def _pause(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return self._stops

    @property
    def windows(self) -> list[str]:
        return sorted(each["query"] for each in self.asked)


def ask(length_s: int = 3600, name: str = "m") -> Ask:
    return Ask(name, f"last_over_time(x[{WINDOW}])", 0, length_s)


def test_a_chunk_that_is_too_large_is_halved_until_it_is_not(tmp_path: Path) -> None:
    def answering(query: dict[str, str]) -> HttpAnswer:
        length_s = int(query["query"].split("[")[1].split("s]")[0])
        return vector() if length_s <= 900 else refusal(422, "query processing would load too many samples into memory")

    reading = Reading(tmp_path, answering)
    assert reading.reader.read([ask()])
    assert sorted(int(each["time"]) for each in reading.asked if "[900s]" in each["query"]) == [900, 1800, 2700, 3600]
    assert len(list(reading.answers.read("m-"))) == 4
    assert reading.reader.fetched.halved == 3
    assert not reading.reader.fetched.lost


@pytest.mark.parametrize("step_s", [0, 15])
def test_halves_and_chunks_cover_the_whole_once(step_s: int) -> None:
    whole = Ask("m", "x", 0, 7200, step_s)
    for parts in (list(whole.chunks(1800)), whole.halves()):
        assert parts
        assert (parts[0].start_s, parts[-1].end_s) == (0, 7200)
        assert all(later.start_s == earlier.end_s + step_s for earlier, later in pairwise(parts))


def test_a_chunk_that_stays_too_large_is_lost_and_said(tmp_path: Path) -> None:
    reading = Reading(tmp_path, lambda _query: refusal(422, "too many"))
    assert reading.reader.read([ask()])
    (sentence, halved) = reading.reader.fetched.sentences()
    assert "64 chunks are lost" in sentence
    assert "too many" in sentence
    assert "halved" in halved


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_store_is_given_time(tmp_path: Path, status: int) -> None:
    left = [refusal(status), refusal(status), vector()]
    reading = Reading(tmp_path, lambda _query: left.pop(0))
    assert reading.reader.read([ask()])
    assert reading.waited == [1.0, 2.0]
    assert list(reading.reader.fetched.sentences()) == ["the store was given time 2 times: it had too much to do"]
    assert len(list(reading.answers.read("m-"))) == 1


def test_a_query_that_timed_out_is_halved(tmp_path: Path) -> None:
    left = [refusal(503, "query timed out in query execution"), vector(), vector()]
    reading = Reading(tmp_path, lambda _query: left.pop(0))
    assert reading.reader.read([ask()])
    assert not reading.waited
    assert reading.reader.fetched.halved == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HttpAnswer(200, b"<!DOCTYPE html><title>Sign in</title>"), "an HTML page, “Sign in”"),
        (HttpAnswer(302, b"", {"location": "https://login.example/?token=1"}), "a redirect to https://login.example/"),
        (HttpAnswer(200, b'{"status":"success","data":{"resultType":"vec'), "answered 200 with no JSON"),
        (refusal(400, "parse error"), "parse error"),
        (refusal(401, "unauthorized"), "unauthorized"),
    ],
)
def test_one_lost_chunk_is_one_sentence_and_the_others_are_kept(tmp_path: Path, answer: HttpAnswer, said: str) -> None:
    reading = Reading(tmp_path, lambda query: answer if query["time"] == "1800" else vector(3))
    assert reading.reader.read(list(ask().chunks(1800)))
    (sentence,) = reading.reader.fetched.sentences()
    assert sentence.startswith("1 chunks are lost, what else was fetched is kept")
    assert said in sentence
    assert [len(each) for each in reading.answers.read("m-")] == [3]
    assert reading.reader.fetched.samples == 3


def test_an_aborted_reading_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    chunks = list(ask().chunks(600))
    first = Reading(tmp_path, lambda query: refusal(429) if int(query["time"]) > 1800 else vector(), stops=True)
    assert not first.reader.read(chunks)
    kept = len(list(first.answers.read("m-")))
    assert 0 < kept < 6
    second = Reading(tmp_path, lambda _query: vector())
    assert second.reader.read(chunks)
    assert len(second.asked) == 6 - kept
    assert len(list(second.answers.read("m-"))) == 6


def test_no_more_samples_are_asked_for_than_allowed(tmp_path: Path) -> None:
    reading = Reading(tmp_path, lambda _query: vector(100), most=150)
    assert reading.reader.read(list(ask(86_400).chunks(600)))
    assert len(reading.asked) <= 2 + AT_ONCE
    assert "more than 150 samples" in next(reading.reader.fetched.sentences())


def test_at_most_four_requests_are_under_way(tmp_path: Path) -> None:
    together, most, lock = [0], [0], threading.Lock()
    full = threading.Barrier(AT_ONCE)

    def answering(_query: dict[str, str]) -> HttpAnswer:
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        full.wait(20)
        with lock:
            together[0] -= 1
        return vector()

    reading = Reading(tmp_path, answering)
    assert reading.reader.read(list(ask(AT_ONCE * 3 * 600).chunks(600)))
    assert most[0] == AT_ONCE


@pytest.mark.parametrize("text", ['cluster="x"', 'cluster="x",region=~"eu.*"', 'a!="b" , c!~"d"', r'x="a\"b"', ""])
def test_matchers_are_those_of_promql(text: str) -> None:
    assert parse_matchers(text) == text


@pytest.mark.parametrize("text", ["cluster=x", '{cluster="x"}', 'x="a"} or vector(1)', "x"])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no labels of series"):
        parse_matchers(text)


@pytest.mark.parametrize(
    "others", [("karpenter", "SeaweedFS", "minio_http_", "minio_s3_"), ("cluster_autoscaler", "minio_")]
)
def test_a_day_takes_at_most_200_requests_even_where_every_series_of_every_component_is_there(others):
    """A cluster has one autoscaler, and one store of one generation."""
    profiles = [profiles_file.load(each, ("kubeflow",)) for each in (*profiles_file.names(), str(USAGE))]
    names = {name for series in ALL for name in series.names}
    names |= {name + metric.suffix for each in profiles for metric in each.metrics for name in metric.any_of}
    names = {name for name in names if not name.startswith(others)}
    scope = Scope(0, 86_400, "", 30, exported=False, names=tuple(sorted(names)))
    asked = [*chain.from_iterable(asks for _, asks in kube_state_asks(scope, ""))]
    asked += chain.from_iterable(metric.asks for metric in metric_asks(scope, (), ("kubeflow",)))
    assert {ask.name.partition("-")[0] for ask in asked} >= {series.name for series in ALL}
    assert len(asked) <= 200

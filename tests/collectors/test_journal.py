"""The journal: secrets, a disk that fills up, the health of sources and their gaps."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.collectors.journal import Journal
from harness.collectors.source_health import RETRY, SourceHealth, UnreachableError
from harness.model import Event, Sample
from harness.model.phases import GAP, NOT_REACHABLE, OBSERVER_REQUESTS, RESUMED
from harness.model.text.redaction import Redaction, hide_columns, values_of
from harness.store import RunFolder

TOKEN = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"


class Clock:
    def __init__(self) -> None:
        self.at = 10**18

    def __call__(self) -> int:
        return self.at

    def passes(self, seconds: float) -> None:
        self.at += round(seconds * 1e9)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "test")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(folder: RunFolder, clock: Clock) -> Iterator[Journal]:
    with folder.recorder() as recorder:
        yield Journal(recorder, Redaction((TOKEN, "")), clock)


def notes(folder: RunFolder) -> list[tuple[str, str, str]]:
    return [(e.reason, e.object, e.message) for e in folder.records(Event) if e.kind == "Observer"]


class TestSecrets:
    @pytest.mark.parametrize(
        "text",
        [
            f"GET /x with {TOKEN} failed",
            f"Authorization: Bearer {TOKEN}",
            "headers {'authorization': 'Bearer abc.def-ghi'}",
            "Cookie: session=s3cr3t-cookie",
            "connect to https://me:pa55word@kfp.example/pipeline refused",
            'env: {"AWS_SECRET_ACCESS_KEY": "s3cr3t-cookie"} password=pa55word',
        ],
    )
    def test_no_secret_reaches_the_folder(self, journal: Journal, folder: RunFolder, text: str) -> None:
        journal.note("Retry", "runs", text)
        written = (folder.path / "events.jsonl").read_text()
        for secret in (TOKEN, "abc.def-ghi", "s3cr3t-cookie", "pa55word"):
            assert secret not in written
            assert secret not in journal.last_error

    def test_messages_without_secrets_are_unchanged(self, journal: Journal) -> None:
        text = "0/3 nodes are available: 3 Insufficient cpu. s3://mlpipeline/v2/artifacts: timed out; token bucket full"
        assert journal.clean(text) == text


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file of this process may exceed `room` bytes: writes are truncated, then fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


class TestFullDisk:
    def test_records_that_could_not_be_written_are_written_later_and_the_gap_is_recorded(
        self, journal: Journal, folder: RunFolder
    ) -> None:
        journal.write(Sample("m", 0, 0.0))
        size = (folder.path / "samples.jsonl").stat().st_size
        with full_disk(size * 2 + size // 2):
            for k in range(1, 6):
                journal.write(Sample("m", k, float(k)))
            assert journal.held
        journal.retry()
        assert not journal.held
        assert [sample.at for sample in folder.records(Sample)] == [0, 1, 2, 3, 4, 5]
        ((reason, source, message),) = notes(folder)
        assert (reason, source) == (GAP, "run folder")
        assert "every record was kept" in message

    def test_the_sealed_tables_hold_every_record(self, journal: Journal, folder: RunFolder) -> None:
        from harness.store.tables import load

        journal.write(Sample("m", 0, 0.0))
        with full_disk((folder.path / "samples.jsonl").stat().st_size + 7):
            journal.write(Sample("m", 1, 1.0))
        journal.write(Sample("m", 2, 2.0))
        assert load(folder)["samples"]["at"].tolist() == [0, 1, 2]


class TestSourceHealth:
    def test_a_source_that_was_never_reachable_is_noted_once(self, journal: Journal, folder: RunFolder) -> None:
        health = SourceHealth("kubernetes", journal)
        waits = [health.failed(UnreachableError("no kubeconfig")) for _ in range(7)]
        health.end()
        assert waits == [1, 2, 4, 8, 16, 30, 30]
        assert notes(folder) == [(NOT_REACHABLE, "kubernetes", "no kubeconfig")]

    def test_a_source_that_returns_leaves_a_gap_from_when_it_was_lost(
        self, journal: Journal, folder: RunFolder, clock: Clock
    ) -> None:
        health = SourceHealth("runs", journal)
        health.answered()
        clock.passes(5)
        lost_at = clock.at
        health.failed(UnreachableError("refused"))
        clock.passes(60)
        health.failed(UnreachableError("refused"))
        health.answered()
        health.answered()
        assert notes(folder) == [
            (RETRY, "runs", "refused"),
            (RETRY, "runs", "refused"),
            (GAP, "runs", "unreachable for 60 s: refused"),
        ]
        assert folder.records(Event)[-1].at == lost_at

    @pytest.mark.parametrize(
        ("end", "reason"), [(lambda health: health.answered(missed=False), RESUMED), (lambda health: health.end(), GAP)]
    )
    def test_nothing_missed_is_no_gap_and_never_returning_is_one(
        self, journal: Journal, folder: RunFolder, end: Callable[[SourceHealth], None], reason: str
    ) -> None:
        health = SourceHealth("kubernetes pods", journal)
        health.answered()
        health.failed(UnreachableError("refused"))
        end(health)
        assert notes(folder)[-1][0] == reason


def test_requests_are_counted_by_endpoint_and_recorded_as_totals(journal: Journal, folder: RunFolder) -> None:
    for endpoint in ("kfp GET /runs", "kfp GET /runs", "kubernetes GET /nodes"):
        journal.count(endpoint)
    journal.write_requests()
    found = {s.labels["endpoint"]: s.value for s in folder.records(Sample) if s.metric == OBSERVER_REQUESTS}
    assert found == {"kfp GET /runs": 2, "kubernetes GET /nodes": 1}


class TestRedaction:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("plant='Halle 7', seed=3", "plant=***, seed=3"),
            ('{"plant": "Halle 7", "seed": 3}', '{"plant": ***, "seed": 3}'),
            ("--plant=Halle7 --plants=9 my-plant=x", "--plant=*** --plants=9 my-plant=x"),
            ("plant:Halle7;more", "plant:***;more"),
            ("the plant burns", "the plant burns"),
        ],
    )
    def test_what_follows_a_named_parameter_is_hidden(self, text: str, cleaned: str) -> None:
        assert Redaction(names=["plant"]).clean(text) == cleaned

    def test_values_of_a_named_column_are_hidden_wherever_they_occur(self) -> None:
        rows = [{"id": "1", "customer": "Meyer & Co"}, {"id": "2", "customer": "Meyer"}, {"customer": "short"}]
        values = list(values_of(["customer", "absent"], rows))
        assert values == ["Meyer & Co", "Meyer", "short"]
        assert Redaction(values).clean("no data of Meyer & Co: short") == "no data of ***: short"

    def test_a_named_column_of_a_table_is_hidden_and_nothing_else(self) -> None:
        table = 'id,scenario_name,key,note\n1,a,s3cret,"x, ""y"""\n2,b,,z\n'
        hidden = 'id,scenario_name,key,note\n1,a,***,"x, ""y"""\n2,b,***,z\n'
        assert hide_columns(("\ufeff" + table).encode(), ["key", "absent"]).decode() == hidden

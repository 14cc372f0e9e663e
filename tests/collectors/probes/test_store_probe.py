"""The probe of the artifact store, against a real S3 server on a small file system."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.probes.s3 import Bucket, signed_headers
from harness.collectors.probes.store_probe import StoreProbe, open_collector
from harness.model import ConfigError, Event, Sample
from harness.model.http import HttpRequest
from harness.model.live.observer import LiveObserver
from harness.model.phases import STORE_FULL, STORE_PROBE_SECONDS, STORE_WRITABLE
from harness.store import RunFolder
from tests.support.object_store import ENVIRONMENT, KEY, SECRET, object_store
from tests.support.observations import observation
from tests.support.servers import Served, fill, small_file_system


class Scene:
    def __init__(self, path: Path, endpoint: str, secret: str = SECRET) -> None:
        environment = {**ENVIRONMENT, "AWS_SECRET_ACCESS_KEY": secret, "AWS_ENDPOINT_URL": endpoint}
        bucket = Bucket.parse("s3://mlpipeline/v2/probes", environment)
        settings = ObserverSettings(host="http://x", bucket=bucket, connect_timeout_s=1.0, answer_timeout_s=2.0)
        self.folder = RunFolder.create(path, "run")
        probe = open_collector(observation(self.folder, settings=settings))
        assert isinstance(probe, StoreProbe)
        self.probe = probe

    def attempt(self) -> None:
        self.probe._polling.attempt()

    def writable(self) -> list[float]:
        return [sample.value for sample in self.folder.records(Sample) if sample.metric == STORE_WRITABLE]

    def said(self) -> list[str]:
        return [event.reason for event in self.folder.records(Event)]


def test_a_real_store_that_fills_up_and_recovers(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk") as disk:
        (disk / "mlpipeline").mkdir()
        with object_store(disk) as endpoint:
            scene = Scene(tmp_path, endpoint)
            scene.attempt()
            assert scene.said() == []
            filler = disk / "mlpipeline" / "artifact"
            fill(filler)
            scene.attempt()
            scene.attempt()
            assert scene.probe.live() == LiveObserver(store_writable=False)
            filler.unlink()
            scene.attempt()
            left = [each.name for each in disk.rglob("*") if each.is_file()]
    assert scene.writable() == [1.0, 0.0, 0.0, 1.0]
    assert scene.said() == [STORE_FULL, "StoreWritable"]
    assert scene.folder.records(Event)[0].message.startswith("PUT answered 500")
    assert left == []
    timed = [s for s in scene.folder.records(Sample) if s.metric == STORE_PROBE_SECONDS]
    assert [s.labels["operation"] for s in timed] == ["PUT", "HEAD", "DELETE", "PUT", "PUT", "PUT", "HEAD", "DELETE"]


def test_a_wrong_secret_is_not_a_full_store_and_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "disk" / "mlpipeline").mkdir(parents=True)
    with object_store(tmp_path / "disk") as endpoint:
        scene = Scene(tmp_path, endpoint, secret="another-secret-of-the-test")
        scene.attempt()
    assert scene.writable() == []
    (event,) = scene.folder.records(Event)
    assert (event.reason, "403" in event.message) == ("NotReachable", True)
    assert all(b"secret-of" not in path.read_bytes() for path in scene.folder.path.rglob("*") if path.is_file())


def xml(code: str) -> str:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>of the store</Message></Error>"


@pytest.mark.parametrize(
    ("status", "code", "bucket", "full"),
    [
        (507, "XMinioStorageFull", 200, True),  # MinIO
        (403, "QuotaExceeded", 200, True),  # Ceph's gateway
        (500, "InternalError", 200, True),  # rclone, SeaweedFS
        (500, "InternalError", 500, False),  # broken altogether
        (503, "SlowDown", 200, False),  # overloaded
        (403, "AccessDenied", 200, False),
        (404, "NoSuchBucket", 404, False),
    ],
)
def test_what_counts_as_full(tmp_path: Path, status: int, code: str, bucket: int, full: bool) -> None:
    def answer(path: str, _: dict[str, str]) -> tuple[int, str]:
        return (bucket, "") if path == "/mlpipeline" else (status, xml(code))

    with Served(answer) as store:
        scene = Scene(tmp_path, store.url)
        scene.attempt()
    assert scene.writable() == ([0.0] if full else [])
    assert scene.said() == [STORE_FULL if full else "NotReachable"]
    assert code in scene.folder.records(Event)[0].message


def test_an_absent_store_is_unreachable_and_the_probe_ends_in_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "http://127.0.0.1:9")
    stop = threading.Event()
    stop.set()
    scene.probe.collect(stop)
    assert scene.said() == ["NotReachable"]


def test_temporary_credentials_are_signed() -> None:
    lasting = Bucket(endpoint="http://s3.example:9000", name="b", prefix="", region="us-east-1", key=KEY, secret=SECRET)
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    request = HttpRequest("PUT", "/b/o")
    plain = signed_headers(lasting, request, moment)
    temporary = signed_headers(replace(lasting, session="token"), request, moment)
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date," in plain["authorization"]
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token," in temporary["authorization"]
    assert temporary["x-amz-security-token"] == "token"
    assert SECRET not in str(temporary)


@pytest.mark.parametrize(
    ("text", "environment", "says"),
    [
        ("mlpipeline", ENVIRONMENT, "not a bucket"),
        ("s3://", ENVIRONMENT, "not a bucket"),
        ("s3://mlpipeline", {"AWS_ACCESS_KEY_ID": KEY}, "no credentials"),
    ],
)
def test_what_can_not_work_is_told(text: str, environment: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Bucket.parse(text, environment)


def test_without_an_endpoint_the_store_is_aws() -> None:
    bucket = Bucket.parse("s3://b/p/q/", {**ENVIRONMENT, "AWS_REGION": "eu-central-1"})
    assert (bucket.endpoint, bucket.name, bucket.prefix) == ("https://s3.eu-central-1.amazonaws.com", "b", "p/q/")

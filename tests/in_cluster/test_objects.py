import pytest

from harness.in_cluster import objects
from harness.model.errors import ConfigError, TargetUnreachableError
from tests.support.e2e import free_port
from tests.support.object_store import ENVIRONMENT, object_store


@pytest.fixture
def credentials(monkeypatch):
    for name, value in {**ENVIRONMENT, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}.items():
        monkeypatch.setenv(name, value)


def test_a_folder_goes_to_the_store_and_its_files_come_back(tmp_path, credentials):
    (tmp_path / "disk/bucket").mkdir(parents=True)
    run = tmp_path / "run"
    (run / "tables").mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    (run / "tables/spans.parquet").write_bytes(b"\x00\xff")
    with object_store(tmp_path / "disk") as address:
        environment = {"AWS_ENDPOINT_URL": address}
        objects.upload(run, "s3://bucket/nightly/run", environment)
        assert (tmp_path / "disk/bucket/nightly/run/manifest.json").read_text() == "{}"
        objects.fetch("s3://bucket/nightly/run/tables/spans.parquet", tmp_path / "back", environment)
        assert (tmp_path / "back").read_bytes() == b"\x00\xff"
        with pytest.raises(ConfigError, match=r"s3://bucket/none.csv: .*Path does not exist"):
            objects.fetch("s3://bucket/none.csv", tmp_path / "none", environment)
        with pytest.raises(ConfigError, match="The specified bucket does not exist"):
            objects.upload(run, "s3://other/run", environment)


def test_a_store_that_does_not_answer_is_told_apart(tmp_path, credentials):
    environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    with pytest.raises(TargetUnreachableError, match="the object store of s3://bucket/a does not answer"):
        objects.fetch("s3://bucket/a", tmp_path / "a", environment)


@pytest.mark.parametrize("address", ["bucket/a", "s3://", "gs://bucket/a", "s3:///"])
def test_an_address_without_a_bucket_is_refused(address):
    with pytest.raises(ConfigError, match="is not an address in an object store"):
        objects.check_address(address)

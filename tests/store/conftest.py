import pytest

from tests.support.small_folder import small_folder


@pytest.fixture
def folder(tmp_path):
    return small_folder(tmp_path / "runs")

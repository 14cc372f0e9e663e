import base64
import gzip

import pytest

from harness.in_cluster.orchestrator import packed, unpacked
from harness.model.errors import ConfigError


def test_scenarios_survive_the_way_through_a_parameter():
    table = "id,scenario_name\n1,Zürich\n".encode()
    assert unpacked(packed(table, "s.csv")) == table
    assert packed(table, "s.csv") == packed(table, "s.csv")  # the same test is the same pipeline run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id,scenario_name",
        base64.b64encode(b"id").decode(),
        base64.b64encode(gzip.compress(b"id", mtime=0)[:-9]).decode(),
    ],
)
def test_what_is_no_packed_table_is_refused(text):
    with pytest.raises(ConfigError, match="the scenarios"):
        unpacked(text)


def test_a_text_that_expands_without_end_is_refused():
    bomb = base64.b64encode(gzip.compress(b"0" * (2**26 + 1))).decode()
    with pytest.raises(ConfigError, match="truncated or too large"):
        unpacked(bomb)

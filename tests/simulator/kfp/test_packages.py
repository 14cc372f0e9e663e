import pytest

from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.packages import parse_package


@pytest.mark.parametrize("package", [b"[" * 60_000, b"a: &a [*a]", b"\xff", b"- 1", b"a: " + b"9" * 5000])
def test_what_is_no_pipeline_is_an_answer_of_the_api(package):
    with pytest.raises(RpcError) as refused:
        parse_package(package)
    assert "unknown template format" in str(refused.value)

import pytest

from harness.model.errors import ConfigError
from harness.targets.bearer import read_token, same_origin, token_for

GIVEN = "https://kfp.example/pipeline"


@pytest.mark.parametrize(
    ("host", "same"),
    [
        ("https://kfp.example/pipeline", True),
        ("https://KFP.example:443/elsewhere", True),
        ("kfp.example", True),
        ("http://kfp.example/pipeline", False),
        ("https://kfp.example:8443/pipeline", False),
        ("https://kfp.example.evil.example/pipeline", False),
        ("https://kfp.example@evil.example/pipeline", False),
        ("https://evil.example/https://kfp.example/pipeline", False),
        ("https://[kfp.example", False),
        ("https://kfp.example:port", False),
        ("ftp://kfp.example", False),
        ("", False),
    ],
)
def test_the_token_goes_only_to_the_origin_it_was_given_for(host, same):
    assert token_for(host, GIVEN, lambda: "secret") == ("secret" if same else "")


def test_a_token_that_was_given_for_no_host_goes_nowhere():
    assert not same_origin("", "")
    assert token_for(GIVEN, "", lambda: "secret") == ""


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xfe", "is not UTF-8"), (b"x" * (2**20 + 1), "is larger than 1 MiB")]
)
def test_a_file_that_is_no_token_is_refused(tmp_path, content, said):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        read_token(str(tmp_path / "token"), {})
    with pytest.raises(ConfigError, match="is not a file"):
        read_token("/dev/zero", {})


def test_a_token_file_s_line_end_is_no_part_of_the_token(tmp_path):
    (tmp_path / "token").write_bytes(b"secret\r\n")
    assert read_token(str(tmp_path / "token"), {"PIPESWARM_TOKEN": "other"}) == "secret"

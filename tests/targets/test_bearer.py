import pytest

from harness.targets.bearer import same_origin, token_for

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

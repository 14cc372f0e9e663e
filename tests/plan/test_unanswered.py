"""Each reason for which nothing answers has its own remedy."""

import pytest

from harness.plan.http_proxy import Proxy
from harness.plan.unanswered import hint

PROXY = Proxy("proxy.example", 3128)


@pytest.mark.parametrize(
    ("said", "proxy", "remedy"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer", None, "--ca-file"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required", None, "--client-certificate"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", None, "--host http://"),
        ("[Errno 111] Connection refused", None, "is --host right"),
        ("[Errno 111] Connection refused", PROXY, "NO_PROXY"),
        ("the proxy answered 407 Proxy Authentication Required", PROXY, "USER:PASSWORD"),
    ],
)
def test_the_remedy_fits_the_reason(said, proxy, remedy):
    assert remedy in hint(said, "https://kfp.example", proxy)

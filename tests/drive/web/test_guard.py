"""Who may use the web UI: our own page, whatever other pages the user's browser has open."""

import socket

import pytest

from harness.drive.web.guard import HEADER, Guard, closed_to_others, is_loopback

OURS = "127.0.0.1:8089"


def refusal(method="POST", *, host=OURS, token=True, needs_token=True, names=(), **headers):
    guard = Guard(names)
    sent = {"Host": host, **{name.title(): value for name, value in headers.items()}}
    if token:
        sent[HEADER] = guard.token if token is True else token
    return guard.refusal(method, sent, needs_token=needs_token)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8089", "localhost:8089", "LOCALHOST", "[::1]:8089", "192.0.2.7:80", "[2001:db8::1]",
     f"{socket.gethostname()}:8089"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_addresses_localhost_and_this_machines_name_are_served(method, host):
    assert refusal(method, host=host) == ""


@pytest.mark.parametrize(
    "host", ["evil.example:8089", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1", "evil.example@127.0.0.1", "127.0.0.1/x"]
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_name_that_another_site_may_own_is_refused(method, host):
    assert "--web-host-name" in refusal(method, host=host)


def test_a_name_that_was_given_is_served():
    assert refusal("GET", host="load.example:8089", names=["Load.example"]) == ""
    assert refusal("GET", host="other.example:8089", names=["load.example"])


@pytest.mark.parametrize(
    ("page", "allowed"),
    [
        ("http://127.0.0.1:8089", True),
        ("https://127.0.0.1:8089", True),
        ("http://127.0.0.1:8090", False),
        ("http://localhost:8089", False),
        ("http://127.0.0.1:8089.evil.example", False),
        ("http://evil.example/127.0.0.1:8089", False),
        ("http://evil.example", False),
        ("null", False),
        ("file://127.0.0.1:8089", False),
        ("http://[::1", False),
    ],
)
@pytest.mark.parametrize("header", ["origin", "referer"])
def test_changes_come_from_our_own_origin_only(header, page, allowed):
    assert (refusal(**{header: page}) == "") is allowed
    assert (refusal(**{header: page}, needs_token=False) == "") is allowed
    assert refusal("GET", **{header: page}) == "", "it may read: no other site is given the answer"


def test_a_proxy_may_replace_the_host_if_the_pages_name_was_given():
    assert refusal(host="10.0.0.1:8089", origin="https://load.example", names=["load.example"]) == ""
    assert refusal(host="10.0.0.1:8089", origin="https://load.example")


@pytest.mark.parametrize("token", ["", "wrong", "wröng", "x" * 43])
def test_changes_need_the_token_of_the_page(token):
    assert "reload the page" in refusal(token=token)
    assert "reload the page" in refusal(token=token, origin=f"http://{OURS}")
    assert refusal(token=token, needs_token=False) == ""
    assert refusal("GET", token=token) == ""


def test_every_process_has_another_token():
    assert Guard().token != Guard().token


def test_no_answer_is_open_to_other_sites_or_can_be_framed():
    def locusts(_environ, start):
        start("200 OK", [("access-control-allow-origin", "*"), ("Access-Control-Allow-Headers", "x"), ("X-Kept", "y")])
        return [b"secret"]

    given = {}
    body = closed_to_others(locusts)({}, lambda status, headers: given.update(headers, status=status))
    assert body == [b"secret"]
    assert not any(name.lower().startswith("access-control-") for name in given)
    assert (given["status"], given["X-Kept"]) == ("200 OK", "y")
    assert given["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert given["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_policy_of_the_answers_own_is_kept():
    own = [("content-security-policy", "sandbox")]
    given = []
    closed_to_others(lambda _, start: start("200 OK", own) or [])({}, lambda _, headers: given.extend(headers))
    assert [value for name, value in given if name.lower() == "content-security-policy"] == ["sandbox"]


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("", False), ("0.0.0.0", False),
     ("::", False), ("192.0.2.7", False), ("load.example", False)],
)  # fmt: skip
def test_loopback_is_told_from_addresses_that_others_reach(host, only_here):
    assert is_loopback(host) is only_here

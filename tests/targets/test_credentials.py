import base64
import json
import ssl

import pytest

from harness.model.errors import ConfigError
from harness.targets import credentials
from harness.targets.credentials import Credentials, HeaderFields, for_folder, for_host, parse_field
from harness.targets.kube_service import same_origin
from tests.support.certificates import certified

GIVEN = "https://kfp.example/pipeline"
SECRET = Credentials("secret")
NETSCAPE = "# Netscape HTTP Cookie File\n"


@pytest.mark.attack("Secrets and rights")
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
def test_credentials_go_only_to_the_origin_they_were_given_for(host, same):
    assert for_host(host, GIVEN, SECRET) == (SECRET if same else Credentials())
    if not same:
        with pytest.raises(ConfigError, match="only the run folder names"):
            for_folder(host, GIVEN, Credentials(headers=(("kubeflow-userid", "me"),)))
    assert not for_folder(host, GIVEN, Credentials())


@pytest.mark.attack("Secrets and rights")
def test_credentials_that_were_given_for_no_host_go_nowhere():
    assert not same_origin("", "")
    assert for_host(GIVEN, "", SECRET) == Credentials()


def test_all_that_was_given_becomes_header_fields(tmp_path):
    (tmp_path / "token").write_bytes(b"secret\r\n")
    cookies = "kfp.example\tFALSE\t/\tTRUE\t0\tsession\tabc\n#HttpOnly_.example\tTRUE\t/pipeline\tTRUE\t4000000000\tcsrf\td=e\n"
    elsewhere = "other.example\tFALSE\t/\tTRUE\t0\tother\tx\nkfp.example\tFALSE\t/\tTRUE\t1000\texpired\tx\n"
    (tmp_path / "cookies").write_text(NETSCAPE + cookies + elsewhere)
    given = Credentials(
        token_file=str(tmp_path / "token"), headers=(("kubeflow-userid", "me"),), cookie_file=str(tmp_path / "cookies")
    )
    fields = given.fields(GIVEN)
    assert sorted(fields.pop("Cookie").split("; ")) == ["csrf=d=e", "session=abc"]
    assert fields == {"Authorization": "Bearer secret", "kubeflow-userid": "me"}
    assert {"secret"} < set(given.secrets(GIVEN))
    assert "me" not in set(given.secrets(GIVEN)), "a user's name is no secret: it may be a namespace's, too"
    with pytest.raises(ConfigError, match="4 cookies only for https"):
        given.fields("http://kfp.example/pipeline")


@pytest.mark.parametrize(
    ("how", "content", "said"),
    [
        ("token_file", b"\xff\xfe", "is not UTF-8"),
        ("token_file", b"x" * (2**20 + 1), "is larger than 1 MiB"),
        ("token_file", b"one\ntwo", "is one line"),
        ("cookie_file", b"session=abc", "Netscape's format"),
        ("cookie_file", NETSCAPE.encode() + b"kfp.example\tsession\n", "Netscape's format"),
        ("cookie_file", NETSCAPE.encode() + b"\xff" * 9, "Netscape's format"),
        ("cookie_file", b"x" * (2**20 + 1), "is larger than 1 MiB"),
        ("cookie_file", NETSCAPE.encode() + b"kfp.example\tFALSE\t/\tTRUE\tsoon\ta\tb\n", "Netscape's format"),
    ],
)
def test_a_file_that_holds_no_credentials_is_refused(tmp_path, how, content, said):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        Credentials(**{how: str(tmp_path / "file")}).fields(GIVEN)
    for path, reason in (("/dev/zero", "is not a file"), (str(tmp_path / "none"), "does not exist")):
        with pytest.raises(ConfigError, match=reason):
            Credentials(**{how: path}).fields(GIVEN)


def test_a_token_of_two_lines_is_refused():
    with pytest.raises(ConfigError, match="PIPESWARM_TOKEN holds no bearer token"):
        Credentials("one\ntwo").fields(GIVEN)


def test_renewed_files_are_read_again_after_30_seconds_or_a_refusal(tmp_path):
    token = tmp_path / "token"
    token.write_text("first")
    now = [0.0]
    fields = HeaderFields(Credentials(token_file=str(token)), GIVEN, clock=lambda: now[0])
    first = fields.current()
    token.write_text("second")
    now[0] = 29.9
    assert fields.current() is first
    now[0] = 30.0
    assert fields.current() == {"Authorization": "Bearer second"}
    token.write_text("third")
    now[0] = 30.5
    fields.refused()
    assert fields.current() == {"Authorization": "Bearer second"}, "a storm of refusals is no storm of reads"
    now[0] = 31.0
    fields.refused()
    assert fields.current() == {"Authorization": "Bearer third"}
    token.unlink()
    now[0] = 99.0
    assert fields.current() == {"Authorization": "Bearer third"}, "what is being replaced is not there for a moment"


def test_a_header_field_is_parsed():
    assert parse_field("kubeflow-userid: me@example.org") == ("kubeflow-userid", "me@example.org")
    assert parse_field("x-list:a, b") == ("x-list", "a, b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kubeflow-userid", "not a header field"),
        ("a b: c", "not a header field"),
        ("a: b\r\nc: d", "not a header field"),
        ("a: ", "not a header field"),
        ("a: é", "not a header field"),
        ("Host: other", "Host is written by Pipeswarm"),
        ("content-LENGTH: 0", "is written by Pipeswarm"),
    ],
)
def test_what_is_no_header_field_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        parse_field(text)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"authorities": "{}/none"}, "--ca-file .*No such file"),
        ({"authorities": "{}/text"}, "--ca-file .*PEM"),
        ({"certificate": "{}/none"}, "--client-certificate .*No such file"),
        ({"certificate": "{}/text"}, "--client-certificate .*no certificate in it, or no key in .*text.*PEM"),
    ],
)
def test_files_that_are_no_certificates_are_refused(tmp_path, how, said):
    (tmp_path / "text").write_text("not PEM")
    given = Credentials(**{name: path.format(tmp_path) for name, path in how.items()})
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        given.prepare(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def jwt(expires_s):
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_s}).encode()).rstrip(b"=").decode()
    return f"e30.{claims}.signature"


def test_a_command_renews_the_token_before_its_expiry_and_after_a_refusal(tmp_path):
    file, now, waiting = tmp_path / "token", [0.0], []
    file.write_text("third")
    fields = HeaderFields(
        Credentials(token=jwt(1060.0), token_command=("cat", str(file))), GIVEN,
        clock=lambda: now[0], now=lambda: 1000.0 + now[0], spawn=waiting.append,
    )  # fmt: skip
    first = fields.current()
    now[0] = 29.9
    assert fields.current() is first
    assert not waiting
    now[0] = 30.0
    assert fields.current() is first, "no request waits for the command"
    assert fields.current() is first
    (run,) = waiting
    run()
    assert fields.current() == {"Authorization": "Bearer third"}
    file.write_text("fourth")
    now[0] = 34.9
    fields.refused()
    assert len(waiting) == 1, "a storm of refusals is no storm of processes"
    now[0] = 35.0
    fields.refused()
    waiting[1]()
    assert fields.current() == {"Authorization": "Bearer fourth"}
    file.unlink()
    now[0] = 155.0
    fields.current()
    waiting[2]()
    assert fields.current() == {"Authorization": "Bearer fourth"}, "a command that fails leaves the token"
    with pytest.raises(ConfigError, match="No such file"):
        Credentials(token_command=("cat", str(file))).fields(GIVEN)


def test_what_a_plugin_says_of_the_expiry_counts_and_not_only_the_token_itself(tmp_path):
    file, now, waiting = tmp_path / "token", [0.0], []
    file.write_text("second\n1125.0\n")  # an opaque token
    fields = HeaderFields(
        Credentials(token=jwt(1600.0), token_expires_s=1060.0, token_command=("cat", str(file))), GIVEN,
        clock=lambda: now[0], now=lambda: 1000.0 + now[0], spawn=waiting.append,
    )  # fmt: skip
    for begun, due_s in enumerate((30.0, 95.0)):
        now[0] = due_s - 0.1
        fields.current()
        assert len(waiting) == begun
        now[0] = due_s
        fields.current()
        waiting[begun]()
        assert fields.current() == {"Authorization": "Bearer second"}


@pytest.mark.parametrize(
    ("first", "later_s", "second"),
    [("one", 119.0, "one"), ("one", 121.0, "two"), (jwt(9e9), 1e6, jwt(9e9)), (jwt(1.0), 0.0, "two")],
)
def test_a_test_that_begins_uses_what_the_command_printed_when_it_was_prepared(
    tmp_path, monkeypatch, first, later_s, second
):
    file, now = tmp_path / "token", [1000.0]
    monkeypatch.setattr(credentials.time, "monotonic", lambda: now[0])
    given = Credentials(token_command=("cat", str(file)))
    file.write_text(first)
    assert given.fields(GIVEN) == {"Authorization": f"Bearer {first}"}
    file.write_text("two")
    now[0] += later_s
    assert given.fields(GIVEN) == {"Authorization": f"Bearer {second}"}


@pytest.mark.parametrize(
    ("cookie", "said"),
    [
        ("kfp.example\tFALSE\t/\tTRUE\t1000000000\tsession\told\n", f"no cookie for {GIVEN} (1 cookie expired)"),
        ("other.example\tFALSE\t/\tTRUE\t0\tsession\tnew\n", f"no cookie for {GIVEN}"),
    ],
)
def test_cookies_that_are_not_for_this_platform_are_refused_at_once(tmp_path, cookie, said):
    (tmp_path / "cookies.txt").write_text(NETSCAPE + cookie)
    with pytest.raises(ConfigError) as raised:
        Credentials(cookie_file=str(tmp_path / "cookies.txt")).fields(GIVEN)
    assert raised.value.message.endswith(said)


def test_a_certificate_with_another_ones_key_is_told(tmp_path):
    (tmp_path / "other").mkdir()
    certificate, _ = certified(tmp_path, "localhost")
    _, key = certified(tmp_path / "other", "localhost")
    with pytest.raises(ConfigError, match=f"the key in {key} is not that of this certificate"):
        Credentials(certificate=certificate, key=key).prepare(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

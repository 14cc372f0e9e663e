"""Secrets stay out of texts, documents and tables."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest

from harness.model.text.redaction import HIDDEN, Redaction, column_of, hide_columns, values_of, without_credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization=xyz; rest", "authorization=***; rest"),
        ("bearer abc said", "bearer *** said"),
        ("basic dXNlcg==", "basic ***"),
        ('{"Cookie": "session=5", "a": 1}', '{"Cookie": "***", "a": 1}'),
        ("MY_PASSWORD=hunter2, next", "MY_PASSWORD=***, next"),
        ("passwd: hunter2&x=1", "passwd: ***&x=1"),
        ("client_secret_key = 'hunter2'", "client_secret_key = '***'"),
        ("api-key=1 api_key=2 apikey=3", "api-key=*** api_key=*** apikey=***"),
        ("access_key_id: AKIA", "access_key_id: ***"),
        ("https://user:pw@host/p", "https://***@host/p"),
        ("https://host/p?q=1", "https://host/p?q=1"),
        ("the token is missing", "the token is missing"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(text, shown):
    assert Redaction().clean(text) == shown


def test_known_secrets_are_hidden_longest_first_and_short_ones_are_words():
    redaction = Redaction(["secret", "secret-and-more", "short"])
    assert redaction.clean("a secret-and-more, a secret, a short one") == "a ***, a ***, a short one"
    assert Redaction(["secret", "a-secret-z"]).clean("a-secret-z") == "***", "one may hold another"
    assert Redaction(["sixsix"]).clean("sixsix") == "***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user=ann rest", "user=*** rest"),
        ('user: "ann b", rest', "user: ***, rest"),
        ("'user': 'ann b'}", "'user': ***}"),
        ("{user=ann}", "{user=***}"),
        ("superuser=ann my-user=ann", "superuser=ann my-user=ann"),
        ("a.b = 5 axb = 5", "a.b = *** axb = 5"),
    ],
)
def test_values_of_named_parameters_are_hidden(text, shown):
    redaction = Redaction(names=["user", "a.b"])
    assert redaction.clean(text) == shown
    assert redaction.names == {"user", "a.b"}


def test_a_message_is_cut_and_its_control_characters_are_shown():
    assert Redaction().clean("x" * 4001) == "x" * 4000
    assert Redaction().clean("a\x1b[2J") == "a\\u001b[2J"


def test_a_document_keeps_its_form_without_the_secrets():
    tree = {"a": ["hunter22", {"b": "x hunter22 y"}], "n": 5, "none": None, "token": "stays"}
    assert Redaction(["hunter22"]).clean_tree(tree) == {
        "a": ["***", {"b": "x *** y"}], "n": 5, "none": None, "token": "stays",
    }  # fmt: skip


def test_an_address_is_shown_without_its_user():
    assert without_credentials("https://user:pw@host/p") == "https://***@host/p"
    assert without_credentials("https://host/p") == "https://host/p"


def test_the_values_of_columns_are_read_back_from_their_table():
    rows = [{"user": "ann", "size": "1"}, {"user": "", "size": "2"}, {"user": 'b "c", d', "size": "3"}]
    values = list(values_of(["user"], rows))
    assert values == ["ann", 'b "c", d']
    assert column_of("user", values) == b'user\nann\n"b ""c"", d"\n'


def test_columns_of_a_table_are_hidden():
    table = '\ufeffid, user ,size\n1,ann,5\n2,"b\nc",6\n'.encode()
    assert hide_columns(table, ["user"]) == b"id, user ,size\n1,***,5\n2,***,6\n"
    assert hide_columns(b'id,n\n1,"a\r\nb"\n', ["id"]) == b'id,n\n***,"a\r\nb"\n'
    assert hide_columns(b"id,n\xc3\xa4me\n1,\xc3\xb6\n", ["id"]) == b"id,n\xc3\xa4me\n***,\xc3\xb6\n"


ENCODINGS = {
    "as it is": lambda text: text,
    "in capitals": str.upper,
    "in percent": lambda text: quote(text, safe=""),
    "in percent of small letters": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "in a form": quote_plus,
    "in HTML": html.escape,
    "in JSON": json.dumps,
    "in hexadecimal": lambda text: text.encode().hex(),
    "in hexadecimal capitals": lambda text: text.encode().hex().upper(),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 of a document": lambda text: base64.b64encode(f'{{"a":"{text}"}}'.encode()).decode(),
    "in base64 of a longer document": lambda text: base64.urlsafe_b64encode(
        f'{{"ab":"{text}","c":1}}'.encode()
    ).decode(),
}


@pytest.mark.parametrize("encoded", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("secret", ["hunter2/+ü&é-and-more", "s3cr3t-T0ken==", "a b<c>\"d' e/f+g"])
def test_a_secret_is_hidden_however_a_server_writes_it(encoded, secret):
    said = Redaction([secret]).clean(f"refused: value={encoded(secret)}; code 7")
    assert HIDDEN in said
    written = encoded(secret)
    assert written[len(written) // 3 : 2 * len(written) // 3] not in said
    assert said.endswith("code 7")

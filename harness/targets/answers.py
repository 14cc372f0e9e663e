"""What platforms, and gateways before them, answer: documents, errors, and what to do about these."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer, html_page, redirection
from harness.targets import kube_service

JSON = {"content-type": "application/json"}
MOST_TEXT = 500  # characters of an error

_CERTIFICATE = re.compile(r"no required ssl certificate|client certificate", re.IGNORECASE)
_PLAIN_HTTP = re.compile(r"plain http request|http request to an https server", re.IGNORECASE)
_USER_HEADER = re.compile(r"user identity header|kubeflow-userid", re.IGNORECASE)
_USER_HINT = (
    "name the user as the gateway would: --header 'kubeflow-userid: me@example.org'; from outside the cluster, give "
    "the session of a browser instead (--cookie-file)"
)
_REDIRECT_HINT = (
    "if that is a login page, give a bearer token (--token-file) or the cookies of a browser that is logged in "
    "(--cookie-file); otherwise it may be the right --host"
)


def document(answer: HttpAnswer) -> dict[str, Any] | None:
    """The object in an answer's body; None if there is none."""
    try:
        found = orjson.loads(answer.body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def error_text(
    answer: HttpAnswer, message: Callable[[Mapping[str, Any]], object] = lambda found: found.get("message")
) -> str:
    """The `message` of the object in an answer's body, or what kind of page the body is instead."""
    if away := redirection(answer):
        return away
    text = message(document(answer) or {}) or html_page(answer.body) or answer.body.decode(errors="replace").strip()
    return str(text or "nothing")[:MOST_TEXT]


def demand_access(
    answer: HttpAnswer, where: str, text_of: Callable[[HttpAnswer], str], hint_of: Callable[[str], str]
) -> None:
    """Check that a request, which `where` names, was let through.

    Raises:
        TargetUnreachableError: it was refused, with the text and the text's hint, or sent to another page.
    """
    if answer.status in {401, 403}:
        said = text_of(answer)
        raise TargetUnreachableError(f"{where} is refused: {answer.status} {said}", hint_of(said))
    if answer.status // 100 == 3:
        raise TargetUnreachableError(f"{where} answered {answer.status}, {redirection(answer)}", _REDIRECT_HINT)


def refusal_hint(said: str, variables: str = "PIPESWARM_TOKEN") -> str:
    """What to do after a 401 or 403 with the text `said`; `variables` are those that a token is read from."""
    if _USER_HEADER.search(said):
        return _USER_HINT
    return (
        f"give a bearer token (--token-file, or {variables} in the environment), or the cookies of a browser that is "
        "logged in (--cookie-file)"
    )


def hint_for(said: str, otherwise: str) -> str:
    """What to do after an answer that is no success, by its text."""
    if _CERTIFICATE.search(said):
        return "give the client's certificate that the server asks for: --client-certificate, --client-key"
    if _PLAIN_HTTP.search(said):
        return "the server uses TLS there: give --host https://…"
    return kube_service.hint_for(said, otherwise)


def instant(text: str | None) -> int | None:
    """UTC ns of an RFC 3339 timestamp; None for the years 1 and 1970, which mean that it has not happened yet."""
    if not text:
        return None
    at = datetime.fromisoformat(text)
    seconds = int(at.timestamp()) if at.tzinfo else int(at.replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + at.microsecond * 1000 if seconds > 0 else None

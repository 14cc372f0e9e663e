"""Calls to the KFP API outside the submit path: JSON in, JSON out, every error explained."""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpAnswer, HttpRequest
from harness.targets import answers
from harness.targets.answers import JSON, demand_access, hint_for, refusal_hint

ROOT = "/apis/v2beta1"
_MESSAGES = ("message", "error_message", "error")  # the second one is that of an upload
_CONFLICT = 409
# Every multi-user installation refuses an experiment or a run without a namespace, in words of its own.
_NO_NAMESPACE = re.compile(r"empty namespace|namespace is (required|empty)", re.IGNORECASE)
_NO_RIGHT = "is not authorized"
_UNNAMED = "unknown"  # of a build without a release
_NAMESPACE_HINT = "give the namespace of your profile with --namespace, or those of tenants with --tenant-namespace"
_RIGHT_HINT = "make the token's user a contributor of that namespace, or give the token of one who is (--token-file)"


class HttpError(TargetUnreachableError):
    """The API answered with an error status that has no more specific explanation."""

    def __init__(self, where: str, answer: HttpAnswer) -> None:
        text = error_text(answer)
        super().__init__(
            f"{where} answered {answer.status} {text}",
            hint_for(text, "is --host the address of a KFP v2beta1 API, and is it healthy?"),
        )
        self.status = answer.status


class Api:
    """The API behind an exchange. Paths are relative to ``/apis/v2beta1``; empty query values are left out.

    Every method raises `TargetUnreachableError` when the answer is not that of a KFP API, and `ConfigError` when the
    pipeline or version that it names does not exist, the uploaded pipeline is refused, or a namespace is missing.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The object at `path`."""
        return self._call(HttpRequest("GET", f"{ROOT}{path}{_encoded(query or {})}", most_bytes=LONG_ANSWER))

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The object that posting `body` creates."""
        return self._call(HttpRequest("POST", f"{ROOT}{path}", orjson.dumps(body), JSON))

    def upload(self, package: bytes, query: Mapping[str, str]) -> dict[str, Any]:
        """The pipeline that uploading compiled IR creates."""
        boundary = secrets.token_hex(16)
        body = (
            f"--{boundary}\r\n"
            'Content-Disposition: form-data; name="uploadfile"; filename="pipeline.yaml"\r\n'
            "Content-Type: application/yaml\r\n\r\n"
        ).encode() + package + f"\r\n--{boundary}--\r\n".encode()  # fmt: skip
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        return self._call(HttpRequest("POST", f"{ROOT}/pipelines/upload{_encoded(query)}", body, headers))

    def healthz(self, namespace: str, tenants: Sequence[str] = ()) -> str:
        """Check that this is a KFP API, and that `namespace` or `tenants` are given if it serves several users.

        Returns:
            Its version, or the commit that it was built from; "" if it names neither.
        """
        health = self._call(HttpRequest("GET", f"{ROOT}/healthz"))
        if health.get("multi_user") and not (namespace or tenants):
            raise ConfigError("this KFP serves several users, so that runs need a namespace", _NAMESPACE_HINT)
        if tenants and not health.get("multi_user"):
            raise ConfigError(
                "this KFP serves a single user: it would put the runs of all tenants into one namespace",
                "leave --tenant-namespace out; the scenarios' column tenant is enough for the report's comparison",
            )
        named = (str(health.get(name) or _UNNAMED) for name in ("tag_name", "commit_sha"))
        return next((each for each in named if each != _UNNAMED), "")

    def _call(self, request: HttpRequest) -> dict[str, Any]:
        answer = self._exchange(request)
        where = f"{request.method} {request.path.partition('?')[0]}"
        demand_access(answer, where, error_text, _access_hint)
        parsed = answers.document(answer)
        if answer.status == 404 and "/pipelines/" in request.path and parsed is not None:
            raise ConfigError(f"{where}: {error_text(answer)}", "look up --pipeline-id and --version-id in the KFP UI")
        if answer.status // 100 != 2:
            if _NO_NAMESPACE.search(text := error_text(answer)):
                raise ConfigError(f"{where}: {text}", _NAMESPACE_HINT)
            if parsed and "error_message" in parsed and answer.status != _CONFLICT:
                raise ConfigError(
                    f"KFP refuses the pipeline: {text}",
                    "compile it with a kfp SDK that this version of KFP supports; the API server's log says more",
                )
            raise HttpError(where, answer)
        if parsed is None:
            raise TargetUnreachableError(
                f"{where} answered {error_text(answer)} instead of JSON",
                "is --host the KFP API (often https://…/pipeline), and not a login page or another service?",
            )
        return parsed


def _access_hint(said: str) -> str:
    return _RIGHT_HINT if _NO_RIGHT in said else refusal_hint(said)


def _encoded(query: Mapping[str, str]) -> str:
    text = urlencode({name: value for name, value in query.items() if value})
    return f"?{text}" if text else ""


def error_text(answer: HttpAnswer) -> str:
    """The message in an answer's body, without a stack trace, or what kind of page it is instead."""
    return answers.error_text(answer, lambda found: next((found[key] for key in _MESSAGES if found.get(key)), found))

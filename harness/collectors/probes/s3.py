"""Single requests to an S3 object store, signed by hand: an SDK would retry, and hide what was answered."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self
from urllib.parse import quote, urlsplit

from harness.model.errors import ConfigError
from harness.model.http import Exchange, HttpAnswer, HttpRequest

_ALGORITHM = "AWS4-HMAC-SHA256"
_CODE = re.compile(rb"<Code>\s*([^<\s]+)\s*</Code>")
_MESSAGE = re.compile(rb"<Message>\s*([^<]*?)\s*</Message>")
_DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket and the credentials for it. The keys are never recorded.

    Attributes:
        endpoint: address of the store; buckets are paths below it.
        name: of the bucket.
        prefix: of the objects' names; "" or ends in "/".
        region: for which requests are signed.
        key: access key.
        secret: secret key.
        session: token of temporary credentials; "" for permanent ones.
    """

    endpoint: str
    name: str
    prefix: str
    region: str
    key: str
    secret: str
    session: str = ""

    @classmethod
    def parse(cls, text: str, environment: Mapping[str, str]) -> Self:
        """``s3://bucket[/prefix]``; endpoint and credentials come from the variables that AWS tools read.

        Raises:
            ConfigError: it is not such an address, or the environment holds no credentials.
        """
        parts = urlsplit(text)
        if parts.scheme != "s3" or not parts.netloc:
            raise ConfigError(
                f"--store-probe {text} is not a bucket", "write it as s3://mlpipeline or s3://bucket/prefix"
            )
        key, secret = (environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        if not (key and secret):
            raise ConfigError(
                "no credentials for --store-probe",
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL where the store is not AWS",
            )
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or _DEFAULT_REGION
        given = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        prefix = parts.path.strip("/")
        return cls(
            endpoint=(given or f"https://s3.{region}.amazonaws.com").rstrip("/"), name=parts.netloc,
            prefix=f"{prefix}/" if prefix else "", region=region,
            key=key, secret=secret, session=environment.get("AWS_SESSION_TOKEN", ""),
        )  # fmt: skip


class S3:
    """Sends signed requests for `bucket` over `exchange`; `now` gives UTC ns."""

    def __init__(self, bucket: Bucket, exchange: Exchange, now: Callable[[], int]) -> None:
        self._bucket = bucket
        self._exchange = exchange
        self._now = now

    def send(self, method: str, key: str = "", body: bytes = b"") -> HttpAnswer:
        """Send a request for the object `key`, or for the bucket as a whole.

        Raises:
            TargetUnreachableError: there was no response.
        """
        bucket = self._bucket
        path = quote(f"/{bucket.name}/{bucket.prefix}{key}" if key else f"/{bucket.name}")
        moment = datetime.fromtimestamp(self._now() / 1e9, UTC)
        request = HttpRequest(method, path, body)
        return self._exchange(replace(request, headers=signed_headers(bucket, request, moment)))


def signed_headers(bucket: Bucket, request: HttpRequest, moment: datetime) -> dict[str, str]:
    """The headers that authenticate a request of `moment` and protect its content.

    Source: AWS, "Create a signed AWS API request" (Signature Version 4).
    """
    address = urlsplit(bucket.endpoint)
    stamp, content = moment.strftime("%Y%m%dT%H%M%SZ"), hashlib.sha256(request.body).hexdigest()
    headers = {"host": address.netloc, "x-amz-content-sha256": content, "x-amz-date": stamp}
    if bucket.session:
        headers["x-amz-security-token"] = bucket.session
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join((request.method, address.path + request.path, "", lines, names, content))
    scope = f"{stamp[:8]}/{bucket.region}/s3/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{bucket.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    credential = f"{_ALGORITHM} Credential={bucket.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    del headers["host"]  # every HTTP client sends it
    return {**headers, "authorization": credential}


def error_of(answer: HttpAnswer) -> tuple[str, str]:
    """Code and message of an S3 error; both are "" where the response is not one of S3."""
    code, message = _CODE.search(answer.body), _MESSAGE.search(answer.body)
    return (code[1].decode() if code else ""), (message[1].decode(errors="replace") if message else "")

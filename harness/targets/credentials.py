"""What proves to a platform who asks: a bearer token, header fields, cookies, a client's certificate. Never recorded.

Files are named and not held: projected tokens and sessions are renewed during a test.
"""

import re
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.cookiejar import LoadError, MozillaCookieJar
from pathlib import Path
from urllib.request import Request

from harness import reading
from harness.model.errors import ConfigError
from harness.model.units import counted
from harness.targets import token_command
from harness.targets.kube_service import is_kube_service, same_origin
from harness.targets.token_command import BEFORE_EXPIRY_S, RUN_EVERY_S, expiry, one_line

_MOST_BYTES = 2**20
_READ_EVERY_S = 30.0
_READ_AFTER_REFUSAL_S = 1.0
_RUN_AFTER_REFUSAL_S = 5.0
_FIELD = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)")
_OURS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"})
_SECRET_FIELD = re.compile(r"auth|token|key|secret|cookie|session|password", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the user gave, for the requests to one platform.

    Attributes:
        token: bearer token; "" for none, or where a file is named.
        token_file: file with the bearer token; "" for none.
        headers: (name, value) of more header fields, as ``kubeflow-userid``.
        cookie_file: cookies of a browser's session, in Netscape's format; "" for none.
        certificate: PEM file with the client's certificate (and key, if `key` is ""); "" for none.
        key: PEM file with its key.
        authorities: PEM file with the certificate authorities to trust; "" trusts those of the system.
        token_command: prints the bearer token, or a newer one than `token`, and in a second line when it expires (in
            seconds since 1970) where that is known; none where nothing does.
        token_expires_s: when `token` expires, likewise; None where only the token itself may say so.
    """

    token: str = ""
    token_file: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    cookie_file: str = ""
    certificate: str = ""
    key: str = ""
    authorities: str = ""
    token_command: tuple[str, ...] = ()
    token_expires_s: float | None = None

    def __bool__(self) -> bool:
        """Whether they prove anything."""
        proofs = (self.token, self.token_file, self.headers, self.cookie_file, self.certificate, self.token_command)
        return any(proofs)

    def fields(self, host: str) -> dict[str, str]:
        """The header fields for requests to `host`; reads the files.

        Without a `token` the command is run. It takes seconds, for which no arrival can wait: a token that it printed
        in this process is used until shortly before its expiry, or for two minutes where that is not known.

        Raises:
            ConfigError: a file can't be read or is not what it should be, or the command fails.
        """
        fields = dict(self.headers)
        token = one_line(self.token, "PIPESWARM_TOKEN") or _token_in(self.token_file)
        if token := token or token_command.current(self.token_command):
            fields["Authorization"] = f"Bearer {token}"
        if cookies := _cookies_for(host, self.cookie_file):
            fields["Cookie"] = cookies
        return fields

    def secrets(self, host: str) -> Iterator[str]:
        """What must not be recorded: of all fields whose name says so, the values.

        Raises:
            ConfigError: see `fields`.
        """
        for name, value in self.fields(host).items():
            if _SECRET_FIELD.search(name):
                yield value.removeprefix("Bearer ")

    def prepare(self, context: ssl.SSLContext) -> None:
        """Have a TLS context trust the authorities and show the client's certificate.

        Raises:
            ConfigError: a file can't be read, or holds no certificate or key.
        """
        try:
            if self.authorities:
                context.load_verify_locations(cafile=self.authorities)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--ca-file {self.authorities}: {_reason(error)}", "give certificates in PEM") from error
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None, password=_refuse_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"--client-certificate {self.certificate}: {_reason(error, self.key or self.certificate)}",
                "give a certificate in PEM, and its key, without a password, in --client-key",
            ) from error


class HeaderFields:
    """The header fields of `credentials` for `host`, read again every 30 seconds, and soon after a 401.

    A command takes a second, so that it runs less often: every two minutes, and before the token's own expiry. What can
    no longer be read leaves the fields as they were. `spawn` runs a command beside the request that finds them old.

    Raises:
        ConfigError: they can't be read at the start.
    """

    def __init__(
        self,
        credentials: Credentials,
        host: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        now: Callable[[], float] = time.time,
        spawn: Callable[[Callable[[], None]], object] = lambda read: read(),
    ) -> None:
        self._credentials = replace(credentials, token="") if credentials.token_command else credentials
        self._host = host
        self._clock = clock
        self._now = now
        self._spawn = spawn
        self._by_command = bool(credentials.token_command)
        self._fields = credentials.fields(host)
        self._expires_s = _token_expiry(credentials)
        renewed = credentials.token_file or credentials.cookie_file or credentials.token_command
        self._read_s = clock() if renewed else float("inf")
        self._due_s = self._read_s + self._good_for_s()

    def current(self) -> dict[str, str]:
        """The fields; the same object while nothing has changed."""
        if self._clock() >= self._due_s:
            self._read_again()
        return self._fields

    def refused(self) -> None:
        """The platform has answered 401: there may be something newer."""
        least_s = _RUN_AFTER_REFUSAL_S if self._by_command else _READ_AFTER_REFUSAL_S
        if self._clock() - self._read_s >= least_s:
            self._read_again()

    def _good_for_s(self) -> float:
        if not self._by_command:
            return _READ_EVERY_S
        left_s = RUN_EVERY_S if self._expires_s is None else self._expires_s - self._now() - BEFORE_EXPIRY_S
        return max(_RUN_AFTER_REFUSAL_S, min(left_s, RUN_EVERY_S))

    def _read_again(self) -> None:
        self._read_s = self._clock()
        self._due_s = float("inf")  # requests that come meanwhile don't read, too
        if self._by_command:
            self._spawn(self._read)
        else:
            self._read()

    def _read(self) -> None:
        try:
            self._fetch()
        finally:
            self._due_s = self._clock() + self._good_for_s()

    def _fetch(self) -> None:
        token_command.forget(self._credentials.token_command)
        try:
            fields = self._credentials.fields(self._host)
        except ConfigError:
            return
        self._expires_s = _token_expiry(self._credentials)
        if fields != self._fields:
            self._fields = fields


def for_host(host: str, given_for: str, credentials: Credentials) -> Credentials:
    """The credentials if `host` has the origin that they were given for, otherwise none.

    The host of a test may come from a web form that anyone can post; credentials never do.
    """
    return credentials if same_origin(host, given_for) else Credentials()


def for_folder(host: str, given_for: str, credentials: Credentials) -> Credentials:
    """The credentials for the `host` that a run folder names.

    Raises:
        ConfigError: they were given for another one: the folder may come from anybody. To services of a cluster the
            kubeconfig gives access, so that these are always confirmed.
    """
    if (credentials or is_kube_service(host)) and not same_origin(host, given_for):
        what = "the token" if credentials else "what the kubeconfig proves"
        raise ConfigError(
            f"{what} is not sent to {host}, which only the run folder names",
            f"if it is your platform, add --host {host}",
        )
    return credentials


def parse_field(text: str) -> tuple[str, str]:
    """``NAME: VALUE`` as (name, value).

    Raises:
        ConfigError: it is no header field, or one that Pipeswarm writes itself.
    """
    match = _FIELD.fullmatch(text)
    if not match:
        raise ConfigError(
            "this is not a header field", "write it as 'NAME: VALUE', without semicolons; cookies go into --cookie-file"
        )
    if match["name"].lower() in _OURS:
        raise ConfigError(f"the header {match['name']} is written by Pipeswarm", "leave it out")
    return match["name"], match["value"]


def _token_in(file: str) -> str:
    if not file:
        return ""
    what = f"the token file {file}"
    with reading.readable(what, "check --token-file"):
        return one_line(reading.as_text(reading.read_bytes(Path(file), _MOST_BYTES), what), what)


def _token_expiry(given: Credentials) -> float | None:
    """When the token in use expires, as far as anybody says."""
    if not given.token and (printed := token_command.printed(given.token_command)):
        return printed.expires_s
    return given.token_expires_s or expiry(given.token)


def _cookies_for(host: str, file: str) -> str:
    if not file:
        return ""
    jar = MozillaCookieJar(file)
    with reading.readable(f"--cookie-file {file}", "check --cookie-file"):
        reading.read_bytes(Path(file), _MOST_BYTES)
    try:
        with warnings.catch_warnings(action="ignore"):  # the library calls a damaged file its own bug
            jar.load(ignore_discard=True, ignore_expires=True)
    except (LoadError, UnicodeDecodeError):
        raise ConfigError(
            f"--cookie-file {file} is not in Netscape's format", "browser extensions and 'curl -c' write it"
        ) from None
    for cookie in jar:
        cookie.expires = cookie.expires or None  # curl writes 0 for a session's
    request = Request(host if "://" in host else f"https://{host}")  # noqa: S310  # only asked for its cookies
    unfit = {
        "expired": sum(cookie.is_expired() for cookie in jar),
        "only for https": sum(cookie.secure for cookie in jar) if request.type == "http" else 0,
    }
    jar.add_cookie_header(request)
    found = request.get_header("Cookie") or ""
    if not found:
        why = ", ".join(f"{counted(count, 'cookie')} {what}" for what, count in unfit.items() if count)
        raise ConfigError(
            f"--cookie-file {file} has no cookie for {host}{f' ({why})' if why else ''}",
            "log in with a browser at this very address, and export its cookies again",
        )
    return found


def _reason(error: Exception, key: str = "") -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the key in {key} is not that of this certificate"
        return f"there is no certificate in it, or no key in {key}" if key else "there is no certificate in it"
    return getattr(error, "strerror", None) or str(error)


def _refuse_password() -> str:
    raise ValueError("the key has a password")

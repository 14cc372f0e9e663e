"""Requests to a Kubernetes API, configured and authenticated by the official client, with bodies as plain JSON.

The client's models cost ten times the CPU and memory of the JSON they are built from, and a test creates 50,000 pods.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes import renewal
from harness.collectors.source_health import UnreachableError
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.plan import environment
from harness.plan.whole_answer import lines_of, read_whole, read_within_bounds

_UNAUTHORIZED = 401
_WHOLE = "application/json"
_METADATA = f"{_WHOLE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_OF_LIST = f"{_WHOLE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NAME_IN_PATH = re.compile(r"/(nodes|pods|workflows)/[^/]+")  # a figure for each would let live views grow
_GRACE_S, _ANSWER_S = 5.0, 60.0
_CALL_TIMEOUTS_S = (10.0, 60.0)  # for a connection, for an answer
_TRY = "try kubectl get nodes"
_QUIET_S = 90.0  # a watch without any data for so long, not even a bookmark, is considered dead


class KubeApi:
    """The API server of the kubeconfig, or of this pod's service account. Shared by threads.

    Raises:
        ConfigError: the kubeconfig has no context of the given name.
    """

    def __init__(self, settings: ObserverSettings, journal: Journal) -> None:
        self._settings = settings
        self._journal = journal
        self._lock = threading.Lock()
        self._client: Any = None
        self._context_namespace = ""
        self._streams: set[Stream] = set()
        self._spacing_s = 1.0 / settings.kube_requests_per_s
        self._next_s = 0.0
        if settings.kube_context:  # report a mistyped name now; other failures do not prevent the start
            with suppress(UnreachableError):
                self._connected()

    @property
    def context_namespace(self) -> str:
        """The namespace of the kubeconfig's context; "" without one."""
        return self._context_namespace

    def get(self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False) -> dict[str, Any]:
        """One object or list, complete or without specification and status.

        Raises:
            UnreachableError: there is no access, no response, or the response is an error.
        """
        accept = _METADATA_OF_LIST if metadata_only else _WHOLE
        response = self._request(path, query or {}, self._settings.answer_timeout_s, accept)
        try:
            parsed = orjson.loads(read_whole(response, self._settings.answer_timeout_s))
        except (orjson.JSONDecodeError, urllib3.exceptions.HTTPError) as error:
            raise UnreachableError(f"GET {path}: the response can't be read: {error}") from error
        if not isinstance(parsed, dict):
            raise UnreachableError(f"GET {path}: the response is not a JSON object")
        return parsed

    def get_text(self, path: str, query: Mapping[str, str]) -> str:
        """A body that is not JSON, such as a container's log.

        Raises:
            UnreachableError: as in `get`.
        """
        response = self._request(path, query, self._settings.answer_timeout_s, "*/*")
        try:
            return read_whole(response, self._settings.answer_timeout_s).decode(errors="replace")
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"GET {path}: the response can't be read: {error}") from error

    def watch(self, path: str, query: Mapping[str, str], *, metadata_only: bool = False) -> "Stream":
        """The changes since a resource version, as they happen.

        Raises:
            UnreachableError: as in `get`.
        """
        accept = _METADATA if metadata_only else _WHOLE
        # The server ends it by itself in time, or is considered dead.
        answer_s = min(float(query.get("timeoutSeconds", _QUIET_S)) + _GRACE_S, _QUIET_S)
        stream = Stream(path, self._request(path, {**query, "watch": "true"}, answer_s, accept), self._streams)
        with self._lock:
            self._streams.add(stream)
        return stream

    def interrupt(self) -> None:
        """End all open watches."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.interrupt()

    def _request(self, path: str, query: Mapping[str, str], answer_s: float, accept: str) -> urllib3.BaseHTTPResponse:
        response = self._send(path, query, answer_s, accept)
        if response.status == _UNAUTHORIZED:
            # The token has expired: read the kubeconfig again, which may hold a new one.
            with self._lock:
                self._client = None
            response = self._send(path, query, answer_s, accept)
        if response.status != 200:
            raise UnreachableError(f"GET {path}: {response.status} {_error_text(response)}", response.status)
        return response

    def _send(self, path: str, query: Mapping[str, str], answer_s: float, accept: str) -> urllib3.BaseHTTPResponse:
        self._wait_for_turn()
        client = self._connected()
        headers = {"Accept": accept, "User-Agent": "pipeswarm-observer", **client.default_headers}
        client.update_params_for_auth(headers, [], ["BearerToken"])
        endpoint = _NAME_IN_PATH.sub(r"/\1/*", path)
        self._journal.count(f"kubernetes {'WATCH' if 'watch' in query else 'GET'} {endpoint}")
        try:
            response: urllib3.BaseHTTPResponse = client.rest_client.pool_manager.request(
                "GET",
                f"{client.configuration.host}{path}" + (f"?{urlencode(query)}" if query else ""),
                headers=headers,
                timeout=urllib3.Timeout(connect=self._settings.connect_timeout_s, read=answer_s),
                retries=False,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"{client.configuration.host} does not answer: {error}") from error
        return response

    def _wait_for_turn(self) -> None:
        with self._lock:
            now_s = time.monotonic()
            turn_s = max(self._next_s, now_s)
            self._next_s = turn_s + self._spacing_s
        if turn_s > now_s:
            time.sleep(turn_s - now_s)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client, self._context_namespace = self._connect()
            return self._client

    def _connect(self) -> tuple[Any, str]:
        return connect(self._settings.kube_context, self._settings.kubeconfig)


class Stream:
    """An open watch: iterating yields its parsed events until the server ends it."""

    def __init__(self, path: str, response: urllib3.BaseHTTPResponse, streams: "set[Stream]") -> None:
        self._path = path
        self._response = response
        self._streams = streams
        self._interrupted = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the events.

        Raises:
            UnreachableError: the connection was lost.
        """
        try:
            for line in filter(None, lines_of(self._response.stream(2**16))):
                event = orjson.loads(line)
                yield event.get("result", event)  # the Argo server wraps events
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            # AttributeError: urllib3 raises it for a connection that another thread has closed.
            if not self._interrupted:
                raise UnreachableError(f"the watch of {self._path} was interrupted: {error}") from error
        finally:
            self._streams.discard(self)
            self._response.close()

    def interrupt(self) -> None:
        """End the watch; called from another thread."""
        self._interrupted = True
        try:
            self._response.shutdown()
        except (ValueError, RuntimeError, OSError):
            return  # it has already ended


def connect(kube_context: str = "", kubeconfig: str | None = None) -> tuple[Any, str]:
    """The official client's connection, and the namespace of the context ("": the current one).

    Raises:
        ConfigError: the kubeconfig has no context of the given name.
        UnreachableError: there is no usable kubeconfig and no service account.
    """
    from kubernetes import client, config
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigLoader, KubeConfigMerger

    # The client would take the variable as it was when its package was imported.
    path = kubeconfig or environment.kubeconfig()
    try:
        contexts, current = config.list_kube_config_contexts(path)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        if kubeconfig or kube_context:
            raise UnreachableError(f"the kubeconfig can't be used: {error}") from error
        return _in_cluster(client, config, ConfigException, error)
    named = next((context for context in contexts if context["name"] == kube_context), None)
    if kube_context and named is None:
        names = ", ".join(str(context["name"]) for context in contexts)
        raise ConfigError(f"the kubeconfig has no context '{kube_context}'", f"contexts are: {names}")
    configuration = client.Configuration()
    try:
        read = KubeConfigMerger(path or KUBE_CONFIG_DEFAULT_LOCATION).config
        renewal.use(KubeConfigLoader(read, active_context=kube_context or None), configuration)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise UnreachableError(f"the kubeconfig can't be used: {error}") from error
    return client_of(configuration), str(((named or current).get("context") or {}).get("namespace") or "")


def _in_cluster(client: Any, config: Any, refused: type[Exception], why: Exception) -> tuple[Any, str]:
    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except refused:
        raise UnreachableError(f"there is no kubeconfig ({why}), and this process does not run in a cluster") from why
    return client_of(configuration), ""


def client_of(configuration: Any) -> Any:
    """The official client, which reads within bounds and goes through the environment's proxy."""
    from kubernetes import client

    if proxy := environment.proxy_for(configuration.host):
        # The official client gives these to urllib3 and, in small letters, to websockets.
        configuration.proxy = str(proxy)
        configuration.proxy_headers = {name.lower(): value for name, value in proxy.headers.items()} or None
    api = client.ApiClient(configuration)
    read_within_bounds(api.rest_client.pool_manager)
    return api


def listed(call: Callable[..., Any], *given: object, **named: Any) -> list[dict[str, Any]]:
    """The objects of a list that the official client asks for, as plain JSON instead of its models.

    Raises:
        ApiException: it is refused.
        urllib3.exceptions.HTTPError: it can't be read, or is no list.
    """
    try:
        items: list[dict[str, Any]] = orjson.loads(read_whole(call(*given, **named), _ANSWER_S))["items"]
    except (LookupError, TypeError, ValueError) as error:
        raise urllib3.exceptions.HTTPError(f"the answer is no list of objects: {error}") from error
    return items


def _error_text(response: urllib3.BaseHTTPResponse) -> str:
    """The message of the API's Status object, or the start of the body."""
    try:
        return str(orjson.loads(response.data)["message"])
    except (ValueError, KeyError, TypeError):
        return response.data[:300].decode(errors="replace").strip()


class CoreApi:
    """Nodes, pods and events of the cluster of a kubeconfig's context ("": its current one), as plain JSON.

    Raises:
        ConfigError: the kubeconfig can't be used.
        TargetUnreachableError: of the methods: the API server refuses or does not answer.
    """

    def __init__(self, context: str) -> None:
        from kubernetes import client

        try:
            connected, _ = connect(context)
        except UnreachableError as error:
            raise ConfigError(str(error), "set KUBECONFIG, or give --kube-context") from error
        self.core: Any = client.CoreV1Api(connected)

    def nodes(self, **selectors: str) -> list[dict[str, Any]]:
        """The nodes."""
        return self.send(partial(listed, self.core.list_node), **selectors)  # type: ignore[no-any-return]

    def items(self, kind: str, namespace: str = "", **selectors: str) -> list[dict[str, Any]]:
        """The objects of a kind that has namespaces, in one or ("") in all."""
        place, given = (f"namespaced_{kind}", (namespace,)) if namespace else (f"{kind}_for_all_namespaces", ())
        call = partial(listed, getattr(self.core, f"list_{place}"))
        return self.send(call, *given, **selectors)  # type: ignore[no-any-return]

    @staticmethod
    def send(call: Callable[..., Any], *given: object, hint: str = _TRY, **selectors: str) -> Any:
        """What a call of the client returns; the exception of a refusal, for which the `hint` is, is the cause."""
        from kubernetes.client.exceptions import ApiException

        try:
            return call(*given, **selectors, _preload_content=False, _request_timeout=_CALL_TIMEOUTS_S)
        except ApiException as error:
            said = f"the Kubernetes API refused: {error.status} {said_by(error)}"
            raise TargetUnreachableError(said, hint) from error
        except urllib3.exceptions.HTTPError as error:
            raise TargetUnreachableError(f"the Kubernetes API does not answer: {error}", _TRY) from error


def said_by(error: Any) -> str:
    """The message of the Status that an exception of the client holds, or its reason."""
    try:
        return str(orjson.loads(error.body or b"")["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return str(error.reason)

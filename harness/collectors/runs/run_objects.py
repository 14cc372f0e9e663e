"""The API that shows runs as objects: a Kubernetes API, or an Argo server, which passes a cluster's on."""

from collections.abc import Mapping
from typing import Any

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi, Stream, client_of
from harness.targets.kube_service import KubeService, is_kube_service

_PREFIX = "listOptions."
_UNKNOWN_TO_SERVER = "allowWatchBookmarks"
_METADATA, _WITHOUT_SPEC = "metadata,items.metadata", "-items.spec"
_METADATA_OF_EVENT, _EVENT_WITHOUT_SPEC = "result.type,result.object.metadata", "-result.object.spec"


class HostApi(KubeApi):
    """The Kubernetes API at the platform's own address with the credentials for it, or a service of the cluster."""

    def _connect(self) -> tuple[Any, str]:
        from kubernetes import client

        settings = self._settings
        if is_kube_service(settings.host):
            return self._through_proxy()
        configuration = client.Configuration(host=settings.host.rstrip("/"))
        configuration.verify_ssl = settings.verify_tls
        given = settings.credentials
        configuration.ssl_ca_cert = given.authorities or None
        configuration.cert_file, configuration.key_file = given.certificate or None, given.key or None
        api = client_of(configuration)
        for name, value in given.fields(settings.host).items():
            api.set_default_header(name, value)
        return api, settings.namespace

    def _through_proxy(self) -> tuple[Any, str]:
        api, _ = super()._connect()
        api.configuration.host += KubeService.parse(self._settings.host).proxied
        for name, value in self._settings.credentials.headers:
            api.set_default_header(name, value)
        return api, self._settings.namespace


class ServerApi(HostApi):
    """An Argo server.

    Source: https://argo-workflows.readthedocs.io/en/latest/swagger/ (``fields`` and ``listOptions`` of workflows).

    Args:
        settings: of the observer.
        journal: counts the requests.
        stream: path of the changes.
    """

    def __init__(self, settings: ObserverSettings, journal: Journal, stream: str) -> None:
        super().__init__(settings, journal)
        self._stream = stream

    def get(self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False) -> dict[str, Any]:
        """See `KubeApi.get`."""
        fields = {"fields": _METADATA if metadata_only else _WITHOUT_SPEC}
        return super().get(path, _as_options(query or {}) | fields)

    def watch(self, path: str, query: Mapping[str, str], *, metadata_only: bool = False) -> Stream:  # noqa: ARG002  # the path of the list
        """See `KubeApi.watch`."""
        fields = {"fields": _METADATA_OF_EVENT if metadata_only else _EVENT_WITHOUT_SPEC}
        return super().watch(self._stream, _as_options(query) | fields)


def _as_options(query: Mapping[str, str]) -> dict[str, str]:
    return {f"{_PREFIX}{name}": value for name, value in query.items() if name != _UNKNOWN_TO_SERVER}

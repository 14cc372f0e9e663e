"""How much of their resource quotas the runs' namespaces use, asked for again and again.

A pod that a quota refuses leaves no event: only its workflow's node says so, and few workflows are read.
"""

from collections.abc import Iterable

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.source_health import UnreachableError
from harness.model.phases import NOT_REACHABLE, QUOTA_AMOUNT
from harness.model.records import Sample
from harness.model.units import parse_quantity

EVERY_S = 3.0
SOURCE = "kubernetes resource quotas"
_REFUSED = frozenset({403, 404})


class Quotas:
    """Records an amount when it is new or has changed.

    Args:
        api: of the cluster.
        journal: takes the samples.
        namespaces: of the runs.
    """

    def __init__(self, api: KubeApi, journal: Journal, namespaces: Iterable[str]) -> None:
        self._api = api
        self._journal = journal
        self._namespaces = list(dict.fromkeys(namespaces))
        self._known: dict[tuple[tuple[str, str], ...], float] = {}

    def read(self) -> None:
        """Read the quotas of all namespaces; one that refuses is not asked again.

        Raises:
            UnreachableError: the API server does not answer.
        """
        for namespace in list(self._namespaces):
            try:
                listed = self._api.get(f"/api/v1/namespaces/{namespace}/resourcequotas")
            except UnreachableError as error:
                if error.status not in _REFUSED:
                    raise
                self._namespaces.remove(namespace)
                self._journal.note(NOT_REACHABLE, SOURCE, str(error))
            else:
                for quota in listed.get("items") or ():
                    self._record(namespace, quota)

    def _record(self, namespace: str, quota: Manifest) -> None:
        status = quota.get("status") or {}
        for kind in ("hard", "used"):
            for resource, amount in (status.get(kind) or {}).items():
                labels = {"namespace": namespace, "quota": str(quota["metadata"]["name"]), "resource": resource}
                labels["type"] = kind
                value, key = parse_quantity(str(amount)), tuple(labels.items())
                if self._known.get(key) != value:
                    self._known[key] = value
                    self._journal.write(Sample(QUOTA_AMOUNT, self._journal.now(), value, labels))

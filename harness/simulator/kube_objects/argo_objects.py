"""Argo's workflows at the Kubernetes API: made, changed and deleted by clients, shown with their nodes."""

import sys
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from harness.simulator.argo.cron import is_due
from harness.simulator.argo.nodes import Run
from harness.simulator.argo.operator import Labelled
from harness.simulator.argo.support import UnsupportedError, demand_supported, demand_supported_cron, schedules_of
from harness.simulator.argo.templates import CLUSTER, whole
from harness.simulator.kube_api import ApiError, Manifest
from harness.simulator.kube_api.patches import merge
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_objects.config_maps import OF_PLATFORM, config_map
from harness.simulator.kube_objects.view import KubernetesView

_TEMPLATES = ("WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
_LABELS = "workflows.argoproj.io/"


class ArgoObjects:
    """Takes what clients write, and keeps the store's objects up to date.

    Args:
        view: of the platform whose cluster, controller's client and limits these workflows share.
    """

    def __init__(self, view: KubernetesView) -> None:
        self._view = view
        self._argo, self._controller = view.platform.argo, view.platform.controller
        self._store = view.store
        self._types: Mapping[str, Resource] = {resource.kind: resource for resource in view.store.resources}
        self._said: set[tuple[str, ...]] = set()  # fields that are ignored: each combination is named once
        self._argo.use(self, self._today)

    def create(self, kind: str, namespace: str, document: Manifest, *, dry: bool = False) -> None:
        """Take a new object, whose metadata the server has completed, and begin it if it is a workflow.

        Raises:
            ApiError: 422 for what the simulated platform can't run, 404 for a template that does not exist.
        """
        name, spec = document["metadata"]["name"], document.get("spec", {} if kind == "ConfigMap" else None)
        if not isinstance(spec, Mapping):
            raise _invalid(kind, name, "Required value")
        if kind == "Workflow":
            spec = self._with_template(namespace, spec)
        self._check(kind, name, spec)
        if dry:
            return
        if kind == "Workflow":
            self._argo.add(document, spec)
        else:
            self._store.put(self._types[kind].plural, namespace, name, document)
        if kind == "CronWorkflow":
            self._view.platform.loop.at(self._next_minute(), self._tick, namespace, name, document["metadata"]["uid"])

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> bool:
        """Shut a workflow down, or change a template or a client's ConfigMap; false if it is none of these.

        Raises:
            ApiError: 403 for any other change of a workflow, 422 for what the simulated platform can't run.
        """
        if (kind := self._document_kind(plural, name)) is not None:
            before = self._store.get(self._types[kind], namespace, name)
            assert before is not None
            after = merge(deepcopy(before.snapshot), patch)
            self._check(kind, name, after.get("spec", {}))
            self._store.put(plural, namespace, name, after)
            return True
        run = self._controller.workflows.get((namespace, name)) if plural == "workflows" else None
        return isinstance(run, Run) and self._shut_down(run, patch)

    def _document_kind(self, plural: str, name: str) -> str | None:
        """The kind of an object that is kept as clients write it: a template or a ConfigMap; none of others."""
        kept = {self._types[kind].plural: kind for kind in (*_TEMPLATES, "ConfigMap")}
        return None if plural == "configmaps" and name in OF_PLATFORM else kept.get(plural)

    def _shut_down(self, run: Run, patch: Mapping[str, Any]) -> bool:
        others = [key for key in patch if key != "spec"] + [key for key in patch.get("spec", {}) if key != "shutdown"]
        how = patch.get("spec", {}).get("shutdown")
        if others or how not in {"Terminate", "Stop"}:
            what = f"spec.shutdown to {how!r}" if not others else ", ".join(others)
            message = f'workflows "{run.name}" is forbidden: the simulated platform can\'t change {what}'
            raise ApiError(403, "Forbidden", message, {"name": run.name, "kind": "workflows"})
        if not run.over:
            self._argo.shut_down(run, how)
            self._view.workflow_changed(run)
        return True

    def delete(self, plural: str, namespace: str, name: str) -> bool:
        """Delete a template or a client's ConfigMap; false for other objects."""
        if self._document_kind(plural, name) is None:
            return False
        self._store.delete(plural, namespace, name)
        return True

    def read_map(self, namespace: str, name: str) -> Labelled | None:
        """See `Objects.read_map`."""
        stored = self._store.get(self._types["ConfigMap"], namespace, name)
        shown: Any = stored.snapshot if stored is not None and isinstance(stored.snapshot, dict) else None
        return (shown["metadata"].get("labels") or {}, shown.get("data") or {}) if shown is not None else None

    def write_map(self, namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> None:
        """See `Objects.write_map`."""
        shown = config_map(name, namespace, self._view.calendar.stamp(0.0), data, labels=dict(labels))
        self._store.put("configmaps", namespace, name, shown)

    def template(self, namespace: str, scope: str, name: str) -> Mapping[str, Any] | None:
        """See `Objects.template`."""
        kind = "ClusterWorkflowTemplate" if scope == CLUSTER else "WorkflowTemplate"
        stored = self._store.get(self._types[kind], "" if scope == CLUSTER else namespace, name)
        spec: Mapping[str, Any] | None = stored.manifest(self._types[kind])["spec"] if stored is not None else None
        return spec

    def _check(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Refuse what can't be run; a ConfigMap is not run.

        Raises:
            ApiError: 422, naming the field.
        """
        if kind == "ConfigMap":
            return
        try:
            check = demand_supported_cron if kind == "CronWorkflow" else demand_supported
            ignored = tuple(check(spec, ignore=self._view.platform.profile.ignore))
            if ignored and ignored not in self._said:
                self._said.add(ignored)
                print(f"{kind} {name}: ignored, without a bearing on times: {', '.join(ignored)}", file=sys.stderr)
        except UnsupportedError as error:
            raise _invalid(kind, name, error.why, error.field) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _invalid(kind, name, f"the simulated platform can't read it: {error!r}") from error

    # --- schedules ------------------------------------------------------------------------------------------------

    def _next_minute(self) -> float:
        at = self._today()
        return (
            self._view.platform.loop.now
            + (at.replace(second=0, microsecond=0) + timedelta(minutes=1) - at).total_seconds()
        )

    def _today(self) -> datetime:
        loop, calendar = self._view.platform.loop, self._view.calendar
        return datetime.fromtimestamp(calendar.origin_at / 1e9 + loop.now, UTC)

    def _tick(self, namespace: str, name: str, uid: str) -> None:
        """Start a CronWorkflow's workflow if one is due in this minute."""
        stored = self._store.get(self._types["CronWorkflow"], namespace, name)
        document = stored.manifest(self._types["CronWorkflow"]) if stored is not None else {}
        if not document or document["metadata"]["uid"] != uid:
            return
        loop, spec = self._view.platform.loop, document["spec"]
        loop.at(self._next_minute() + 0.001, self._tick, namespace, name, uid)
        if not spec.get("suspend") and any(is_due(each, self._today()) for each in schedules_of(spec)):
            self._start(namespace, name, spec)

    def _start(self, namespace: str, name: str, spec: Mapping[str, Any]) -> None:
        label = {f"{_LABELS}cron-workflow": name}
        going = [
            run
            for run in self._controller.workflows.values()
            if isinstance(run, Run)
            and not run.over
            and (run.manifest["metadata"].get("labels") or {}).get(f"{_LABELS}cron-workflow") == name
        ]
        policy = spec.get("concurrencyPolicy") or "Allow"
        if going and policy == "Forbid":
            return
        for run in going if policy == "Replace" else ():
            self._argo.shut_down(run, "Terminate")
        at = self._view.calendar.stamp(self._view.platform.loop.now)
        metadata = {
            "name": f"{name}-{int(self._today().timestamp())}", "namespace": namespace, "labels": label,
            "uid": f"{name}-{at}", "creationTimestamp": at,
        }  # fmt: skip
        self.create("Workflow", namespace, {"metadata": metadata, "spec": spec["workflowSpec"]})

    def _with_template(self, namespace: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return whole(spec, partial(self.template, namespace))
        except LookupError as error:
            of_cluster = spec["workflowTemplateRef"].get("clusterScope")
            resource = self._types["ClusterWorkflowTemplate" if of_cluster else "WorkflowTemplate"]
            raise ApiError(404, "NotFound", f'{resource.qualified} "{error.args[0]}" not found') from error


def _invalid(kind: str, name: str, why: str, field: str = "spec") -> ApiError:
    message = f'{kind}.argoproj.io "{name}" is invalid: {field}: {why}'
    cause = {"reason": "FieldValueInvalid", "message": why, "field": field}  # all that kubectl shows
    return ApiError(422, "Invalid", message, {"name": name, "group": "argoproj.io", "kind": kind, "causes": [cause]})

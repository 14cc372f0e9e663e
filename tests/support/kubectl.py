"""Ways of using a served platform: runs that are begun or over, their pods, pages."""

import time
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import kfp
from kubernetes import client as kubernetes

from tests.support.serving import Served


def started(pipelines: kfp.Client, training: Path) -> str:
    experiment = pipelines.create_experiment(f"e-{uuid4()}").experiment_id
    made = pipelines.run_pipeline(experiment, "run", pipeline_package_path=str(training), enable_caching=False)
    return str(made.run_id)


def finished(pipelines: kfp.Client, training: Path) -> str:
    run_id, deadline = started(pipelines, training), time.monotonic() + 30
    while pipelines.get_run(run_id).state not in {"SUCCEEDED", "FAILED"}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return run_id


def pods_of(core: kubernetes.CoreV1Api, run_id: str, **more: str) -> list[Any]:
    return list(core.list_namespaced_pod("kubeflow", label_selector=f"pipeline/runid={run_id}", **more).items)


def fetch(platform: Served, path: str) -> str:
    with urllib.request.urlopen(platform.url + path) as answer:
        return str(answer.read().decode())

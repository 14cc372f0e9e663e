"""A served platform with the clients that operators have."""

import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kfp
import pytest
from kubernetes import client as kubernetes
from kubernetes import config

from tests.support.kubectl import finished
from tests.support.serving import QUICK, Serve, Served


@pytest.fixture(scope="module")
def platform(serve: Serve) -> Served:
    return serve(profile=QUICK + "quota: {pods: 500}\n")


@pytest.fixture(scope="module")
def core(platform: Served) -> kubernetes.CoreV1Api:
    return kubernetes.CoreV1Api(config.new_client_from_config(platform.kubeconfig))


@pytest.fixture(scope="module")
def pipelines(platform: Served) -> kfp.Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=platform.url)


@pytest.fixture
def run(pipelines: kfp.Client, training: Path) -> str:
    """A run that is over."""
    return finished(pipelines, training)


@pytest.fixture(scope="module")
def kubectl(platform: Served) -> Iterator[Any]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")

    def call(*arguments: str) -> str:
        command = ["kubectl", "--kubeconfig", platform.kubeconfig, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call

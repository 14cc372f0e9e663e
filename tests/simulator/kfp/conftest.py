"""A served platform with an experiment and a pipeline, as the real kfp.Client sees it."""

import warnings
from pathlib import Path
from uuid import uuid4

import kfp
import pytest

from tests.support.serving import Served


@pytest.fixture(scope="module")
def client(served: Served) -> kfp.Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=served.url)


@pytest.fixture(scope="module")
def experiment(client: kfp.Client) -> str:
    return str(client.create_experiment(f"experiment-{uuid4()}").experiment_id)


@pytest.fixture(scope="module")
def version(client: kfp.Client, training: Path) -> tuple[str, str]:
    pipeline = client.upload_pipeline(str(training), f"training-{uuid4()}")
    versions = client.list_pipeline_versions(pipeline.pipeline_id).pipeline_versions
    return pipeline.pipeline_id, versions[0].pipeline_version_id

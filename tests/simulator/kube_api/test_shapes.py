"""Which representation of an object a client gets."""

import pytest

from harness.simulator.kube_api import ApiError
from harness.simulator.kube_api.shapes import Shape, negotiate
from tests.support.kube_cluster import types


@pytest.mark.parametrize(
    ("accept", "of_metadata"),
    [
        ("", ""),
        ("*/*", ""),
        ("application/vnd.kubernetes.protobuf,application/json", ""),
        ("application/json;stream=watch", ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", ""),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "meta.k8s.io/v1"),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v9,application/json", ""),
    ],
)
def test_the_first_representation_that_is_made_here_is_taken(accept: str, of_metadata: str) -> None:
    resource = types()[0]
    assert negotiate(accept, resource) == Shape(resource, of_metadata)


def test_other_representations_are_not_acceptable() -> None:
    with pytest.raises(ApiError) as refusal:
        negotiate("application/vnd.kubernetes.protobuf", types()[0])
    assert refusal.value.code == 406

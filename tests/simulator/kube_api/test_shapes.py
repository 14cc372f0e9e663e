"""Which representation of an object a client gets."""

import pytest

from harness.simulator.kube_api import ApiError
from harness.simulator.kube_api.shapes import MetadataOnly, Plain, negotiate
from tests.support.kube_cluster import types


@pytest.mark.parametrize(
    ("accept", "shape"),
    [
        ("", Plain),
        ("*/*", Plain),
        ("application/vnd.kubernetes.protobuf,application/json", Plain),
        ("application/json;stream=watch", Plain),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Plain),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", MetadataOnly),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v9,application/json", Plain),
    ],
)
def test_the_first_representation_that_is_made_here_is_taken(accept: str, shape: type) -> None:
    assert isinstance(negotiate(accept, types()[0]), shape)


def test_other_representations_are_not_acceptable() -> None:
    with pytest.raises(ApiError) as refusal:
        negotiate("application/vnd.kubernetes.protobuf", types()[0])
    assert refusal.value.code == 406

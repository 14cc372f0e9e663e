import pytest

from harness.model.errors import ConfigError
from harness.prepare.settings import (
    Resources,
    Retry,
    checked,
    gpus_of,
    images_of,
    pairs,
    placement_of,
    retry_of,
)


@pytest.mark.parametrize(
    "given",
    [
        {"selectors": ["pool"]},
        {"selectors": ["pool=a b"]},
        {"selectors": ["=a"]},
        {"selectors": ["pool=a", "pool=b"]},
        {"selectors": ["kubernetes.azure.com/scalesetpriority=regular"], "spot": "aks"},
        {"tolerations": ["a=b:Sometimes"]},
        {"tolerations": [":NoSchedule"]},
        {"affinity": [""]},
        {"affinity": ["a="]},
        {"affinity": ["!a=b"]},
        {"affinity": ["a>x"]},
        {"affinity": ["a>1,2"]},
        {"affinity": ["a=b@0"]},
        {"affinity": ["a=b@101"]},
        {"affinity": ["a=b@x"]},
        {"spot": "azure"},
    ],
)
def test_placement_that_kubernetes_would_refuse_is_refused(given):
    with pytest.raises(ConfigError, match=r"^--(node-selector|toleration|affinity|spot)"):
        placement_of(**{"selectors": [], "tolerations": [], "affinity": [], "spot": "", **given})


def test_a_label_twice_is_a_label():
    assert pairs("--label", ["a=b", "a=b", "c="]) == (("a", "b"), ("c", ""))


@pytest.mark.parametrize(
    ("text", "found"),
    [("", (None, "nvidia.com/gpu")), ("0", (0, "nvidia.com/gpu")), ("amd.com/gpu=2", (2, "amd.com/gpu"))],
)
def test_gpus_have_a_number_and_a_type(text, found):
    assert gpus_of(text) == found


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "amd.com/gpu=", "99999"])
def test_no_number_of_gpus_is_refused(text):
    with pytest.raises(ConfigError, match="--gpu"):
        gpus_of(text)


def test_retries_have_a_back_off():
    assert retry_of(5, "5m", 1.0, "1h") == Retry(5, 300.0, 1.0, 3600.0)
    assert retry_of(None, "5m", 1.0, "1h") is None


@pytest.mark.parametrize(
    "given",
    [
        (-1, "0", 2.0, "1h"),
        (1, "soon", 2.0, "1h"),
        (1, "0", 0.5, "1h"),
        (1, "0", float("nan"), "1h"),
        (1, "0", 2.0, ""),
    ],
)
def test_retries_out_of_range_are_refused(given):
    with pytest.raises(ConfigError, match=r"^--(retries|backoff)"):
        retry_of(*given)


@pytest.mark.parametrize("quantity", ["24G!", "-1", "0", "1e400", "4 GB"])
def test_no_quantity_is_refused_with_its_place(quantity):
    with pytest.raises(ConfigError, match=r"^options: memory request: "):
        checked(Resources(memory_request=quantity), "options")


@pytest.mark.parametrize("text", ["docker.io", "docker.io/="])
def test_half_an_image_map_is_refused(text):
    with pytest.raises(ConfigError, match="--image-map"):
        images_of([text])

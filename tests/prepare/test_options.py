import pytest

from harness.model.errors import ConfigError
from harness.prepare.options import parse_settings
from harness.prepare.settings import Preference, Retry, Settings, Toleration, placement_of


def test_a_text_is_the_options_without_hyphens_and_leaves_caching_alone():
    (found,) = parse_settings("task=train*, spot=aks,retries=5,backoff=5m,backoff-factor=1")
    placement = placement_of([], [], [], "aks")
    assert found == Settings(("train*",), caching=True, placement=placement, retry=Retry(5, 300.0, 1.0, 3600.0))


def test_values_may_contain_commas_and_equals_signs():
    (found,) = parse_settings("affinity=zone=a,b,toleration=sku=gpu:NoSchedule,toleration=x")
    assert found.placement.affinity == (Preference("zone", "In", ("a", "b")),)
    assert found.placement.tolerations == (Toleration("sku", "gpu", "NoSchedule"), Toleration("x", "", ""))


def test_settings_after_a_semicolon_are_for_other_steps():
    found = parse_settings("task=a,timeout=1m; task=b,timeout=2m;")
    assert [(each.tasks, each.timeout_s) for each in found] == [(("a",), 60), (("b",), 120)]
    assert parse_settings("") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spto=aks", "'spto=aks' is not a setting(.|\n)*settings are task, retries"),
        ("spot=aks,caching=keep", "'aks,caching=keep' is not a label"),
        ("caching=keep", "'caching=keep' is not a setting"),
        ("retries", "'retries' is not a setting"),
        ("retries=", "'retries=' is not a setting"),
        ("retries=many", "retries: invalid int value: 'many'"),
        ("retries=-1", "--retries: -1 is not a number of retries"),
        ("image-pull-policy=Sometimes", "image-pull-policy: invalid choice"),
        ("memory-request=24G!", "'24G!' is not a Kubernetes quantity"),
    ],
)
def test_what_is_no_setting_is_refused(text, says):
    with pytest.raises(ConfigError, match=says):
        parse_settings(text)

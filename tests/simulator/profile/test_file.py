import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import ConfigError
from harness.simulator.engine.distributions import Amount, Exponential, Fixed, Lognormal, Uniform
from harness.simulator.profile import Profile
from harness.simulator.profile.file import built_in, load_profile, parse_profile


@pytest.mark.parametrize("name", sorted(built_in()))
def test_built_in_profiles_can_be_read_and_have_a_title(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.title
    assert profile.pools


def test_an_empty_profile_is_a_plain_installation() -> None:
    assert parse_profile("", "x.yaml", "x") == Profile("x")


def test_durations_quantities_and_distributions_are_read() -> None:
    profile = parse_profile(
        """
        pools: [{name: a, cpu: 3500m, memory: 8Gi, taints: [{key: k, value: v}], labels: {x: y}}]
        autoscaler: {provisioning: {exponential: {mean: 2m}}}
        controller: {ttl_s: 1h}
        steps: [{match: "train*", duration: {uniform: [1s, 2m], parameter: rows, per: 100}, output: 5Mi}]
        """,
        "x.yaml",
        "x",
    )
    (pool,) = profile.pools
    assert (pool.cpu, pool.memory, pool.taints[0].key, pool.labels) == (3.5, 8 * 2**30, "k", {"x": "y"})
    assert profile.autoscaler is not None
    assert profile.autoscaler.provisioning.distribution == Exponential(120.0)
    assert profile.controller.ttl_s == 3600
    assert profile.steps[0].duration == Amount(Uniform(1.0, 120.0), "rows", 100.0, 1.0)
    assert profile.steps[0].output.distribution == Fixed(5 * 2**20)


@pytest.mark.parametrize(
    ("text", "where", "what", "hint"),
    [
        (
            "store: {product: ceph}",
            "x.yaml:1: store.product",
            "'ceph', not one of: seaweedfs, minio",
            "seaweedfs, minio",
        ),
        ("pools:\n  - name: a\n    cpus: 3", "x.yaml:3: pools[0].cpus", "unknown key", "did you mean 'cpu'?"),
        ("api: {qps: fast}", "x.yaml:1: api.qps", "not a number", "a number"),
        ("api:\n  latency: {lognormal: {median: 5s, p95: 1s}}", "x.yaml:2: api.latency", "median <= p95", "lognormal"),
        ("kubelet: {start: {uniform: [1s]}}", "x.yaml:1: kubelet.start", "uniform", "uniform: [1s, 4s]"),
        ("kubelet: {start: {per: 3, fixed: 1s}}", "x.yaml:1: kubelet.start", "need a 'parameter'", "write"),
        ("pools: 3", "x.yaml:1: pools", "not a list", "a list"),
        ("pools: [{cpu: 3}]", "x.yaml:1: pools[0].name", "missing", "add it"),
        ("store: {capacity: lots}", "x.yaml:1: store.capacity", "not a Kubernetes quantity", "500m"),
        ("store: {capacity: -1Gi}", "x.yaml:1: store.capacity", "below 0", "0 or more"),
        ("scheduler: {packing: 1}", "x.yaml:1: scheduler.packing", "not true or false", "true"),
        ("autoscaler: {expander: cheapest}", "x.yaml:1: autoscaler.expander", "not one of: least-waste", "price"),
        ("autoscaler: {scan_s: 0}", "x.yaml:1: autoscaler.scan_s", "not a number above 0", "above 0"),
        ("autoscaler: {failing: 1.2}", "x.yaml:1: autoscaler.failing", "not a number from 0 to 1", "0 to 1"),
        ("api: {qps: 0}", "x.yaml:1: api.qps", "not a number above 0", "above 0"),
        ("api: {burst: 0}", "x.yaml:1: api.burst", "not 1 or more", "1 or more"),
        ("api: {error_rate: .nan}", "x.yaml:1: api.error_rate", "not a number", "a number"),
        ("api: {latency: .inf}", "x.yaml:1: api.latency", "not a duration", "90s"),
        ("controller:\n  qps: 0", "x.yaml:2: controller.qps", "not a number above 0", "above 0"),
        ("controller: {workers: 0}", "x.yaml:1: controller.workers", "not 1 or more", "1 or more"),
        ("controller: {argo: '2.9'}", "x.yaml:1: controller.argo", "not one of: 4.0, 3.5", "one of"),
        ("agent: {workers: 0}", "x.yaml:1: agent.workers", "not 1 or more", "1 or more"),
        ("kubelet: {pull_bytes_per_s: 0}", "x.yaml:1: kubelet.pull_bytes_per_s", "not a number above 0", "above 0"),
        ("database:\n  capacity: 1Gi\n  used: 2Gi", "x.yaml:3: database.used", "more than the capacity", "capacity"),
        ("store: {used: 30Gi}", "x.yaml:1: store.used", "more than the capacity", "raise capacity"),
        ("store: {capacity: 0}", "x.yaml:1: store.capacity", "not a number above 0", "above 0"),
        ("steps: [{failing: 2}]", "x.yaml:1: steps[0].failing", "not a number from 0 to 1", "0 to 1"),
        ("steps: [{duration: {fixed: 2s, parameter: n, per: 0}}]", "x.yaml:1: steps[0].duration", "divided", "write"),
        (
            "steps: [{duration: {fixed: 2s, parameter: n, power: .nan}}]",
            "x.yaml:1: steps[0].duration",
            "power",
            "write",
        ),
        ("hetida: {runtime: {workers: 0}}", "x.yaml:1: hetida.runtime.workers", "not 1 or more", "1 or more"),
        ("hetida: {runtime: {balancing: x}}", "x.yaml:1: hetida.runtime.balancing", "not one of: random", "one of"),
        ("hetida: {adapters: [{id: a}, {id: a}]}", "x.yaml:1: hetida.adapters[1].id", "two adapters 'a'", "own name"),
        ("pools: []", "x.yaml:1: pools", "no pool", "add one"),
        ("pools:\n- {name: a}\n- {name: a}", "x.yaml:3: pools[1].name", "two pools 'a'", "its own name"),
        ("pools: [{name: a, cpu: 0}]", "x.yaml:1: pools[0].cpu", "not a number above 0", "above 0"),
        ("pools: [{name: a, cpu: 100m}]", "x.yaml:1: pools[0].cpu", "reserved for the node", "reserved_cpu"),
        ("pools: [{name: a, memory: 1Gi}]", "x.yaml:1: pools[0].memory", "reserved for the node", "reserved_memory"),
        ("pools:\n- name: a\n  max: 2\n  min: 3", "x.yaml:4: pools[0].min", "3 is more than max, 2", "raise max"),
        ("pools: [{name: a, min: 9}]", "x.yaml:1: pools[0].min", "9 is more than max, 3", "raise max"),
        (
            "autoscaler: {}\npools: [{name: a, initial: 4}]",
            "x.yaml:2: pools[0].initial",
            "more than max, 3",
            "raise max",
        ),
        (
            "pools: [{name: a, taints: [{key: k, effect: Nope}]}]",
            "x.yaml:1: pools[0].taints[0].effect",
            "not one of: NoSchedule",
            "NoExecute",
        ),
        ("faults: [{name: oom, strength: 0}]", "x.yaml:1: faults[0].strength", "not a number above 0", "above 0"),
        ("- a", "x.yaml:1: ", "not a mapping", "keys: "),
        ("a: [", "x.yaml:2", "not valid YAML", "fix the YAML"),
    ],
)
def test_errors_name_line_and_key(text: str, where: str, what: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_profile(text, "x.yaml", "x")
    assert error.value.message.startswith(where)
    assert what in error.value.message
    assert hint in error.value.hint


@given(st.floats(0.01, 1e3), st.floats(1, 10))
def test_a_lognormal_has_the_given_95th_percentile(median: float, factor: float) -> None:
    from random import Random

    distribution, random = Lognormal(median, median * factor), Random(1)
    draws = [distribution.sample(random) for _ in range(4000)]
    assert sum(draw <= median * factor * (1 + 1e-9) for draw in draws) / 4000 == pytest.approx(
        0.95, abs=0.02 if factor > 1.01 else 0.06
    )


def test_a_parameter_scales_an_amount_where_it_is_a_number() -> None:
    from random import Random

    amount = Amount(Fixed(2.0), "rows", 100.0, 0.5)
    draws = [amount.sample(Random(0), {"rows": rows}) for rows in (400, "400", True, None, -1)]
    assert draws == [4.0, 2.0, 2.0, 2.0, 2.0]

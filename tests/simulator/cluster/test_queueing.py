"""Pods on nodes are customers at servers: the cluster against Erlang C, Little's law, and a simpy model."""

from math import factorial
from random import Random

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator.cluster import Change, Cluster, Pod, Shape
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Profile
from tests.support.platforms import Journal, pool, profile


def run_pods(its_profile: Profile, jobs: list[tuple[float, Shape, float]]) -> tuple[list[Pod], Journal, Cluster]:
    """Pods that come at an instant, with a shape, and run for some seconds."""
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, its_profile, "0", journal)
    pods = []

    def running(seconds: float) -> object:
        return lambda pod: loop.after(seconds, cluster.kubelet.finish, pod)

    for number, (at, shape, seconds) in enumerate(jobs):
        pod = Pod(f"pod-{number}", "default", shape, (), on_running=running(seconds))  # type: ignore[arg-type]
        pods.append(pod)
        loop.at(at, cluster.create, pod)
    loop.run()
    return pods, journal, cluster


def poisson(count: int, rate: float, mean: float, seed: int) -> list[tuple[float, Shape, float]]:
    random, at, jobs = Random(seed), 0.0, []
    for _ in range(count):
        at += random.expovariate(rate)
        jobs.append((at, Shape(cpu=1000), random.expovariate(1 / mean)))
    return jobs


def erlang_c(servers: int, load: float) -> float:
    """The probability that a customer of M/M/c waits; `load` = arrival rate x mean service."""
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize(
    ("servers", "load"), [(4, 2.4), *(pytest.param(*each, marks=pytest.mark.soak) for each in ((1, 0.5), (10, 7.5)))]
)
def test_waiting_for_a_node_is_mmc(servers: int, load: float) -> None:
    pods, _, _ = run_pods(profile(pool(cpu=servers)), poisson(40_000, load, 1.0, seed=100 + servers))
    waits = [(pod.scheduled or 0.0) - pod.created for pod in pods]
    expected = erlang_c(servers, load) / (servers - load)
    assert sum(waits) / len(waits) == pytest.approx(expected, rel=0.08)
    assert sum(wait > 0 for wait in waits) / len(waits) == pytest.approx(erlang_c(servers, load), rel=0.05)


def test_the_same_as_simpy_to_the_microsecond() -> None:
    jobs = poisson(300, 3.0, 1.0, seed=1)
    environment = simpy.Environment()
    places, begun = simpy.Resource(environment, capacity=2), {}

    def customer(number: int, at: float, seconds: float):  # a simpy process
        yield environment.timeout(at)
        with places.request() as place:
            yield place
            begun[number] = environment.now
            yield environment.timeout(seconds)

    for number, (at, _, seconds) in enumerate(jobs):
        environment.process(customer(number, at, seconds))
    environment.run()
    pods, _, _ = run_pods(profile(pool(cpu=2)), jobs)
    assert [pod.scheduled for pod in pods] == pytest.approx([begun[number] for number in range(300)], abs=1e-6)


jobs_of_any_shape = st.lists(
    st.tuples(
        st.floats(0, 20),
        st.tuples(st.integers(0, 4000), st.integers(0, 16 * 2**30)).map(lambda wants: Shape(*wants)),
        st.floats(0, 5),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)
@given(jobs_of_any_shape, st.booleans(), st.integers(1, 4))
def test_no_pod_is_lost_no_node_is_overcommitted_and_littles_law_holds(
    jobs: list[tuple[float, Shape, float]], packing: bool, nodes: int
) -> None:
    from harness.simulator.profile import Scheduler

    its_profile = profile(pool(cpu=4, initial=nodes, max=nodes), scheduler=Scheduler(pod_s=0.0, packing=packing))
    pods, journal, cluster = run_pods(its_profile, jobs)
    assert all(pod.phase == "Succeeded" for pod in pods)
    for node in cluster.nodes.values():  # `Node.take` asserts on the way that nothing becomes negative
        assert (node.cpu_free, node.memory_free, node.pods_free) == (node.cpu, node.memory, node.pool.pods)
    # Little: the area under the number of pods in the cluster is the sum of their times in it.
    steps = [(pod.created, 1) for pod in journal.saw(Change.CREATED)]
    steps += [(pod.finished or 0.0, -1) for pod in journal.saw(Change.OVER)]
    area, inside, before = 0.0, 0, 0.0
    for at, step in sorted(steps):
        area += inside * (at - before)
        inside, before = inside + step, at
    assert area == pytest.approx(sum((pod.finished or 0.0) - pod.created for pod in pods), rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(jobs_of_any_shape)
def test_a_pod_that_fits_is_never_kept_waiting_by_the_ranking(jobs: list[tuple[float, Shape, float]]) -> None:
    """The lazy heaps against a plain search: whenever a pod blocks, no node has room for it."""
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool(cpu=4, initial=3, max=3)), "0", journal)

    class Watching(Journal):
        def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
            del detail
            if change is Change.UNSCHEDULABLE:
                assert not any(node.fits(pod.shape) for node in cluster.nodes.values())

    cluster.scheduler._listener = Watching()
    for number, (at, shape, seconds) in enumerate(jobs):
        pod = Pod(
            f"pod-{number}",
            "default",
            shape,
            (),
            on_running=lambda p, s=seconds: loop.after(s, cluster.kubelet.finish, p),
        )
        loop.at(at, cluster.create, pod)
    loop.run()

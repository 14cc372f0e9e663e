"""The simulated platform once more, as one would write it on simpy: the oracle of ours, and what ours is measured by.

A run, a pod, the scheduler and each report are processes; workers are resources, the scheduler's queue is a store.
Whatever passes no time is the simulator's own: graphs, a workflow's bookkeeping, free amounts, token buckets, names,
distributions, and the random streams. So both do the same work, and must agree on every instant.

Left out is what a test with this model has to leave out, too: the autoscaler, evictions, deletions, priorities, faults.
"""

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace

import simpy

from harness.simulator.cluster import Pod
from harness.simulator.cluster.kubelet import SIGKILLED
from harness.simulator.cluster.objects import Node
from harness.simulator.cluster.quota import Quota
from harness.simulator.cluster.ranking import Ranks
from harness.simulator.engine.distributions import Draws
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import TokenBucket
from harness.simulator.kfp.database import Database
from harness.simulator.kfp.records import Run
from harness.simulator.kfp.server import Server
from harness.simulator.profile import Profile
from harness.simulator.workflows.graph import EXECUTOR
from harness.simulator.workflows.node_paths import of_pod_end, of_pod_start, of_whole
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.templates import Templates
from harness.simulator.workflows.workflow import FAILED, PENDING, RUNNING, SUCCEEDED, Step, Workflow
from tests.support.simpy_parts import Process, Scheduler, Search, Shared


class OnSimpy:
    """One platform with runs of one pipeline that come at the instants `due`.

    Attributes:
        runs: in the order of `due`, with their workflows and all pods, as the simulator's own.
    """

    def __init__(
        self,
        profile: Profile,
        package: bytes,
        due: Sequence[float],
        seed: int = 0,
        ranks: type[Ranks | Search] = Search,
    ) -> None:
        self.profile, self.env = profile, simpy.Environment()
        self.kubelet_random, self.driver_random = Random(f"{seed}/kubelet"), Random(f"{seed}/drivers")
        self.step_draws = Draws(f"{seed}/steps")
        # The simulator's server and steps know pipelines, names and models; they are not asked to do anything.
        self.workflows: dict[tuple[str, str], Workflow] = {}
        self.server = Server(EventLoop(), profile, str(seed), SimpleNamespace(workflows=self.workflows))  # type: ignore[arg-type]
        (self.version,) = self.server.catalogue.versions_of(self.server.catalogue.create_pipeline(package).id)
        self.steps = Steps(profile.steps, self.step_draws, None, None, {})  # type: ignore[arg-type]
        self.database, self.quota = Database(profile.database, Random()), Quota(profile.quota)
        self.api = TokenBucket(profile.api.qps, profile.api.burst)
        self.calls, self.updates = (TokenBucket(profile.controller.qps, profile.controller.burst) for _ in range(2))
        self.workers = simpy.Resource(self.env, profile.controller.workers)
        self.agents = simpy.Resource(self.env, profile.agent.workers)
        self.scheduler = Scheduler(self.env, profile.scheduler, ranks(packing=profile.scheduler.packing))
        self.processors: dict[str, Shared] = {}
        self.link, self.stored = Shared(self.env, profile.store.bytes_per_s), profile.store.used
        self.templates = Templates(profile.controller, self.steps)
        self.looks: dict[str, simpy.Store] = {}  # by workflow
        self.background = {"events": [0, 1], "cleanup": [0, profile.controller.cleanup_workers]}  # waiting, idle
        self.pods: dict[str, Pod] = {}
        self.runs: list[Run] = []
        self.left, self.over = len(due), self.env.event()
        self.add_nodes()
        for number, at in enumerate(due):
            self.env.process(self.run(number, at))

    def add_nodes(self) -> None:
        index = 0
        for pool in self.profile.pools:
            for _ in range(pool.initial):
                index += 1
                node = Node(f"{pool.name}-{index}", index, pool, EventLoop())
                node.ready = 0.0
                self.scheduler.ranks.nodes[node.name] = node
                self.scheduler.ranks.changed(node)
                self.processors[node.name] = Shared(self.env, pool.cpu)

    # --- API server ---------------------------------------------------------------------------------------------

    def run(self, number: int, due: float) -> Process:
        env, server = self.env, self.server
        yield env.timeout(due)
        run = server.prepare_run(f"r{number}", "", self.version, {}, by_reference=True)
        run.created = env.now
        self.runs.append(run)
        assert server._random.random() >= self.profile.api.error_rate
        allowed, takes = self.api.take(env.now), server.latency_s()
        yield env.timeout(allowed - env.now)
        self.database.connect()
        yield env.timeout(takes)
        self.database.disconnect()
        assert self.version.graph is not None
        self.database.insert(self.version.graph)
        workflow = run.workflow = Workflow(
            run.id, server._workflow_name(run), self.profile.namespace,
            graph=self.version.graph, parameters=run.parameters, created=env.now, number=run.number,
        )  # fmt: skip
        self.workflows[workflow.key] = workflow
        run.enter("PENDING", run.created)
        self.changed(run)
        yield env.process(self.reconcile(run, workflow))

    # --- workflow controller ------------------------------------------------------------------------------------

    def reconcile(self, run: Run, workflow: Workflow) -> Process:
        env, controller = self.env, self.profile.controller
        asked, looks = controller.requests_of_version, simpy.Store(env)
        self.looks[workflow.name] = looks
        workflow.queued = True
        looks.put("new")
        while workflow.finished is None:
            yield looks.get()
            worker = self.workers.request()
            yield worker
            workflow.queued = False
            yield env.timeout(controller.operation_s)
            new = workflow.started is None
            if new or workflow.touched or workflow.news or workflow.due:
                due = self.assess_all(workflow, new=new)
                if new:
                    yield env.timeout(self.calls.take(env.now, asked.start) - env.now)
                for index in due:
                    yield env.timeout(self.calls.take(env.now, asked.pod) - env.now)
                    env.process(self.pod(workflow, index))
                requests = 1 if workflow.finished is None else 1 + asked.results
                yield env.timeout(self.updates.take(env.now, requests) - env.now)
                self.enter(workflow)
                self.later("events", workflow.unsaid)
                workflow.unsaid = 0
                self.changed(run)
                yield env.timeout(controller.settle_of_version_s)
            self.workers.release(worker)

    def assess_all(self, workflow: Workflow, *, new: bool) -> list[int]:
        """What has happened since the last look; the nodes that need a pod."""
        if new:
            workflow.started, workflow.phase = self.env.now, RUNNING
            workflow.unsaid += of_whole(workflow.graph)
        workflow.touched = False
        for pod in workflow.news:
            self.assess(workflow, pod)
        workflow.news.clear()
        due, workflow.due = workflow.due, []
        for index in due:
            step = workflow.steps[index] = workflow.steps[index] or Step(self.env.now)
            step.attempts += 1
            workflow.active += 1
        if workflow.active == 0:
            workflow.finished = self.env.now
            workflow.phase = FAILED if workflow.failed else SUCCEEDED
            workflow.unsaid += of_whole(workflow.graph)
            self.later("cleanup", self.profile.controller.requests_of_version.end)
        return due

    def wake(self, workflow: Workflow) -> None:
        """Look again when the workflow's entry in the delaying queue is due: there is one, and the earliest stays."""
        if not workflow.queued and workflow.finished is None:
            workflow.queued = True
            self.enter(workflow)
            self.env.process(self.look(workflow))

    def enter(self, workflow: Workflow) -> None:
        due_at = self.env.now + self.profile.controller.requeue_s
        workflow.look_at = min(workflow.look_at, due_at) if workflow.look_at > self.env.now else due_at

    def look(self, workflow: Workflow) -> Process:
        yield self.env.timeout(workflow.look_at - self.env.now)
        self.looks[workflow.name].put("changed")

    def later(self, kind: str, count: int) -> None:
        """Requests that nothing waits for."""
        state = self.background[kind]
        state[0] += count
        while state[1] and state[0]:
            state[1] -= 1
            self.env.process(self.send(state, self.reserve(state)))

    def reserve(self, state: list[int]) -> float:
        """Take tokens until one has to be waited for, or nothing is left to send."""
        now, at = self.env.now, self.env.now
        while state[0] and at <= now:
            count = min(state[0], max(self.calls.spare(now), int(self.profile.controller.qps * 0.05), 1))
            state[0] -= count
            at = self.calls.take(now, count)
        return at

    def send(self, state: list[int], at: float) -> Process:
        while at > self.env.now:
            yield self.env.timeout(at - self.env.now)
            at = self.reserve(state)
        state[1] += 1

    def assess(self, workflow: Workflow, pod: Pod) -> None:
        step, container = workflow.steps[pod.index], workflow.graph.plans[pod.index].container
        assert step is not None
        asked, retries = self.profile.controller.requests_of_version, self.profile.controller.error_retries
        self.later("cleanup", asked.cleanup)
        workflow.unsaid += of_pod_end(workflow.graph.plans[pod.index], retries)
        if pod.phase == "Succeeded":
            workflow.end_step(pod.index, SUCCEEDED, self.env.now)
        elif step.attempts <= container.retries:
            workflow.active += 1
            delay = min(container.backoff_s * container.backoff_factor ** (step.attempts - 1), container.backoff_max_s)
            self.env.process(self.again(workflow, pod.index, delay))
        else:
            workflow.end_step(pod.index, FAILED, self.env.now, pod.reason)

    def again(self, workflow: Workflow, index: int, delay: float) -> Process:
        yield self.env.timeout(delay)
        workflow.active -= 1
        workflow.due.append(index)
        self.wake(workflow)

    # --- persistence agent --------------------------------------------------------------------------------------

    def changed(self, run: Run) -> None:
        assert run.workflow is not None
        if not run.workflow.unreported:
            run.workflow.unreported = True
            self.env.process(self.report(run, run.workflow))

    def report(self, run: Run, workflow: Workflow) -> Process:
        env, agent = self.env, self.profile.agent
        yield env.timeout(agent.lag_s)
        with self.agents.request() as turn:
            yield turn
            workflow.unreported = False
            phase, done_at = workflow.phase, env.now
            if workflow.finished is not None:
                done_at = self.api.take(env.now, self.profile.api.tokens_per_report)
            run.reports.append(env.now)
            yield env.timeout(done_at - env.now + agent.report_s)
        run.enter(phase.upper(), env.now)
        if phase in {SUCCEEDED, FAILED}:
            run.finished = workflow.finished
            self.left -= 1
            if not self.left:
                self.over.succeed()

    # --- a pod --------------------------------------------------------------------------------------------------

    def pod(self, workflow: Workflow, index: int) -> Process:
        env, controller = self.env, self.profile.controller
        step = workflow.steps[index]
        assert step is not None
        pod = self.templates.pod(workflow, index, step.attempts)
        while self.quota.refusal(pod):
            yield env.timeout(max(1.0, controller.requeue_s))
            self.enter(workflow)  # which looks at the whole workflow
            yield env.timeout(self.calls.take(env.now, controller.requests_of_version.pod) - env.now)
        self.quota.take(pod)
        step.pods.append(pod)
        step.state = PENDING
        workflow.unsaid += of_pod_start(workflow.graph.plans[index], controller.error_retries)
        pod.created = env.now
        self.pods[pod.name] = pod
        node = yield self.scheduler.placed(pod)
        ready = self.images_ready(node, pod)
        if ready > env.now:
            yield env.timeout(ready - env.now)
        pod.pulled = env.now
        yield env.timeout(self.profile.kubelet.start.sample(self.kubelet_random, {}))
        pod.started, pod.phase = env.now, "Running"
        workflow.touched = True
        self.wake(workflow)
        if pod.role == EXECUTOR:
            yield from self.compute(pod, workflow, node)
        else:
            yield self.processors[node.name].add(
                self.profile.controller.driver.sample(self.driver_random, {}), pod.usage_cpu
            )
            pod.main_ended, pod.reason = env.now, "Completed"
        yield env.timeout(self.profile.store.request_s)  # the log is stored
        pod.finished = env.now
        pod.phase = "Failed" if pod.exit_code else "Succeeded"
        node.give_back(pod)
        self.scheduler.room_made(node)
        workflow.active -= 1
        self.quota.give_back(pod)
        workflow.news.append(pod)
        self.wake(workflow)

    def images_ready(self, node: Node, pod: Pod) -> float:
        """Each image is pulled once on a node, one after the other."""
        kubelet = self.profile.kubelet
        for image in pod.images:
            if image not in node.images:
                size = kubelet.images.get(image, kubelet.image_bytes)
                begins = max(self.env.now, node.pull_free)
                node.pull_free = begins + kubelet.pull_overhead_s + size / kubelet.pull_bytes_per_s
                node.images[image] = node.pull_free
        return max(node.images[image] for image in pod.images)

    def compute(self, pod: Pod, workflow: Workflow, node: Node) -> Process:
        """Read the inputs, compute, write the outputs."""
        env, store = self.env, self.profile.store
        parts = (workflow.steps[each] for each in workflow.graph.plans[pod.index].reads)
        size = sum(part.output for part in parts if part is not None)
        if size:
            yield self.link.add(store.request_s + size / store.stream_bytes_per_s, store.stream_bytes_per_s)
        model, step = self.steps.model(pod.task), workflow.steps[pod.index]
        assert step is not None
        random = self.step_draws.of(workflow.number, pod.index, step.attempts)
        takes = model.duration.sample(random, workflow.parameters)
        cpu = model.cpu.sample(random, workflow.parameters)
        output = model.output.sample(random, workflow.parameters)
        fails = random.random() < model.failing
        memory = model.memory.sample(random, workflow.parameters)
        limit = pod.limit_cpu / 1000
        if limit and cpu > limit:
            takes, cpu = takes * cpu / limit, limit
        processor = self.processors[node.name]
        if pod.limit_memory and memory > pod.limit_memory:
            yield processor.add(takes * 0.6, cpu)
            pod.exit_code, pod.reason = SIGKILLED, "OOMKilled"
        else:
            yield processor.add(takes, cpu)
            pod.exit_code, pod.reason = (1, "Error") if fails else (0, "Completed")
        if not pod.exit_code:
            yield from self.upload(pod, workflow, output)
        pod.main_ended = env.now

    def upload(self, pod: Pod, workflow: Workflow, output: float) -> Process:
        """Write the outputs, which is still the main container's work."""
        env, store = self.env, self.profile.store
        if self.full_for(output):
            yield env.timeout(store.timeout_s)
            if self.full_for(output):
                pod.exit_code, pod.reason = 1, "Error"
                return
        self.stored += output
        yield self.link.add(store.request_s + output / store.stream_bytes_per_s, store.stream_bytes_per_s)
        step = workflow.steps[pod.index]
        assert step is not None
        step.output = output

    def full_for(self, size: float) -> bool:
        store = self.profile.store
        return self.stored + size > store.capacity * (1 - store.min_free)


def simulated(
    profile: Profile, package: bytes, due: Sequence[float], seed: int = 0, ranks: type[Ranks | Search] = Search
) -> list[Run]:
    """The runs when all are over."""
    model = OnSimpy(profile, package, due, seed, ranks)
    model.env.run(until=model.over)
    return model.runs

"""One reconciliation of a workflow: which nodes begin or end now, and which pods are due. No I/O, no clock.

As Argo does, it walks from the entrypoint through everything that exists, each time again. Names, types and messages of
nodes are as recorded from Argo 4.0.8; templates as https://argo-workflows.readthedocs.io/en/latest/fields/ has them.
"""

import json
from collections.abc import Mapping
from typing import Any

from harness.model.errors import ConfigError
from harness.simulator.argo.dags import advance_dag
from harness.simulator.argo.expressions import ExpressionError, UnknownValueError, filled, holds, is_true_of
from harness.simulator.argo.fields import type_of
from harness.simulator.argo.leaves import advance_leaf
from harness.simulator.argo.limits import is_repeated, is_throttled, strategy_of
from harness.simulator.argo.locks import NoLimitError
from harness.simulator.argo.memos import Memo, MemoError, Memos
from harness.simulator.argo.nodes import (
    BAD,
    DAG,
    ERROR,
    FAILED,
    OMITTED,
    ON_EXIT,
    PENDING,
    POD,
    RETRY,
    RUNNING,
    SKIP,
    SKIPPED,
    STEPS,
    SUCCEEDED,
    SUSPEND,
    Node,
    Run,
)  # fmt: skip
from harness.simulator.argo.scopes import arguments_of, globals_of, results_of, scope_of
from harness.simulator.argo.steps import advance_steps
from harness.simulator.argo.templates import LOCAL, Spec, hooks_of, key_of, name_of
from harness.simulator.argo.work import Call, Work
from harness.simulator.workflows.retry import RetryStrategy

_NO_MORE = "No more retries left"
_MOST_DEEP = 100  # as the controller's maxStackDepth
_TOO_DEEP = "Maximum recursion depth exceeded. See https://argo-workflows.readthedocs.io/en/latest/scaling/#maximum-recursion-depth"
_MOST_NODES = 25_000
_TOO_MANY = f"the simulated platform runs workflows of at most {_MOST_NODES:,} nodes"
_EXIT = "exit"  # the hook that runs after the end


class Reconciliation(Work):
    """Brings a workflow's nodes up to date.

    Args:
        memos: of the controller.
        retry: the retry strategy of templates that have none; none if they are not retried.
        more: see `Work`.
    """

    def __init__(self, run: Run, now: float, *, memos: Memos, retry: RetryStrategy | None, **more: Any) -> None:
        super().__init__(run, now, **more)
        self._memos = memos
        self._depth = 0
        self._retry_default = retry

    def operate(self) -> None:
        """Begin and end what can begin and end now; ends the workflow after its last node."""
        run = self.run
        if run.shutdown and not self._shut_down():
            return
        entrypoint = str(run.spec["entrypoint"])
        root = self._execute(Call(run.name, entrypoint, entrypoint, "", {}))
        if root is None:
            return
        try:
            scope = {**globals_of(self.run), "workflow.status": root.phase}
            if not self._hooks_over(run.spec, root, "", scope) or not root.over:
                return
        except ExpressionError as error:
            self.end(root, ERROR, str(error))
        phase, message, handler = root.phase, root.message, hooks_of(run.spec).get(_EXIT)
        if handler and run.shutdown != "Terminate":
            left = self._hook(f"{run.name}{ON_EXIT}", handler, "", globals_of(self.run), after=True)
            if left is None or not left.over:
                return
            if left.phase in BAD and phase == SUCCEEDED:
                phase, message = left.phase, left.message
        if run.shutdown:
            phase, message = FAILED, f"Stopped with strategy '{run.shutdown}'"
        run.phase, run.message, run.finished = phase, message, self.now
        self.served += run.serving

    def _shut_down(self) -> bool:
        """End the nodes that run or wait, but for an exit handler's after a stop; true when their pods are gone."""
        how = self.run.shutdown
        stopped = [node for node in self.run.nodes.values() if not node.over and not self.run.goes_on(after=node.after)]
        if any(node.pod is not None and not node.pod.over for node in stopped):
            return False
        for node in stopped:
            if node.type == POD and (node.pod is None or node.pod.phase != "Succeeded"):
                self.end(node, FAILED, f"workflow shutdown with strategy:  {how}")
            elif node.type == SUSPEND or (node.type != POD and node.phase == PENDING):
                self.end(node, FAILED, f"Stopped with strategy '{how}'")
        if not self.run.nodes:
            entrypoint = str(self.run.spec["entrypoint"])
            root = self.new(Call(self.run.name, entrypoint, entrypoint, "", {}), SKIP, OMITTED)
            self.end(root, FAILED)
        return True

    # --- templates ------------------------------------------------------------------------------------------------

    def _execute(self, call: Call) -> Node | None:
        """The node of a template; none while a limit keeps it from existing."""
        node, template = self.run.nodes.get(call.name), self.run.templates[call.template]
        if node is not None and node.done:
            return node
        if node is None and is_throttled(self.run, template, call.boundary):
            return None
        if self._depth >= _MOST_DEEP or len(self.run.nodes) >= _MOST_NODES:
            return self._error(call, _TOO_DEEP if self._depth >= _MOST_DEEP else _TOO_MANY)
        strategy, own = self._retry_default, template.get("retryStrategy")
        if own:
            try:
                strategy = strategy_of(filled(own, self._scope(call, template)) if "{{" in str(own) else own)
            except ExpressionError as error:
                return self._error(call, str(error))
        if node is None and template.get("memoize") and not template.get("synchronization"):
            kind = RETRY if strategy else type_of(template)
            if (kept := self._recall(call, template, kind)) is not None:
                return kept
        self._depth += 1
        try:
            return self._retry(call, template, strategy) if strategy else self._attempt(call, template)
        finally:
            self._depth -= 1

    def _recall(self, call: Call, template: Spec, kind: str) -> Node | None:
        """The node of a template whose outputs were kept; none if they were not."""
        try:
            memo = self._memo(call, template)
            outputs = self._memos.load(self.run.namespace, memo)
        except (ExpressionError, MemoError) as error:
            return self._error(call, str(error))
        if outputs is None:
            return None
        node = self.run.nodes.get(call.name) or self.new(call, kind)
        node.memo, node.outputs = memo.status(hit=True), outputs
        self.end(node, SUCCEEDED)
        return node

    def _error(self, call: Call, why: str) -> Node:
        """The node of a template that can't be executed."""
        node = self.run.nodes.get(call.name) or self.new(call, SKIP, ERROR)
        self.end(node, ERROR, why)
        return node

    def _retry(self, call: Call, template: Spec, strategy: RetryStrategy) -> Node:
        of_hook = {"hooked": True, "retried": True} if call.flag else None  # a hook's wrapper has both flags
        node = self.run.nodes.get(call.name) or self.new(call._replace(flag=of_hook), RETRY)
        try:
            self._note_memo(node, call, template)
        except (ExpressionError, MemoError) as error:
            return self._error(call, str(error))
        while True:
            attempts = self.run.attempts(node)
            if not attempts or (attempts[-1].over and is_repeated(self.run, strategy, attempts)):
                if attempts and not self.reached((attempts[-1].finished or 0.0) + strategy.pause_s(len(attempts))):
                    return node
                name = f"{call.name}({len(attempts)})"
                node.children.append(name)
            else:
                name = attempts[-1].name
            flag = {**(call.flag or {}), "retried": True}
            last = self._attempt(call._replace(name=name, flag=flag), template)
            node.daemoned, node.result, node.outputs = last.daemoned, last.result, last.outputs
            if not last.over:
                return node
            attempts = self.run.attempts(node)
            if not is_repeated(self.run, strategy, attempts):
                exhausted = strategy.covers(last.phase) and not self.run.shutdown
                self.end(node, last.phase, _NO_MORE if exhausted else last.message)
                return node
            since_first_s = (last.finished or self.now) - attempts[0].started
            if why := strategy.too_late(len(attempts), since_first_s):
                self.end(node, last.phase, why)
                return node

    def _attempt(self, call: Call, template: Spec) -> Node:
        kind = type_of(template)
        node = self.run.nodes.get(call.name) or self.new(call, kind, PENDING if kind == POD else RUNNING)
        if node.done:
            return node
        if kind in {POD, SUSPEND} and node.pod is None and not self.run.goes_on(after=call.after):
            self.end(node, FAILED, f"workflow shutdown with strategy: {self.run.shutdown}")
            return node
        try:
            scope = self._scope(call, template)
            self._note_memo(node, call, template)
            if not self._has_locks(node, template) or self._is_recalled(node, call, template):
                return node
            self._advance(node, template, scope)
            if node.phase == SUCCEEDED and template.get("memoize"):
                self._remember(node, call, template)
        except (ExpressionError, NoLimitError, MemoError, ConfigError, json.JSONDecodeError) as error:
            self.end(node, ERROR, str(error))
        return node

    def _advance(self, node: Node, template: Spec, scope: dict[str, str]) -> None:
        if node.type == STEPS:
            advance_steps(self, node, template, scope)
        elif node.type == DAG:
            advance_dag(self, node, template, scope)
        else:
            advance_leaf(self, node, template, scope)

    def _scope(self, call: Call, template: Spec) -> dict[str, str]:
        own = {"node.name": call.name, "pod.name": call.name, "steps.name": call.task, "tasks.name": call.task}
        return own | scope_of(self.run, template, call.values, inner=call.boundary != "")

    def _memo(self, call: Call, template: Spec) -> Memo:
        return Memo.of(filled(template["memoize"], self._scope(call, template)))

    def _note_memo(self, node: Node, call: Call, template: Spec) -> None:
        if template.get("memoize") and node.memo is None:
            node.memo = self._memo(call, template).status(hit=False)

    def _is_recalled(self, node: Node, call: Call, template: Spec) -> bool:
        """Whether another node kept these outputs while this one waited for its lock."""
        begun = node.step or node.children
        locked = template.get("memoize") and template.get("synchronization")
        return bool(locked and not begun and self._recall(call, template, node.type))

    def _remember(self, node: Node, call: Call, template: Spec) -> None:
        memo = self._memo(call, template)
        parameters = [{"name": name, "value": value} for name, value in node.outputs.items()]
        outputs = {"parameters": parameters} if parameters else {}
        code = {"exitCode": "0"} if node.type == POD else {}
        self._memos.save(self.run.namespace, memo, self.run.id_of(node.name), {**outputs, **code})

    def _has_locks(self, node: Node, template: Spec) -> bool:
        wanted = template.get("synchronization")
        if not wanted:
            return True
        holder = self.run.holder(node.name)
        why = self.locks.acquire(wanted, self.run.namespace, holder, self.run.priority)
        node.phase = PENDING if why else node.phase if node.type == POD else RUNNING
        node.message = why
        return not why

    def call(self, step: Spec, name: str, boundary: str, scope: Mapping[str, str]) -> Node | None:
        """See `Work.call`."""
        node = self.run.nodes.get(name)
        if node is not None and node.done:
            return node
        if node is None and step.get("when"):
            holds, condition = self._holds(str(step["when"]), name, scope)
            if not holds:
                return self.skipped(name, step, boundary, SKIPPED, f"when '{condition}' evaluated false")
        around = self.run.nodes[boundary]
        key = key_of(step, around.template)
        return self._execute(
            Call(
                name, key, str(step["name"]), boundary, arguments_of(step, scope, self.run.templates[key]),
                reference=step.get("templateRef"), after=around.after,
            )
        )  # fmt: skip

    def _holds(self, text: str, name: str, scope: Mapping[str, str]) -> tuple[bool, str]:
        """Whether the ``when`` of the node of this name holds, and what it says without tags."""
        try:
            condition = filled(text, scope)
            return holds(condition), condition
        except UnknownValueError:
            return self.guesses.holds(self.run, name), text

    # --- hooks ----------------------------------------------------------------------------------------------------

    def hooks_over(self, kind: str, step: Spec, node: Node, scope: Mapping[str, str]) -> bool:
        """See `Work.hooks_over`."""
        hooks = hooks_of(step)
        if not hooks:
            return True
        known = {**scope, **results_of(self.run, kind, str(step["name"]), node.name)}
        if not self._hooks_over(step, node, node.boundary, known):
            return False
        handler = hooks.get(_EXIT)
        if handler is None or node.phase not in {SUCCEEDED, *BAD} or self.run.shutdown == "Terminate":
            return True
        name = f"{node.name}{ON_EXIT}"
        if name not in self.run.nodes and handler.get("expression") and not is_true_of(handler["expression"], known):
            return True
        made = self._hook(name, handler, node.boundary, known, after=True)
        return self._is_child_over(node, made)

    def _hooks_over(self, of: Spec, node: Node, boundary: str, scope: Mapping[str, str]) -> bool:
        """The same for the hooks that run before the end."""
        over = True
        for key, hook in hooks_of(of).items():
            name = f"{node.name}.hooks.{key}"
            begun = name in self.run.nodes
            if key != _EXIT and (begun or (not self.run.shutdown and is_true_of(hook["expression"], scope))):
                over = self._is_child_over(node, self._hook(name, hook, boundary, scope)) and over
        return over

    def _hook(
        self, name: str, hook: Spec, boundary: str, scope: Mapping[str, str], *, after: bool = False
    ) -> Node | None:
        around = self.run.nodes.get(boundary)
        key = key_of(hook, around.template if around is not None else LOCAL)
        given = arguments_of(hook, scope) if hook.get("arguments") or not after else self.run.parameters
        after = after or (around is not None and around.after)
        return self._execute(
            Call(name, key, name_of(key), boundary, given, {"hooked": True}, hook.get("templateRef"), after)
        )

    def _is_child_over(self, node: Node, child: Node | None) -> bool:
        self.link([node], child)
        return child is not None and child.over

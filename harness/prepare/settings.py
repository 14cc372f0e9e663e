"""What to set on a pipeline's steps, and how users write it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_quantity

GPU = "nvidia.com/gpu"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# Label, and its value, of spot nodes; their taint is the same. AKS: learn.microsoft.com/azure/aks/spot-node-pool; GKE:
# cloud.google.com/kubernetes-engine/docs/concepts/spot-vms; EKS: managed node groups; Karpenter: karpenter.sh/docs.
SPOT: Mapping[str, tuple[str, str]] = {
    "aks": ("kubernetes.azure.com/scalesetpriority", "spot"),
    "gke": ("cloud.google.com/gke-spot", "true"),
    "eks": ("eks.amazonaws.com/capacityType", "SPOT"),
    "karpenter": ("karpenter.sh/capacity-type", "spot"),
}
_PARAMETER = re.compile(r"[A-Za-z_]\w{0,62}", re.ASCII)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_EXPRESSION = re.compile(
    r"(?P<absent>!)?(?P<key>[^=!<>@]+)(?:(?P<sign>=|!=|<|>)(?P<values>[^=!<>@]*))?(?:@(?P<weight>.+))?"
)
_OPERATORS = {"=": "In", "!=": "NotIn", "<": "Lt", ">": "Gt"}
# Fields of `Resources`: the key of KFP's ResourceSpec, and the one before KFP 2.7 with the unit of its number.
RESOURCE_KEYS = {
    "cpu_request": ("resourceCpuRequest", "cpuRequest", 1.0),
    "cpu_limit": ("resourceCpuLimit", "cpuLimit", 1.0),
    "memory_request": ("resourceMemoryRequest", "memoryRequest", 1e9),
    "memory_limit": ("resourceMemoryLimit", "memoryLimit", 1e9),
}


@dataclass(frozen=True, slots=True)
class Preference:
    """A node affinity term of one expression; required if `weight` is 0, else preferred (1 to 100)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    weight: int = 0

    @property
    def expression(self) -> dict[str, Any]:
        """As a SelectorRequirement of the Kubernetes platform spec."""
        found: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return found | {"values": list(self.values)} if self.values else found


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that pods tolerate; without a value, any value of the key."""

    key: str
    value: str
    effect: str

    @property
    def document(self) -> dict[str, str]:
        """As a Toleration of the Kubernetes platform spec."""
        found = {"key": self.key, "operator": "Equal" if self.value else "Exists"}
        found |= {"value": self.value} if self.value else {}
        return found | ({"effect": self.effect} if self.effect else {})


@dataclass(frozen=True, slots=True)
class Placement:
    """On which nodes steps may run.

    With `parameter`, the selector is its default: each run may give another one.
    """

    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[Preference, ...] = ()
    parameter: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """A task's retry policy; times in seconds. A count of 0 removes the policy."""

    count: int
    backoff_s: float = 0.0
    factor: float = 2.0
    most_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Resources:
    """Kubernetes quantities; "" leaves what the step has. `gpus` counts devices of the type `gpu`; none leaves them."""

    cpu_request: str = ""
    cpu_limit: str = ""
    memory_request: str = ""
    memory_limit: str = ""
    gpus: int | None = None
    gpu: str = GPU


@dataclass(frozen=True, slots=True)
class Settings:
    """What to set. Empty parts leave what the pipeline has.

    Attributes:
        tasks: patterns of the tasks to change, as in a shell; none for all.
        caching: whether tasks keep their caching options; otherwise they are executed always.
        by_step: resources of single steps, after `resources`.
        images: beginnings of image names, and what replaces them.
        labels: of the pods.
        timeout_s: longest time of a step's pod; 0 for no change.
    """

    tasks: tuple[str, ...] = ()
    caching: bool = False
    placement: Placement = Placement()
    retry: Retry | None = None
    resources: Resources = Resources()
    by_step: Mapping[str, Resources] | None = None
    pull_policy: str = ""
    images: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    timeout_s: int = 0


def placement_of(
    selectors: Iterable[str], tolerations: Iterable[str], affinity: Iterable[str], spot: str, parameter: str = ""
) -> Placement:
    """Placement from the texts of the options ``--node-selector`` to ``--spot``, and ``--pool-parameter``.

    With a parameter, spot nodes are not required: another run may take other nodes.

    Raises:
        ConfigError: a text is malformed, or a key gets two values.
    """
    if parameter and not _PARAMETER.fullmatch(parameter):
        raise ConfigError(f"--pool-parameter: '{parameter}' is not a parameter's name", "for example pool")
    wanted = pairs("--node-selector", selectors)
    tolerated = [_toleration(toleration) for toleration in tolerations]
    terms = [_preference(each) for each in affinity]
    if spot:
        label = SPOT.get(spot) or _pair(
            "--spot", spot, f"give {', '.join(SPOT)} or a label of your spot nodes, key=value"
        )
        wanted = pairs("--node-selector and --spot", [*selectors, "=".join(label)])
        tolerated.append(Toleration(*label, "NoSchedule"))
        terms += [] if parameter else [Preference(label[0], "In", (label[1],))]
    return Placement(wanted, tuple(dict.fromkeys(tolerated)), tuple(dict.fromkeys(terms)), parameter)


def pairs(option: str, given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Labels written as ``key=value``.

    Raises:
        ConfigError: one is malformed, or a key has two values.
    """
    found: dict[str, str] = {}
    for text in given:
        key, value = _pair(option, text, "give a label as key=value")
        if found.setdefault(key, value) != value:
            raise ConfigError(
                f"{option}: '{key}' is both '{found[key]}' and '{value}'", "no node has both: give one value"
            )
    return tuple(found.items())


def images_of(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The texts of ``--image-map``: ``FROM=TO``, where an empty FROM means every image."""
    found = []
    for text in given:
        before, sign, after = text.partition("=")
        if not sign or not after:
            raise ConfigError(f"--image-map: '{text}' is not FROM=TO", "write docker.io/=mirror.example/hub/")
        found.append((before, after))
    return tuple(found)


def retry_of(count: int | None, backoff: str, factor: float, most: str) -> Retry | None:
    """The retry policy of ``--retries`` and its back-off; none if no count is given.

    Raises:
        ConfigError: a number is out of range.
    """
    if count is None:
        return None
    if not 0 <= count < 2**31:
        raise ConfigError(f"--retries: {count} is not a number of retries", "give 0 or more")
    if not 1 <= factor < 1000:
        raise ConfigError(
            f"--backoff-factor: {factor:g} is below 1 or too large", "1 waits equally long, 2 doubles the wait"
        )
    return Retry(count, seconds("--backoff", backoff), factor, seconds("--backoff-max", most))


def timeout_of(text: str) -> int:
    """The whole seconds of ``--timeout``; 0 if it is not given.

    Raises:
        ConfigError: it is not a duration, or shorter than a second.
    """
    if not text:
        return 0
    if not 1 <= (found := seconds("--timeout", text)) < 2**31:
        raise ConfigError(f"--timeout: '{text}' is shorter than a second, or too long", "write it as 90s, 10m or 2h")
    return round(found)


def seconds(option: str, text: str) -> float:
    """A duration option in seconds; its error names the option."""
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.message}", error.hint) from error


def gpus_of(text: str) -> tuple[int | None, str]:
    """Number and type of ``--gpu``: ``1``, or ``amd.com/gpu=1``."""
    kind, _, count = text.rpartition("=")
    if not text:
        return None, GPU
    if not count.isdecimal() or len(count) > 4:
        raise ConfigError(
            f"--gpu: '{text}' is not a number of GPUs", "write 1, or with the resource's name amd.com/gpu=1"
        )
    return int(count), kind or GPU


def checked(resources: Resources, where: str) -> Resources:
    """The resources, once every quantity is one and no request exceeds its limit.

    Raises:
        ConfigError: otherwise; `where` names them.
    """
    for name in RESOURCE_KEYS:
        if text := getattr(resources, name):
            try:
                amount = parse_quantity(text)
            except ConfigError as error:
                raise ConfigError(f"{where}: {name.replace('_', ' ')}: {error.message}", error.hint) from error
            if amount <= 0:
                raise ConfigError(
                    f"{where}: {name.replace('_', ' ')}: '{text}' is not above 0", "give a positive quantity"
                )
    return resources


def _pair(option: str, text: str, hint: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not _NAME.fullmatch(key) or not _VALUE.fullmatch(value):
        raise ConfigError(f"{option}: '{text}' is not a label", hint)
    return key, value


def _toleration(text: str) -> Toleration:
    taint, _, effect = text.partition(":")
    key, _, value = taint.partition("=")
    if not _NAME.fullmatch(key) or not _VALUE.fullmatch(value) or (effect and effect not in _EFFECTS):
        effects = ", ".join(_EFFECTS)
        raise ConfigError(
            f"--toleration: '{text}' is not a taint", f"write key=value:EFFECT, key:EFFECT or key; effects: {effects}"
        )
    return Toleration(key, value, effect)


def _preference(text: str) -> Preference:
    hint = "write key=a,b, key!=a, key>5, key<5, key or !key; with @1 to @100 at the end it is preferred, not required"
    match = _EXPRESSION.fullmatch(text)
    if not match or not _NAME.fullmatch(match["key"]) or (match["absent"] and match["sign"]):
        raise ConfigError(f"--affinity: '{text}' is not an expression", hint)
    weight = match["weight"] or "0"
    values = tuple(filter(None, (match["values"] or "").split(",")))
    numeric = match["sign"] in ("<", ">")
    if (
        not weight.isdecimal()
        or not (match["weight"] is None or 1 <= int(weight) <= 100)
        or bool(match["sign"]) != bool(values)
        or not all(map(_VALUE.fullmatch, values))
        or (numeric and not (len(values) == 1 and values[0].isdecimal()))
    ):
        raise ConfigError(f"--affinity: '{text}' is not an expression", hint)
    operator = _OPERATORS[match["sign"]] if match["sign"] else "DoesNotExist" if match["absent"] else "Exists"
    return Preference(match["key"], operator, values, int(weight))

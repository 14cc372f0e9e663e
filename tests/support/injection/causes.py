"""What may hold up the runs of a drawn platform, and the platform without it: for the judge of findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.planning.removals import REMOVALS, Fix
from harness.simulator.profile import Profile


def _own_machines(profile: Profile) -> Profile:
    """Four times the machines of the pools that no autoscaler adds to."""
    pools = (
        p if p.max > p.initial else replace(p, initial=4 * p.initial, min=4 * p.initial, max=4 * p.initial)
        for p in profile.pools
    )
    return replace(profile, pools=tuple(pools))


def _serving_all(profile: Profile) -> Profile:
    """Adapters that serve any number of requests at once, each as quickly as an idle one."""
    assert profile.hetida is not None
    adapters = (replace(each, capacity=0) for each in profile.hetida.adapters)
    return replace(profile, hetida=replace(profile.hetida, adapters=tuple(adapters)))


# Causes that go by the name of a fault, and are removed with it. How long an idle adapter takes is the data's nature:
# the truth is what the adapters' limits cost. Four times the machines from the start would be two remedies where an
# autoscaler adds them: a higher maximum and a quicker autoscaler. A finding that names adapters or nodes is true if
# quicker adapters, or more machines from the start, help.
GOES_BY: Mapping[str, str] = {"adapter-limit": "adapter-slow", "nodes-limit": "nodes-exhausted"}
_AFTER: Mapping[str, tuple[str, Fix]] = {
    "store-slow": ("steps-end-late", REMOVALS["store-slow"][1]),
    "nodes-exhausted": ("nodes-limit", _own_machines),
    "adapter-slow": ("adapter-limit", _serving_all),
}
_OF_HETIDA = ("adapter-slow", "lb-imbalance", "runtime-saturated")
# A drawn platform has the first two as faults, and the last one is another name of a limit on running workflows.
_OTHERS = ("adapter-errors", "slow-worker", "workflows-postponed")


def _fixes(*, of_hetida: bool) -> Iterator[tuple[str, Fix]]:
    for name, (_, fix) in REMOVALS.items():
        if name not in _OTHERS and (name in _OF_HETIDA) == of_hetida:
            yield name, fix
            if name in _AFTER:
                yield _AFTER[name]


_FIXES = {of_hetida: dict(_fixes(of_hetida=of_hetida)) for of_hetida in (False, True)}
# A finding that is not here can be right only where it was injected.
FIXED = frozenset(name for fixes in _FIXES.values() for name in fixes if name not in GOES_BY)


def fixes(profile: Profile) -> Mapping[str, Fix]:
    """Removals of what a platform of this kind can have, in the order in which they are applied."""
    return _FIXES[profile.hetida is not None]


def causes(profile: Profile, injected: Sequence[str]) -> tuple[str, ...]:
    """What may hold up this platform's runs: its faults and its own limits."""
    return tuple(name for name in dict.fromkeys((*injected, *fixes(profile))) if name not in GOES_BY.values())

"""Who may use the Kubernetes API of a simulated platform."""

from dataclasses import dataclass

MASTERS = "system:masters"  # the group that may do everything


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the Kubernetes API. What it may do is up to the roles that are bound to it or to its groups."""

    name: str  # of a user, or system:serviceaccount:NAMESPACE:NAME
    token: str  # which its requests bear
    groups: tuple[str, ...] = ()  # those in system:masters may do everything

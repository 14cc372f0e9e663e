"""Who may use the KFP of several users."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """A user of KFP, who may do everything in the namespaces of the tenants that it owns."""

    name: str
    token: str  # which its requests bear

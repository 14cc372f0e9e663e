"""What an observer reaches because a run folder names it: the command line confirms it, as a folder may be foreign."""

from harness.model.errors import ConfigError
from harness.model.plan import ObserverPlan

REACHING = ("kube-context", "prometheus", "metrics", "store-probe", "collector-option")
"""Options that name a cluster, an address or a bucket."""


def arguments_for(observer: ObserverPlan) -> list[str]:
    """The arguments of a command line that name what `observer` reaches."""
    return [argument for name, texts in _texts(observer).items() for text in texts for argument in (f"--{name}", text)]


def confirm(recorded: ObserverPlan, given: ObserverPlan) -> None:
    """Check that the command line reaches what the folder has `recorded`, and nothing else.

    Raises:
        ConfigError: naming the first option that differs.
    """
    on_command_line = _texts(given)
    for name, texts in _texts(recorded).items():
        if unconfirmed := [text for text in texts if text not in on_command_line[name]]:
            raise ConfigError(
                f"only the run folder names {unconfirmed[0]!r}, which would be contacted",
                f"if it is yours, add --{name} {unconfirmed[0]}",
            )
        if unused := [text for text in on_command_line[name] if text not in texts]:
            raise ConfigError(
                f"--{name} {unused[0]} differs from the run's own plan",
                "the run's manifest.json has it: see 'observer'",
            )


def _texts(observer: ObserverPlan) -> dict[str, list[str]]:
    """What is given for each option."""
    one_each = (observer.kube_context, observer.prometheus, observer.store_probe)
    kube_context, prometheus, store_probe = ([text] if text else [] for text in one_each)
    pairs = (observer.metrics, observer.collector_options)
    metrics, collector_option = ([f"{name}={value}" for name, value in pair] for pair in pairs)
    return dict(zip(REACHING, (kube_context, prometheus, metrics, store_probe, collector_option), strict=True))

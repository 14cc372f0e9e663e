"""What steps return, as the command line says it: ``steps.flip-coin=heads:0.7,tails``."""

from dataclasses import replace
from fnmatch import fnmatchcase

from harness.model.errors import ConfigError
from harness.simulator.profile.settings import Profile, Step

_HINT = "write it as steps.NAME=VALUE:SHARE, such as steps.flip-coin=heads:0.5, or steps.NAME.OUTPUT=VALUE"
_USUAL = ("result", "Output")  # what Argo and KFP call the only output of a step
_PARTS = 100  # a share is a number of these
ANY_OTHER = ""  # means the values that are not named


def with_results(profile: Profile, texts: list[str]) -> Profile:
    """The profile whose steps return these values.

    Raises:
        ConfigError: a text says no such thing.
    """
    for text in texts:
        named, _, values = text.partition("=")
        kind, _, name = named.partition(".")
        task, _, output = name.partition(".")
        if kind not in {"steps", "tasks"} or not task or not values:
            raise ConfigError(f"--result: '{text[:80]}' names no step and value", _HINT)
        model = next((step for step in profile.steps if fnmatchcase(task, step.match)), Step())
        results = {**model.results, **dict.fromkeys((output,) if output else _USUAL, _weighted(values))}
        profile = replace(profile, steps=(replace(model, match=task, results=results), *profile.steps))
    return profile


def _weighted(text: str) -> tuple[str, ...]:
    """Values, each as often as its share of a hundred; those without a share have equal parts of the rest."""
    pairs = [(value.strip(), share) for value, _, share in (part.partition(":") for part in text.split(","))]
    try:
        shares = [float(share) if share else None for _, share in pairs]
    except ValueError:
        raise ConfigError(f"--result: '{text[:80]}' has a share that is no number", _HINT) from None
    rest = 1.0 - sum(share for share in shares if share is not None)
    if rest < -1e-9 or any(share is not None and share < 0 for share in shares):
        raise ConfigError(f"--result: the shares in '{text[:80]}' are not from 0 to 1 in all", _HINT)
    open_ = sum(share is None for share in shares)
    parts = [rest / open_ if share is None else share for share in shares]
    found = [value for (value, _), part in zip(pairs, parts, strict=True) for _ in range(round(part * _PARTS))]
    return (*found, *[ANY_OTHER] * max(0, _PARTS - len(found)))

"""When arrivals are due. A schedule owns no clock: it is a sequence of offsets, so its tests are tables."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Protocol

from harness.model.errors import ConfigError


class Schedule(Protocol):
    """A non-decreasing sequence of seconds after the test's start. The same seed gives the same sequence."""

    @property
    def name(self) -> str:
        """One word for folder names and reports."""
        ...

    def offsets(self, seed: int) -> Iterator[float]:
        """Due times of all arrivals, in seconds after t0, non-decreasing."""
        ...


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(f"the schedule's {name} is {value:g}", f"give a {name} above 0")


@dataclass(frozen=True, slots=True)
class Constant:
    """`rate` arrivals a second, evenly, for `duration_s`: the k-th is due at k / rate."""

    rate: float
    duration_s: float
    name: str = "constant"

    def __post_init__(self) -> None:
        _positive(rate=self.rate, duration=self.duration_s)

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """Multiplied, never summed: no drift however long the test."""
        # The tolerance keeps 0.1/s for 60 s at 6 arrivals although 0.1 * 60 rounds above 6.
        for k in range(int(self.rate * self.duration_s * (1 + 1e-12) + 1e-9)):
            yield k / self.rate


@dataclass(frozen=True, slots=True)
class Spread:
    """`runs` arrivals evenly over `over_s`; `jitter` moves each by up to that share of the spacing."""

    runs: int
    over_s: float
    jitter: float = 0.0
    name: str = "spread"

    def __post_init__(self) -> None:
        _positive(runs=self.runs, over=self.over_s)
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"the jitter is {self.jitter:g}", "give a share between 0 and 1 of the spacing")

    def offsets(self, seed: int) -> Iterator[float]:
        """Within its own slot of over_s / runs each arrival is moved later, so the order stays."""
        spacing = self.over_s / self.runs
        random = Random(seed)
        for k in range(self.runs):
            yield (k + (random.random() * self.jitter if self.jitter else 0.0)) * spacing


@dataclass(frozen=True, slots=True)
class Burst:
    """`runs` arrivals at once; with `every_s`, `times` such bursts."""

    runs: int
    every_s: float = 0.0
    times: int = 1
    name: str = "burst"

    def __post_init__(self) -> None:
        _positive(runs=self.runs, times=self.times)
        if self.times > 1:
            _positive(every=self.every_s)

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """All arrivals of a burst are due at the same instant."""
        for k in range(self.times):
            for _ in range(self.runs):
                yield k * self.every_s


_KINDS: Mapping[str, type[Constant | Spread | Burst]] = {"constant": Constant, "spread": Spread, "burst": Burst}


def to_mapping(schedule: Schedule) -> dict[str, object]:
    """A schedule as plain values for the manifest; `from_mapping` reads it back."""
    return asdict(schedule)  # type: ignore[call-overload, no-any-return]  # every schedule is a dataclass


def from_mapping(values: Mapping[str, Any]) -> Schedule:
    """The schedule of a manifest.

    Raises:
        ConfigError: there is no such schedule, or its values are not its own.
    """
    try:
        return _KINDS[str(values["name"])](**values)
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{dict(values)} is not a schedule: {error}", "is the run folder of a newer version?"
        ) from error

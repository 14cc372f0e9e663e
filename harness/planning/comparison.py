"""Variants compared with the first one: measurements read from run folders or a table, and what follows from them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from operator import attrgetter
from os.path import commonprefix
from pathlib import Path

import numpy as np

from harness.analysis.services.processes import is_of_phase
from harness.analysis.stats.compare import Comparison, Measurement, compare
from harness.analysis.stats.measures import MAKESPAN, OF_THE_SCHEDULE, gains, primary
from harness.analysis.stats.recommend import Recommendation, recommend
from harness.model.baseline import differences
from harness.model.errors import ConfigError
from harness.model.experiment import Experiment, Question, Result
from harness.model.plan import Plan
from harness.model.schedules import in_words
from harness.planning.summaries import Summary, summary_of
from harness.store.folder import RunFolder
from harness.targets.table import named_rows_of

COLUMNS = ("variant", "scale", "repetition", "metric", "value")
_SEED = 7


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was read.

    Attributes:
        rows: one value of one test each.
        interleaved: each round of repetitions started before the next one.
        schedules: in words, by variant; empty for a table.
        warnings: differences between the tests, and invalid ones.
        primary: the metric to judge them by.
    """

    rows: list[Measurement]
    interleaved: bool
    primary: str
    schedules: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """The result: a comparison per metric and scale, what each schedule gains, and the variant to take, if any.

    `primary` is the metric that was to judge by before the figures were seen; its comparisons are the first ones.
    """

    primary: str
    comparisons: tuple[Comparison, ...]
    gains: tuple[str, ...]
    recommendation: Recommendation | None
    warnings: tuple[str, ...]


def compare_variants(measured: Measurements, *, paired: bool | None, primary: str = "") -> Compared:
    """Compare.

    Args:
        measured: of at least two variants.
        paired: whether equal repetitions ran side by side; none: as in the measurements.
        primary: the metric to judge by; "": that of the measurements.

    Raises:
        ConfigError: no metric was measured for two variants at the same scale, or not the primary one.
    """
    paired = measured.interleaved if paired is None else paired
    comparisons = compare(
        measured.rows, np.random.default_rng(_SEED), paired=paired, primary=primary or measured.primary
    )
    if not comparisons:
        raise ConfigError("there is nothing to compare", "measure two variants by the same metric at the same scale")
    if primary and not comparisons[0].primary:
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(c.metric for c in comparisons))
        raise ConfigError(f"'{primary}' was not measured for two variants", f"name one of these: {names}")
    differ = len(set(measured.schedules.values())) > 1
    relevant = [m for m in measured.rows if not (differ and m.metric in OF_THE_SCHEDULE) and not is_of_phase(m.metric)]
    return Compared(
        primary or measured.primary,
        comparisons,
        gains(measured.rows, measured.schedules) if differ else (),
        recommend(relevant, np.random.default_rng(_SEED), paired=paired),
        measured.warnings,
    )


def compare_results(experiment: Experiment, results: Sequence[Result]) -> tuple[Comparison, ...]:
    """Each variant of a grid with the first one, in pairs; empty for a search or a single variant."""
    if experiment.question is not Question.GRID or len(experiment.variants) < 2:
        return ()
    rows = [
        Measurement(r.point.variant, r.point.size(experiment.unit), str(r.point.repetition), name, value)
        for variant in experiment.variants
        for r in results
        if r.point.variant == variant
        for name, value in r.values.items()
    ]
    return compare(rows, np.random.default_rng(experiment.seed), paired=True, primary=MAKESPAN)


def read_table(path: Path) -> Measurements:
    """Measurements of a table; its first metric is the primary one.

    Raises:
        ConfigError: the file is not such a table.
    """
    found = []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in named_rows_of(path, COLUMNS, "give a CSV table"):
        variant, scale, repetition, metric = key = tuple(row[name] for name in COLUMNS[:-1])
        if key in seen:
            raise ConfigError(
                f"{path}, line {line}: the same variant, scale, repetition and metric as line {seen[key]}",
                "number the repetitions",
            )
        seen[key] = line
        try:
            value = float(row["value"])
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise ConfigError(
                f"{path}, line {line}, column 'value': '{row['value']}' is not a number", "correct the row"
            )
        found.append(Measurement(variant, scale, repetition, metric, value))
    return Measurements(
        found, interleaved=False, primary=found[0].metric if found else "", warnings=tuple(_alone(found))
    )


def _alone(rows: Sequence[Measurement]) -> Iterator[str]:
    """What was measured for one variant only, as with data of other sizes: it is left out of the comparison."""
    variants: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        variants.setdefault((row.metric, row.scale), set()).add(row.variant)
    for (metric, scale), names in variants.items():
        if len(names) == 1:
            where = f" at the scale '{scale}'" if scale else ""
            yield f"{metric}{where} was measured for {names.pop()} only: it is not compared"


def read_runs(variants: Sequence[str], *, force: bool) -> Measurements:
    """Measurements of run folders: a text per variant, its repetitions separated by commas.

    Raises:
        ConfigError: a folder can't be read or is given twice, or tests differ in scale or target and not `force`.
    """
    runs = [Path(path) for variant in variants for path in variant.split(",")]
    twice = next((path for path, times in Counter(runs).items() if times > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is given twice", "give different run folders")
    names = _names(variants)
    arms = {names[variant]: [_read(Path(path)) for path in variant.split(",")] for variant in variants}
    tests = [test for arm in arms.values() for test in arm]
    warnings = _warnings(arms, tests, force=force)
    sizes = {test.plan.intended for test in tests}
    scale = f"{tests[0].plan.intended} runs" if len(sizes) == 1 else "different scales"
    rows = [
        Measurement(name, scale, str(repetition), metric, value)
        for name, arm in arms.items()
        for repetition, test in enumerate(arm)
        for metric, value in test.summary.measures.items()
    ]
    schedules = {name: in_words(arm[0].plan.schedule) for name, arm in arms.items()}
    starts = [[test.summary.start_at for test in arm] for arm in arms.values()]
    judged_by = primary(str(test.plan.schedule.get("name")) for test in tests)
    return Measurements(rows, _interleaved(starts), judged_by, schedules, warnings)


@dataclass(frozen=True, slots=True)
class _Test:
    plan: Plan
    summary: Summary


def _read(path: Path) -> _Test:

    summary = summary_of(path)
    return _Test(RunFolder.open(path).read_plan(), summary)


def _warnings(arms: Mapping[str, Sequence[_Test]], tests: Sequence[_Test], *, force: bool) -> tuple[str, ...]:

    warnings = []
    for test in tests[1:]:
        for difference in differences(tests[0].plan, test.plan):
            if difference.startswith(("runs:", "target:")) and not force:
                raise ConfigError(
                    f"the tests differ in scale or target: {difference}", "compare equal tests, or give --force"
                )
            warnings.append(f"the tests differ in {difference}")
    platform = partial(_platform, among=_unlike(list(map(_components, tests))))
    nodes, host = attrgetter("summary.nodes"), attrgetter("plan.host")
    for what, of in (("nodes", nodes), ("platform version", platform), ("address", host), ("software", _versions)):
        seen = {name: list(dict.fromkeys(filter(None, map(of, arm)))) for name, arm in arms.items()}
        if len({each for found in seen.values() for each in found}) > 1:
            each = "; ".join(f"{name}: {' or '.join(found) or 'not observed'}" for name, found in seen.items())
            warnings.append(f"the tests differ in {what}: {each}")
    for name, arm in arms.items():
        warnings += [f"{name} is INVALID: {reason}" for test in arm for reason in test.summary.invalid]
    return tuple(dict.fromkeys(warnings))


def _components(test: _Test) -> Mapping[str, str]:
    """Versions that the platform and its cluster named, by component."""
    return {**test.plan.platform_versions, **test.summary.components}


def _unlike(tests: Sequence[Mapping[str, str]]) -> frozenset[str]:
    """The components that have two versions; one that some tests could not see is no difference."""
    pairs = {pair for named in tests for pair in named.items()}
    names = [name for name, _ in pairs]
    return frozenset(name for name in names if names.count(name) > 1)


def _platform(test: _Test, among: frozenset[str]) -> str:
    named = sorted(_components(test).items())
    return ", ".join(f"{name} {version}" for name, version in named if name in among)


def _versions(test: _Test) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(test.plan.versions.items()))


def _names(variants: Sequence[str]) -> dict[str, str]:
    """Short names by argument: the folder's own or the repetitions' common prefix; where equal, with folders above."""
    paths = {variant: [Path(path).resolve().parts for path in variant.split(",")] for variant in variants}
    deepest = max(len(parts) for found in paths.values() for parts in found)
    for depth in range(1, deepest + 1):
        folders = {variant: ["/".join(parts[-depth:]) for parts in found] for variant, found in paths.items()}
        for short in (_prefix, ",".join):
            names = {variant: short(found) for variant, found in folders.items()}
            if all(names.values()) and len(set(names.values())) == len(variants):
                return names
    return {variant: variant for variant in variants}


def _prefix(names: Sequence[str]) -> str:
    return commonprefix(names).rstrip("-_./") if len(names) > 1 else names[0]  # noqa: RUF071  # names, not paths


def _interleaved(starts: Sequence[Sequence[int]]) -> bool:
    """Whether every round of repetitions started before the next one, by the starts of each variant's tests."""
    if len({len(arm) for arm in starts}) != 1 or len(starts[0]) < 2:
        return False
    rounds = list(zip(*starts, strict=True))
    return all(max(a) < min(b) for a, b in pairwise(rounds))

"""The diagnosis against the truth: faults injected into the simulated platform, and the findings about them.

    python benchmarks/detectors.py [--seeds 10] [--strengths 0.5 1 2] [--fault NAME …] [--wide 8] [--jobs 2]

First every fault × seeds × strengths on one platform and load, clean controls, and pairs of faults. Then tests with
random platforms, loads, sizes and observation gaps: `--wide` tests of each fault, and as many clean ones in total. Last
the calibration: how often findings were right, by their confidence.

Twins with the same seed tell what is right: without the fault, and with the named bottleneck fixed; see
`tests.support.injection.judging`. Detectors read from a run folder, as in a real test. The seeds differ from those that
the detectors were tuned on.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from tests.support.injection.case import Case
from tests.support.injection.cases import CASES, CONTROLS, PAIRS
from tests.support.injection.judging import Answer, Verdict, judge
from tests.support.injection.seen import RUNS_ONLY
from tests.support.injection.wide import draw

HELD_OUT = 9000  # the first seed of the benchmark; tests and tuning use those from 0 on
_FEW = 2  # drawn tests of each fault
_BAD = frozenset({Answer.WRONG, Answer.FALSE})
Drawn = tuple[int, Case, Verdict]  # the number as in `tests.support.injection.wide.draw`


def main() -> int:
    """Print the matrices; 1 when they miss the promised accuracy."""
    options = _options()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    # As many tests without a fault as with one.
    wanted = [(name, options.first_seed + n) for name in options.fault for n in range(options.wide)]
    wanted += [("", options.first_seed + n) for n in range(len(wanted))]
    with ProcessPoolExecutor(options.jobs) as pool:
        single = {
            name: [pool.submit(judge, CASES[name], s, seed) for s in options.strengths for seed in seeds]
            for name in options.fault
        }
        clean = [pool.submit(judge, case, 1.0, seed) for case in CONTROLS for seed in seeds]
        pairs = {case.injected: [pool.submit(judge, case, 1.0, seed) for seed in seeds] for case in PAIRS}
        drawn = [pool.submit(_drawn, *each) for each in wanted]
        kept = not seeds or _matrix(
            {name: [each.result() for each in tests] for name, tests in single.items()},
            [each.result() for each in clean],
            {" + ".join(names): [each.result() for each in tests] for names, tests in pairs.items()},
        )
        general = not drawn or _generalised([each.result() for each in drawn])
    return int(not (kept and general))


def _drawn(fault: str, number: int) -> Drawn:
    case, strength = draw(fault, number)
    return number, case, judge(case, strength, number)


# --- one platform, one load -------------------------------------------------------------------------------------


def _matrix(single: dict[str, list[Verdict]], clean: list[Verdict], pairs: dict[str, list[Verdict]]) -> bool:
    print(f"{'injected':34}{'tests':>6}{'bind':>6}{'first':>8}{'in 3':>8}   named instead")
    rates = [_single(name, verdicts) for name, verdicts in single.items()]
    alarms = _clean(clean)
    both = [_pair(name, verdicts) for name, verdicts in pairs.items()]
    right, binding = sum(r for r, _ in rates), sum(b for _, b in rates)
    worst = min((r / b for r, b in rates if b), default=1.0)
    print(f"\nfirst finding right: {right}/{binding} = {right / max(binding, 1):.1%}, the worst fault {worst:.0%}")
    print(
        f"clean controls with findings: {alarms:.1%}; both of a pair in the top 3: {np.mean(both):.1%}",
        flush=True,
    )
    return right >= 0.9 * binding and worst >= 0.8 and alarms <= 0.05


def _single(name: str, verdicts: list[Verdict]) -> tuple[int, int]:
    binding = [v for v in verdicts if v.binding]
    right = sum(v.first == name for v in binding)
    close = sum(name in [each.name for each in v.named[:3]] for v in binding)
    instead = Counter(v.first or "none" for v in binding if v.first != name)
    idle = Counter(v.first or "none" for v in verdicts if not v.binding)
    others = _counted(instead) + (f"   (not binding: {_counted(idle)})" if idle else "")
    of = max(len(binding), 1)
    print(f"{name:34}{len(verdicts):6}{len(binding):6}{right / of:8.0%}{close / of:8.0%}   {others}")
    return right, len(binding)


def _clean(verdicts: list[Verdict]) -> float:
    alarms = [v.first for v in verdicts if v.named]
    print(f"{'none':34}{len(verdicts):6}{'':6}{1 - len(alarms) / len(verdicts):8.0%}   {_counted(Counter(alarms))}")
    return len(alarms) / len(verdicts)


def _pair(name: str, verdicts: list[Verdict]) -> float:
    both = [(v.injected, {each.name for each in v.named[:3]}) for v in verdicts if len(v.binding) == 2]
    right = sum(named.issuperset(injected) for injected, named in both)
    missing = Counter(name for injected, named in both for name in injected if name not in named)
    print(f"{name:58}{len(both):4}{right / max(len(both), 1):6.0%}   {_counted(missing)}")
    return right / len(both) if both else 1.0


def _counted(names: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in names.most_common(4))


# --- drawn platforms, loads and observations ----------------------------------------------------------------------


def _generalised(drawn: Sequence[Drawn]) -> bool:
    columns = f"{'tests':>6}{'bind':>6}" + "".join(f"{answer.value:>9}" for answer in Answer)
    print(f"\n{'drawn: injected':34}{columns}   instead")
    for name, group in _grouped(drawn, _injected):
        _row(name, group)
    for title, key in _KEYS.items():
        print(f"\n{title:34}{columns}   instead")
        for name, group in sorted(_grouped(drawn, key), key=lambda each: (len(each[0]), each[0])):
            _row(name, group)
    answers = Counter(verdict.outcome for *_, verdict in drawn)
    binding = sum(bool(verdict.binding) for *_, verdict in drawn)
    clean = [verdict.outcome for _, case, verdict in drawn if not case.faults]
    idle, alarms = len(drawn) - binding, clean.count(Answer.FALSE)
    known = binding - answers[Answer.UNJUDGED]
    good = (answers[Answer.RIGHT] + answers[Answer.LARGER]) / max(known, 1)
    print(
        f"\nof {binding} binding faults {answers[Answer.UNJUDGED]} could not be judged; of the others, the first "
        f"finding is the fault or one that costs as much in {good:.1%}, and a true one in "
        f"{1 - answers[Answer.WRONG] / max(known, 1):.1%}"
    )  # fmt: skip
    print(f"false findings: {alarms}/{len(clean)} = {alarms / max(len(clean), 1):.1%} of the clean tests, "
          f"{answers[Answer.FALSE] / max(idle, 1):.1%} of all where nothing injected binds")  # fmt: skip
    for number, case, verdict in drawn:
        if verdict.outcome in _BAD:
            print(f"{verdict.outcome}: {_injected(case)} {number}, {verdict.first or 'none'} first")
    _reliability([verdict for *_, verdict in drawn])
    return good >= 0.9 and alarms <= 0.05 * len(clean)


def _injected(case: Case) -> str:
    return " + ".join(case.injected) or "none"


_KEYS: dict[str, Callable[[Case], str]] = {
    "platform": lambda case: Path(case.profile).stem,
    "schedule": lambda case: case.schedule,
    "runs": lambda case: str(case.runs),
    "step duration": lambda case: "as in the profile" if case.step_s is None else f"{case.step_s:g} s",
    "scenarios": lambda case: "many" if case.many else "one",
    "timestamps": lambda case: "whole seconds" if case.whole else "exact",
    "not observed": lambda case: (
        "all but runs" if case.without == RUNS_ONLY else ", ".join(sorted(case.without)) or "-"
    ),
}


def _grouped(drawn: Iterable[Drawn], key: Callable[[Case], str]) -> Iterator[tuple[str, list[Verdict]]]:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for _, case, verdict in drawn:
        groups[key(case)].append(verdict)
    yield from groups.items()


def _row(name: str, verdicts: list[Verdict]) -> None:
    counts = Counter(verdict.outcome for verdict in verdicts)
    binding = sum(bool(verdict.binding) for verdict in verdicts)
    instead = Counter(verdict.first or "none" for verdict in verdicts if verdict.outcome in _BAD)
    numbers = "".join(f"{counts[answer] or '':>9}" for answer in Answer)
    print(f"{name:34}{len(verdicts):6}{binding:6}{numbers}   {_counted(instead)}")


def _reliability(verdicts: Iterable[Verdict]) -> None:
    """Of all findings, not only the first ones."""
    found = [each for verdict in verdicts for each in verdict.named]
    print(f"\n{'confidence':34}{'findings':>9}{'stated':>9}{'right':>9}")
    for low, high in ((0.0, 0.45), (0.45, 0.65), (0.65, 0.8), (0.8, 0.88), (0.88, 0.93), (0.93, 1.01)):
        _sure(
            f"{low:.0%} to {min(high, 1.0):.0%}", [(f.confidence, f.right) for f in found if low <= f.confidence < high]
        )
    print(f"\n{'finding':34}{'findings':>9}{'stated':>9}{'right':>9}")
    for name in sorted({each.name for each in found}):
        _sure(name, [(each.confidence, each.right) for each in found if each.name == name])


def _sure(name: str, findings: list[tuple[float, bool]]) -> None:
    if findings:
        stated, right = np.mean(findings, axis=0)
        print(f"{name:34}{len(findings):9}{stated:9.0%}{right:9.0%}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=HELD_OUT)
    parser.add_argument("--strengths", type=float, nargs="*", default=[0.5, 1.0, 2.0])
    parser.add_argument("--fault", choices=[*CASES], nargs="*", default=[*CASES])
    parser.add_argument(
        "--wide", type=int, default=_FEW, metavar="N", help="drawn tests of each fault (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

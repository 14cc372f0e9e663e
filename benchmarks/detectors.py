"""The findings against the truth, on installations drawn from a written distribution.

    python benchmarks/detectors.py [--tests 200] [--seed N] [--jobs N] [--scheduler ADDRESS] [--keep DIR]

`tests.support.injection.installations` says what is drawn, `tests.support.injection.judging` what is true: each test is
simulated again with causes removed. Each call draws anew; the seed is printed, and repeats it. `--keep` keeps what was
simulated in a folder, and uses it again: after a change of detectors the same tests are judged in seconds; after a
change of the simulator, of the distribution or of a removal, take another folder.
"""

import argparse
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.cli.sweep_bar import SweepBar
from harness.planning.sweeps import Sweep, open_workers, usable_cores
from tests.support.injection.installations import Installation, draw
from tests.support.injection.judging import Answer, Truth, Verdict, judged
from tests.support.injection.reliability import Tenth, reliability

_ENOUGH = 20  # findings of a tenth, for its difference to count
FIRST, IN_3, FALSE, UNCONFIRMED, OFF = 0.95, 0.99, 0.02, 0.05, 0.07  # what is promised


@dataclass(frozen=True)
class Test:
    """A drawn test and its verdict."""

    number: int
    installation: Installation
    verdict: Verdict

    @property
    def platform(self) -> str:
        """The platform's kind."""
        return "hetida" if self.installation.profile.hetida is not None else "kfp"


def main() -> int:
    """Print the tables; 1 when a promise is missed."""
    options = _options()
    lines = [f"seed {options.seed}, {options.tests} tests", ""]
    print(lines[0], flush=True)
    tests = [*judge_all(options)]
    kept, table = _accuracy(tests)
    tenths = reliability(each.verdict for each in tests)
    unconfirmed, early = _live(tests)
    lines += [*table, "", *early, "", *_reliability(tenths), "", *_by_finding(tests), "", *_wrong(tests)]
    print("\n".join(lines[2:]))
    if options.show:
        print("\n".join(_shown(each) for each in tests))
    return int(
        not (
            kept
            and unconfirmed <= UNCONFIRMED
            and all(abs(each.off) <= OFF for each in tenths if each.count >= _ENOUGH)
        )
    )


def judge_all(options: argparse.Namespace) -> Iterator[Test]:
    """The drawn tests and their verdicts, in order, whatever they are simulated on."""
    judge = partial(_judged, options.seed, options.keep)
    with SweepBar("") as bar, open_workers(options.jobs, options.scheduler, bar) as workers:
        bar.expect(options.tests)
        yield from Sweep(judge, workers).map(range(options.tests))


def _judged(seed: int, keep: Path | None, number: int) -> Test:
    installation = draw(seed, number)
    place = keep / str(seed) / str(number) if keep is not None else None
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    return Test(number, installation, judged(installation, place))


# --- which finding comes first -----------------------------------------------------------------------------------


def _accuracy(tests: Sequence[Test]) -> tuple[bool, list[str]]:
    bound = [each for each in tests if each.verdict.truth is Truth.BINDS]
    binding = [each for each in bound if each.verdict.answer is not Answer.UNJUDGED]
    quiet = [each for each in tests if each.verdict.truth is not Truth.BINDS]
    groups: dict[str, Callable[[Test], str]] = {
        "": lambda _: "all",
        "platform": lambda each: each.platform,
        "faults": lambda each: str(len(each.installation.case.faults)),
        "observed": lambda each: _observed(each.installation.case.without),
        "best removal": lambda each: each.verdict.best[0],
    }
    lines = [f"{'something binds':34}{'tests':>7}{'first':>8}{'in 3':>8}{'silent':>8}   first instead"]
    for title, key in groups.items():
        lines += [
            _row(f"{title} {name}".strip(), [each.verdict for each in binding if key(each) == name])
            for name in sorted({key(each) for each in binding})
        ]
    wrong = [each.verdict for each in quiet if each.verdict.answer is Answer.FALSE]
    named = Counter(each.first for each in wrong).most_common(6)
    lines += [
        "",
        f"something binds, and its detector can't tell: {_share(len(bound) - len(binding), len(bound))}",
        f"nothing binds: {len(quiet)} tests, of these {_share(len(wrong), len(quiet))} with a false first finding: "
        + (", ".join(f"{name} {count}" for name, count in named) or "none"),
        f"only several removals together would help: {sum(v.verdict.truth is Truth.SEVERAL for v in quiet)} of these",
    ]
    first, three = (_rate([each.verdict for each in binding], among) for among in _GOOD)
    return first >= FIRST and three >= IN_3 and len(wrong) <= FALSE * len(quiet), lines


_GOOD = (frozenset({Answer.RIGHT}), frozenset({Answer.RIGHT, Answer.IN_3}))


def _rate(verdicts: Sequence[Verdict], among: frozenset[Answer]) -> float:
    return sum(each.answer in among for each in verdicts) / max(len(verdicts), 1)


def _row(name: str, verdicts: Sequence[Verdict]) -> str:
    first, three = (_rate(verdicts, among) for among in _GOOD)
    silent = sum(each.answer is Answer.SILENT for each in verdicts)
    instead = Counter(each.first for each in verdicts if each.first and each.answer is not Answer.RIGHT)
    others = ", ".join(f"{found} {count}" for found, count in instead.most_common(4))
    return f"{name:34}{len(verdicts):7}{first:8.0%}{three:8.0%}{silent:8}   {others}".rstrip()


def _share(count: int, of: int) -> str:
    return f"{count} = {count / max(of, 1):.1%}"


def _live(tests: Sequence[Test]) -> tuple[float, list[str]]:
    early = [each for test in tests for each in test.verdict.early]
    wrong = [each.name for each in early if not each.confirmed]
    named = ", ".join(f"{name} {count}" for name, count in Counter(wrong).most_common(6)) or "none"
    line = (
        f"{len(early)} findings while tests went on, of these {_share(len(wrong), len(early))} not confirmed: {named}"
    )
    return len(wrong) / max(len(early), 1), [line]


# --- stated confidence against the truth -------------------------------------------------------------------------


def _reliability(tenths: Sequence[Tenth]) -> list[str]:
    lines = [f"{'confidence':34}{'n':>7}{'stated':>8}{'right':>8}{'off':>8}"]
    for each in tenths:
        name = f"{each.low:.0%} to {each.low + 0.1:.0%}"
        lines.append(f"{name:34}{each.count:7}{each.stated:8.0%}{each.right:8.0%}{each.off:+8.0%}")
    return lines


def _by_finding(tests: Sequence[Test]) -> list[str]:
    found = [named for each in tests for named in each.verdict.named]
    lines = [f"{'finding':34}{'n':>7}{'stated':>8}{'right':>8}"]
    for name in sorted({each.name for each in found}):
        of = [each for each in found if each.name == name]
        stated, right = (sum(values) / len(of) for values in ([e.confidence for e in of], [e.right for e in of]))
        lines.append(f"{name:34}{len(of):7}{stated:8.0%}{right:8.0%}")
    return lines


# --- single tests ------------------------------------------------------------------------------------------------


def _observed(without: frozenset[str]) -> str:
    if not without:
        return "all"
    return "all but Argo's metrics" if without == {"controller metrics"} else "less"


_BAD = frozenset({Answer.IN_3, Answer.SILENT, Answer.WRONG, Answer.FALSE})


def _wrong(tests: Sequence[Test]) -> list[str]:
    return ["not right first:", *(_shown(each) for each in tests if each.verdict.answer in _BAD)]


def _shown(test: Test) -> str:
    case, verdict = test.installation.case, test.verdict
    faults = " + ".join(case.injected) or "no fault"
    unseen = f", without {', '.join(sorted(case.without))}" if case.without else ""
    name, gain = verdict.best
    named = ", ".join(f"{each.name} {each.confidence:.0%} ({each.gain:.1f})" for each in verdict.named) or "nothing"
    return (
        f"{test.number} {verdict.answer} [{test.platform}, {faults}{unseen}]: best {name} ({gain:.1f}), named {named}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=200, help="drawn tests (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="default: another each time")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes (default: cores)")
    parser.add_argument("--scheduler", default="", metavar="tcp://HOST:PORT", help="a Dask scheduler's workers instead")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was simulated, and use it again")
    parser.add_argument("--show", action="store_true", help="print every test, not only those with a wrong answer")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

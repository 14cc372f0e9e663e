"""Are comparisons of five tests with five right? By how much tests of one platform differ (their spread):

- false alarms: equal variants that are said to differ;
- found: how often 20 % more is found, beside what the most powerful test of that level can find (Student's t);
- found as said: how often new tests find the change that equal ones were said to show, which is 80 %.

    python benchmarks/comparisons.py [--trials 1000] [--seed N]
"""

import argparse
import sys
from math import log, sqrt
from statistics import fmean

import numpy as np
from scipy.stats import nct, t

from harness.analysis.stats.compare import ALPHA, Comparison, Measurement, compare

SPREADS = 0.05, 0.08, 0.12, 0.2  # standard deviations of the logarithm
TESTS, MORE = 5, 0.2
POWER, NEAR = 0.8, 0.04  # what is promised, and how far the best test and the statement may be from it
PROMISED = 0.08  # the spread up to which the docs promise to find MORE


def main() -> int:
    """Print a row for each spread; 1 when a promise of the docs is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    print(
        f"{'spread':>7} {'trials':>7} {'false alarms':>13} {'20 % more found':>16} {'at most':>8} {'found as said':>14}"
    )
    kept = [row(spread, arguments.trials, arguments.seed) for spread in SPREADS]
    return 0 if all(kept) else 1


def row(spread: float, trials: int, seed: int) -> bool:
    """Print a row; true when it is as promised, to 2.6 standard errors (99 %).

    Where tests differ so much that noise outgrows every change, none is said to be found.
    """
    random = np.random.default_rng((seed, round(1000 * spread)))
    equal = [compared(spread, 0.0, random) for _ in range(trials)]
    alarms = fmean(each.significant for each in equal)
    more = fmean(compared(spread, MORE, random).significant for _ in range(trials))
    said = [each.detectable for each in equal if each.detectable is not None]
    as_said = fmean(compared(spread, change, random).significant for change in said)
    best = most_power(spread)
    print(f"{spread:>7.0%} {trials:>7} {alarms:>13.1%} {more:>16.1%} {best:>8.1%} {as_said:>14.1%}", flush=True)

    def error(share: float) -> float:
        return 2.6 * sqrt(share * (1 - share) / trials)

    return (
        alarms <= ALPHA + error(ALPHA)
        and (spread > PROMISED or more >= POWER)
        and abs(more - best) <= NEAR + error(best)
        and abs(as_said - POWER) <= NEAR + error(POWER)
    )


def most_power(spread: float) -> float:
    """The power of the two-sided t test of lognormal durations, the uniformly most powerful unbiased test."""
    freedom, shift = 2 * TESTS - 2, log(1 + MORE) / spread * sqrt(TESTS / 2)
    critical = t.isf(ALPHA / 2, freedom)
    return float(nct.sf(critical, freedom, shift) + nct.cdf(-critical, freedom, shift))


def compared(spread: float, change: float, random: np.random.Generator) -> Comparison:
    """Five tests against five of a variant whose metric is higher by `change`."""
    rows = [
        Measurement(variant, "", str(k), "makespan (s)", float(level * np.exp(spread * random.standard_normal())))
        for variant, level in (("a", 100.0), ("b", 100.0 * (1 + change)))
        for k in range(TESTS)
    ]
    (found,) = compare(rows, random, paired=False)
    return found


if __name__ == "__main__":
    sys.exit(main())

"""Closed forms for a step on a machine that is taken back at random: attempts, work, and the chance to succeed.

Losses are a Poisson process of rate r, independent of the work. A step of length s is done in m equal segments of
length c = s / m, each kept by a checkpoint (m = 1 is a step without checkpoints); a loss repeats the segment at hand.
One try of a segment succeeds with p = exp(-r c) and takes min(T, c), T exponential, so (1 - p) / r on average.

* Without a limit the expected work is m (exp(r c) - 1) / r, and there are m (1 - p) / p losses (Daly, Future Generation
  Computer Systems 22, 2006, without the cost of checkpoints; for m = 1 already Duda, Information Processing Letters 16,
  1983).
* With k retries the step fails with the loss number k + 1. Losses before the m-th success of independent tries are
  negative binomial (Feller, An Introduction to Probability Theory 1, VI.8), so the step succeeds with
  P(N <= k), N ~ NB(m, p).
* The number of losses that happen is min(N, k + 1), with the mean sum over j = 0 … k of P(N > j). Tries end at a
  stopping time, so that by Wald's equation losses = tries (1 - p), and work = tries (1 - p) / r = losses / r.
"""

from dataclasses import dataclass
from math import exp, inf


@dataclass(frozen=True, slots=True)
class Expected:
    """What is to be expected of one step.

    Attributes:
        success: the probability that it succeeds.
        attempts: pods of the step.
        work_s: seconds that they run.
        lost_s: the part of it that no succeeded step contains.
    """

    success: float
    attempts: float
    work_s: float
    lost_s: float


def expected(length_s: float, rate: float, retries: float = inf, segments: int = 1) -> Expected:
    """Expectations for a step.

    Args:
        length_s: of the step without any loss.
        rate: losses per second of its work.
        retries: attempts after the first; inf for no limit.
        segments: equal parts that checkpoints divide the step into; 1 for none.
    """
    if rate <= 0 or length_s <= 0:
        return Expected(1.0, 1.0, length_s, 0.0)
    kept = exp(-rate * length_s / segments)  # p
    if retries == inf:
        losses = segments * (1 - kept) / kept
        return Expected(1.0, 1 + losses, losses / rate, losses / rate - length_s)
    within = _at_most(int(retries), segments, kept)
    success, losses = within[-1], sum(1 - each for each in within)
    work_s = losses / rate
    # The last loss of a step that fails is followed by no attempt.
    return Expected(success, 1 + losses - (1 - success), work_s, work_s - success * length_s)


def _at_most(most: int, segments: int, kept: float) -> list[float]:
    """P(N <= k) for k = 0 … `most`: N losses before as many segments as there are succeed."""
    term = total = kept**segments
    found = [total]
    for losses in range(1, most + 1):
        term *= (segments - 1 + losses) / losses * (1 - kept)
        total += term
        found.append(min(total, 1.0))
    return found

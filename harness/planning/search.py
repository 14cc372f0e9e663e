"""One search for where candidates, ordered from easy to hard, stop passing.

Easy to hard means loads ascending, or numbers of nodes descending: the largest load that a platform can handle and the
fewest nodes that can handle a load are the same search. It is a pure function of the results so far, so an interrupted
search continues where it stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a candidate passed and failed."""

    passes: int = 0
    fails: int = 0

    @property
    def trials(self) -> int:
        """Passes and fails together."""
        return self.passes + self.fails

    def settled(self, repetitions: int) -> bool:
        """Whether the remaining trials can no longer change the majority."""
        return 2 * max(self.passes, self.fails) > repetitions or self.trials >= repetitions

    def after(self, *, passed: bool) -> "Tally":
        """The tally with one more trial."""
        return Tally(self.passes + passed, self.fails + (not passed))


Tallies = Mapping[int, Tally]  # by the candidate's index


@dataclass(frozen=True, slots=True)
class Search:
    """Finds where `count` candidates, easy first, stop passing.

    Attributes:
        count: of candidates.
        repetitions: trials at the boundary, where the majority decides; odd. Elsewhere one trial is enough.
        guess: the index to start with; none is the middle.
    """

    count: int
    repetitions: int = 1
    guess: int | None = field(default=None)

    def boundary(self, tallies: Tallies) -> int:
        """How many candidates pass: the cut that contradicts the fewest trials; the lowest of equals."""
        tried = sorted(tallies)
        best, least = 0, sum(tallies[at].passes for at in tried)
        contradictions = least
        for at in tried:
            contradictions += tallies[at].fails - tallies[at].passes
            if contradictions < least:
                best, least = at + 1, contradictions
        return best

    def possible(self, tallies: Tallies) -> tuple[int, int]:
        """The least and the most candidates that may pass: no trial failed below, none passed above."""
        cut = self.boundary(tallies)
        failed = min((at for at, tally in tallies.items() if tally.fails), default=cut)
        passed = max((at + 1 for at, tally in tallies.items() if tally.passes), default=cut)
        return min(failed, cut), max(passed, cut)

    def next(self, tallies: Tallies) -> int | None:
        """The index to try next; none when the boundary is known."""
        cut = self.boundary(tallies)
        passing = max((at for at in tallies if at < cut), default=-1)
        failing = min((at for at in tallies if at >= cut), default=self.count)
        if failing - passing > 1:
            return self._between(passing, failing, tallies)
        # The neighbours of the boundary, and candidates that contradict it, are tried until they are settled.
        doubtful = {passing, failing} & set(tallies) | set(self.contradictions(tallies))
        unsettled = [at for at in doubtful if not tallies[at].settled(self.repetitions)]
        return min(unsettled, key=lambda at: (tallies[at].trials, abs(at - cut), at), default=None)

    def contradictions(self, tallies: Tallies) -> tuple[int, ...]:
        """Indices whose majority is on the wrong side of the boundary: passing is not monotone there."""
        cut = self.boundary(tallies)
        tried = sorted(tallies.items())
        return tuple(at for at, of in tried if (of.fails > of.passes if at < cut else of.passes > of.fails))

    def _between(self, passing: int, failing: int, tallies: Tallies) -> int:
        """The guess first, then in growing steps away from it; once both sides are known, the middle."""
        if self.guess is not None:
            guess = min(max(self.guess, 0), self.count - 1)
            if not tallies:
                return guess
            if failing == self.count:
                return min(passing + (1 << sum(at > guess for at in tallies)), self.count - 1)
            if passing == -1:
                return max(failing - (1 << sum(at < guess for at in tallies)), 0)
        return (passing + failing) // 2


def largest_passing(
    candidates: Sequence[T], passes: Callable[[T], bool], *, repetitions: int = 1, guess: int | None = None
) -> T | None:
    """The hardest of `candidates`, easy first, that passes; none when even the easiest fails.

    For the fewest nodes that pass, give the numbers of nodes descending.
    """
    search = Search(len(candidates), repetitions, guess)
    tallies: dict[int, Tally] = {}
    while (at := search.next(tallies)) is not None:
        tallies[at] = tallies.get(at, Tally()).after(passed=passes(candidates[at]))
    cut = search.boundary(tallies)
    return candidates[cut - 1] if cut else None

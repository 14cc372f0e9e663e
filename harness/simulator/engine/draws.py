"""Random numbers that depend on what they are drawn for, and not on when: common random numbers.

A step computes as long on a platform with four times the nodes as on the one that it is compared with, whichever steps
come before it there. What differs between two simulations with the same seed is then the platform's doing (Law,
Simulation Modeling and Analysis, 5th ed., 11.2).
"""

from random import Random

_BITS = 32  # of each part of a key


class Draws:
    """A random stream for each part of each run.

    Args:
        stream: the name of all streams together, with the simulation's seed.
    """

    def __init__(self, stream: str) -> None:
        self._base = Random(stream).getrandbits(_BITS)
        self._random = Random()

    def of(self, run: int, part: int, attempt: int) -> Random:
        """The stream of an attempt at a part of a run, from its beginning; valid until the next call.

        Args:
            run: its number, in the order of arrival.
            part: which of its steps; below 2 ** 32, as `run` and `attempt`.
            attempt: each has draws of its own.
        """
        self._random.seed((((self._base << _BITS | run) << _BITS | part) << _BITS) | attempt)
        return self._random

"""A pod's image pulls, from the kubelet's events: their ends in whole seconds, their lengths to a millisecond."""

import re
from dataclasses import dataclass

from harness.collectors.kubernetes.timestamps import Stamp
from harness.model.errors import ConfigError
from harness.model.units import parse_duration

_IMAGE = re.compile(r'image "([^"]+)"')
_PULL_TIMES = re.compile(r"\bin ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)(?: \(((?:\d+(?:\.\d+)?(?:h|ms|m|s))+) including)?")


@dataclass(slots=True)
class Pull:
    """One image that is pulled for one container."""

    image: str
    start: Stamp
    end: Stamp | None = None
    length_s: float | None = None  # as the kubelet measured it, when one attempt was all
    guessed: bool = False  # its end was seen before its beginning

    def narrowed(self, before: Stamp) -> tuple[Stamp, Stamp | None]:
        """Its beginning and its end, each as near as the other one, the length and what was `before` tell."""
        if self.end is None or self.length_s is None:
            return self.start, self.end
        length = round(self.length_s * 1e9)
        earliest = max(self.start.at, self.end.at - length)
        latest = min(self.start.latest, self.end.latest - length)
        if latest < earliest:
            return self.start, self.end
        if before.at <= latest:
            earliest = max(earliest, before.at)
        width_s = (latest - earliest) / 1e9
        return Stamp(earliest, width_s), Stamp(earliest + length, width_s)


class Pulls:
    """The pulls of one pod. Events may be seen again, and ends before beginnings."""

    __slots__ = ("_pulls",)

    def __init__(self) -> None:
        self._pulls: list[Pull] = []

    def in_order(self) -> list[Pull]:
        """All of them, as they began."""
        return sorted(self._pulls, key=lambda each: each.start.at)

    def see_begun(self, message: str, first: Stamp) -> None:
        """A pull began: ``Pulling image "python:3.11"``."""
        image = _image(message)
        mine = [each for each in self._pulls if each.image == image]
        if any(each.start == first for each in mine):
            return  # the same event once more
        guessed = next((each for each in mine if each.guessed), None)
        if guessed:
            guessed.start, guessed.guessed = first, False
        else:
            self._pulls.append(Pull(image, first))

    def see_ended(self, message: str, last: Stamp) -> None:
        """A pull ended: ``Successfully pulled image "python:3.11" in 2.3s (2.5s including waiting)``.

        The longer length counts: the kubelet says that it pulls before it waits for other pulls. What was on the node
        already, and so says no length, was not pulled.
        """
        image, times = _image(message), _PULL_TIMES.search(message)
        if times is None:
            return
        length_s = max(_seconds(each) for each in times.groups() if each)
        begun = next((each for each in self._pulls if each.image == image and each.end is None), None)
        if begun is None:
            if not any(each.image == image and each.end == last for each in self._pulls):
                start = Stamp(last.at - round(length_s * 1e9), last.resolution_s)
                self._pulls.append(Pull(image, start, last, length_s, guessed=True))
            return
        begun.end = last
        # Where attempts failed before, the message tells of the last one only.
        if abs((last.at - begun.start.at) / 1e9 - length_s) <= 1.0 + last.resolution_s:
            begun.length_s = length_s


def _image(message: str) -> str:
    found = _IMAGE.search(message)
    return found[1] if found else ""


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ConfigError:
        return 0.0

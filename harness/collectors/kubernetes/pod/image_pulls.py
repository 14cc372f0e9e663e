"""A pod's image pulls, from the kubelet's events: ends in whole seconds, lengths in milliseconds."""

import re
from dataclasses import KW_ONLY, dataclass

from harness.collectors.kubernetes.timestamps import Stamp
from harness.model import ConfigError, parse_duration

_IMAGE = re.compile(r'image "([^"]+)"')
_PULL_TIMES = re.compile(r"\bin ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)(?: \(((?:\d+(?:\.\d+)?(?:h|ms|m|s))+) including)?")


@dataclass(slots=True)
class Pull:
    """The pull of one image for one container.

    Attributes:
        length_s: as the kubelet measured it; none unless the first attempt succeeded.
        guessed: the start was derived, because the end was seen first.
    """

    image: str
    start: Stamp
    end: Stamp | None = None
    length_s: float | None = None
    _: KW_ONLY
    guessed: bool = False

    def narrowed(self, before: Stamp) -> tuple[Stamp, Stamp | None]:
        """Start and end, each narrowed by the other one, the length, and the boundary `before` the start."""
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
    """The pulls of one pod. Events may repeat, and ends may arrive before starts."""

    __slots__ = ("_pulls",)

    def __init__(self) -> None:
        self._pulls: list[Pull] = []

    def in_order(self) -> list[Pull]:
        """All pulls by their start."""
        return sorted(self._pulls, key=lambda pull: pull.start.at)

    def see_start(self, message: str, first: Stamp) -> None:
        """A pull starts: ``Pulling image "python:3.11"``."""
        image = _image(message)
        mine = [pull for pull in self._pulls if pull.image == image]
        if any(pull.start == first for pull in mine):
            return  # a repeated event
        guessed = next((pull for pull in mine if pull.guessed), None)
        if guessed:
            guessed.start, guessed.guessed = first, False
        else:
            self._pulls.append(Pull(image, first))

    def see_end(self, message: str, last: Stamp) -> None:
        """A pull ends: ``Successfully pulled image "python:3.11" in 2.3s (2.5s including waiting)``.

        The longer length counts: the kubelet announces a pull before it waits for other pulls. A message without a
        length is about an image that was present on the node, so nothing was pulled.
        """
        image, times = _image(message), _PULL_TIMES.search(message)
        if times is None:
            return
        length_s = max(_seconds(group) for group in times.groups() if group)
        open_pull = next((pull for pull in self._pulls if pull.image == image and pull.end is None), None)
        if open_pull is None:
            if not any(pull.image == image and pull.end == last for pull in self._pulls):
                start = Stamp(last.at - round(length_s * 1e9), last.resolution_s)
                self._pulls.append(Pull(image, start, last, length_s, guessed=True))
            return
        open_pull.end = last
        # After failed attempts, the message gives the length of the last attempt only.
        if abs((last.at - open_pull.start.at) / 1e9 - length_s) <= 1.0 + last.resolution_s:
            open_pull.length_s = length_s


def _image(message: str) -> str:
    match = _IMAGE.search(message)
    return match[1] if match else ""


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ConfigError:
        return 0.0

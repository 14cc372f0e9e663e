"""What benchmarks print, and how it is kept: with the machine, the commit, and what was missed or not measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psutil

_FENCE = "\n```"


class Table:
    """Prints each row as it is known.

    Attributes:
        failed: a row missed its bound, or the machine was too busy to tell.
    """

    def __init__(self, widths: tuple[int, int, int] = (68, 14, 12)) -> None:
        self.failed = False
        self._widths = widths
        self._print("what", "measured", "bound", "verdict")

    def row(
        self, what: str, measured: str, bound: str = "", kept: bool = True, beside: str = "", *, busy: bool = False
    ) -> None:
        """A figure, and its bound, if it has one: whether that was kept; a `busy` machine leaves it open if not."""
        verdict = "" if not bound else "met" if kept else "not measured: the machine is busy" if busy else "MISSED"
        self.failed |= bool(bound) and not kept
        self._print(what, measured, bound, f"{verdict}{f'   ({beside})' if beside else ''}")

    def _print(self, what: str, measured: str, bound: str, verdict: str) -> None:
        first, second, third = self._widths
        print(f"{what:{first}}{measured:>{second}}{bound:>{third}}  {verdict}".rstrip(), flush=True)


def described(tree: Path) -> str:
    """Date, commit, processor, cores, memory, interpreter, and how busy the machine is, as one sentence."""
    memory_gb = psutil.virtual_memory().total / 1e9
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit(tree)}, {os.cpu_count()} cores of {processor()}, "
        f"{memory_gb:.0f} GB, {platform.system()}, {platform.python_implementation()} {platform.python_version()}, "
        f"load average before it {os.getloadavg()[0]:.1f}."
    )


def commit(tree: Path) -> str:
    """Abbreviated, with "and changes" where files differ from it; "unknown" outside of a clone."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    found = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results")
    return f"{found} and changes" if found and changed else found or "unknown"


def processor() -> str:
    """Its model's name as Linux has it, else the kind."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine() or "an unknown processor")


def kept(page: Path, name: str) -> str:
    """What stands before the figures, which `written` begins with a line of its own."""
    if not page.exists():
        return f"# {name.capitalize()}\n"
    head, _, _ = page.read_text(encoding="utf-8").partition(_FENCE)
    lines = head.splitlines()
    while lines and (not lines[-1] or lines[-1].startswith("`python benchmarks/")):
        lines.pop()
    return "\n".join(lines) + "\n"


def written(told: str, output: str) -> str:
    """The figures as a page ends with them."""
    return f"\n{told}\n{_FENCE}\n{output.rstrip()}\n```\n"

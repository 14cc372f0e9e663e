"""``make rehearse``: run the main job against the real parts at hand, and compare what it tells with what happened.

``make rehearse ARGS=--table`` makes the situations of the truth table, and writes ``benchmarks/results/real.md``.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.e2e import ROOT
from tests.support.real_parts.building import build_missing
from tests.support.real_parts.checks import Check
from tests.support.real_parts.platform import REAL_KFP, perform_on_platform
from tests.support.situations import account
from tests.support.situations.controller import program
from tests.support.situations.perform import Outcome, judged
from tests.support.situations.rehearsing import made
from tests.support.situations.situation import Situation
from tests.support.situations.table import SITUATIONS

_MOST_SHOWN = 300
_PAGE = ROOT / "benchmarks/results/real.md"
_NAMES = [each.name for each in SITUATIONS]
_RIGHT = 0.9


def main() -> int:
    """0 if everything that was checked is as expected, else 1; also if there was nothing to rehearse with."""
    parser = argparse.ArgumentParser(prog="make rehearse", description=__doc__)
    parser.add_argument("--table", action="store_true", help="make all situations of the truth table; write its page")
    parser.add_argument("--only", nargs="+", default=[], choices=_NAMES, metavar="NAME", help=f"of {', '.join(_NAMES)}")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep the situations' run folders there")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="make nothing: judge run folders kept there")
    parser.add_argument("--build", action="store_true", help="build missing programs with Go, once")
    asked = parser.parse_args()
    if asked.build:
        build_missing()
    if asked.table or asked.only or asked.judge:
        chosen = [each for each in SITUATIONS if each.name in (asked.only or _NAMES)]
        with tempfile.TemporaryDirectory(prefix="situations-") as place:
            return tell(_outcomes(chosen, Path(place), asked), whole=asked.table)
    return rehearse()


def _outcomes(chosen: Sequence[Situation], place: Path, asked: argparse.Namespace) -> Iterator[Outcome]:
    if asked.judge:
        return (judged(each, asked.judge, place) for each in chosen if (asked.judge / each.name).is_dir())
    return made(chosen, place, asked.record)


def tell(outcomes: Iterable[Outcome], *, whole: bool) -> int:
    """0 if the first finding is right in nine of ten, none is false at 80 %, and the records are what happened."""
    done = []
    try:
        for outcome in outcomes:
            done.append(outcome)
            print(account.line(outcome), flush=True)
            if any(not check.met for check in outcome.checks):
                show(outcome.situation.name, outcome.checks)
    except pytest.skip.Exception as missing:
        print(f"the situations need a part that is missing: {missing}\n--build builds what Go can build")
        return 1
    right = sum(each.is_right for each in done)
    false = [each.situation.name for each in done if account.false_of(each)]
    print(f"\nfirst right in {right} of {len(done)}; false at 80 % or more in: {', '.join(false) or 'none'}")
    if whole:
        _PAGE.write_text(account.page(done))
        print(f"written: {_PAGE.relative_to(ROOT)}")
    met = all(check.met for each in done for check in each.checks)
    return 0 if met and right >= _RIGHT * len(done) and not false else 1


def rehearse() -> int:
    """The short form of the truth table, and a few runs of a real platform, where the parts are at hand."""
    codes = []
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        try:
            program()
        except pytest.skip.Exception as missing:
            print(missing)
        else:
            codes.append(tell(made([each for each in SITUATIONS if each.short], Path(folder)), whole=False))
        if address := os.environ.get(REAL_KFP, ""):
            codes.append(show("real platform", perform_on_platform(address, Path(folder) / "platform")))
        else:
            print(f"{REAL_KFP} is not set: it is the address of a KFP API, as --host takes it")
    return max(codes, default=1)


def show(scene: str, checks: Sequence[Check]) -> int:
    """Print checks as a table; 1 if one is not met."""
    wide = max((len(check.what) for check in checks), default=0)
    print(f"\n{scene}")
    for check in checks:
        said = "as expected" if check.met else f"NOT MET: expected {_short(check.expected)}, seen {_short(check.seen)}"
        print(f"  {check.what:{wide}}  {said}", flush=True)
    return int(any(not check.met for check in checks))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


if __name__ == "__main__":
    sys.exit(main())

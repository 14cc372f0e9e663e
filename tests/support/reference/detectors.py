"""What each detector looks at, from which sources, and the fix that it proposes for its handwritten test."""

from pathlib import Path
from tempfile import TemporaryDirectory

from harness.detectors import Detector, detectors
from harness.detectors.diagnosis import uses
from tests.support.injected.every_fault import INJECTED
from tests.support.injected.faults import FAULTS
from tests.support.reference.markdown import page as whole
from tests.support.reference.markdown import table, text

_INTRODUCTION = (
    "A detector looks for one bottleneck, or one doubt about the test. Evidence, fix and commands are those of one "
    "example each: a report has the names, numbers and sizes of your platform. "
    "[Observation](../observation.md) says from which sources each one works, and what its verdict lacks without one."
)


def page() -> str:
    """The page of detectors."""
    with TemporaryDirectory() as place:
        sections = [line for each in detectors() for line in section(each, Path(place))]
    return whole("Detectors", _INTRODUCTION, [*overview(), *sections])


def overview() -> list[str]:
    """Tables of all detectors: those of bottlenecks, then those of doubts about the test."""
    rows: dict[bool, list[tuple[str, ...]]] = {False: [], True: []}
    for each in detectors():
        targets = ", ".join(getattr(each, "TARGETS", ()))
        rows[getattr(each, "DOUBT", False)].append((_link(each.NAME), _joined(each.__doc__), targets))
    return [
        *table(("bottleneck", "what it finds", "only of"), rows[False]),
        *table(("doubt about the test", "what it finds", "only of"), rows[True]),
    ]


def section(detector: Detector, place: Path) -> list[str]:
    """The lines about one detector; its example is stored at `place`."""
    example = detector.detect(INJECTED[detector.NAME]().timeline(place / detector.NAME))[0]
    needed = [each for each, loses in uses(detector).items() if not loses]
    used = [f"{each} (without it, the verdict lacks {loses})" for each, loses in uses(detector).items() if loses]
    faults = ", ".join(f"`--fault {each}`" for each in FAULTS.get(detector.NAME, ()))
    facts = {
        "Looks at": _joined(detector.detect.__doc__),
        "Platforms": ", ".join(getattr(detector, "TARGETS", ())),
        "Needs": ", ".join(needed),
        "Uses": ", ".join(used),
        "Explained by": ", ".join(_link(each) for each in getattr(detector, "EXPLAINED_BY", {})),
        "Example": text(example.title),
        "Fix": example.fix,
        "Injected by": faults,
    }
    commands = ["", "```text", *example.commands, "```"] if example.commands else []
    evidence = [f"  * {text(each.statement)}" for each in example.evidence]
    return [
        f"## {detector.NAME}",
        "",
        _joined(detector.__doc__),
        "",
        *(
            line
            for name, fact in facts.items()
            if fact
            for line in (f"* {name}: {fact}", *(evidence if name == "Example" else ()))
        ),
        *commands,
        "",
    ]


def _joined(docstring: str | None) -> str:
    """A docstring's first paragraph as one line."""
    return " ".join((docstring or "").partition("\n\n")[0].split())


def _link(name: str) -> str:
    """To the detector's section, or to the row of the catalogue."""
    page = "" if name in {each.NAME for each in detectors()} else "reasons.md"
    return f"[{name}]({page}{'' if page else f'#{name}'})"

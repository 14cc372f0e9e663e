"""What could not be judged, or only with less: as tables, and as lines for a terminal."""

from collections.abc import Iterable, Iterator

from harness.analysis.result import Result
from harness.model.findings import Lack, by_sources
from reports.tables import Column, Table

_LACKED = Column("Missing (what shows it)", long=True)


def silent_table(result: Result) -> Table:
    """Detectors without a verdict: why, and what they lacked."""
    rows = tuple((judged.name, judged.reason, lacked_text(judged.lacked)) for judged in result.not_judged)
    return Table("Not judged", (Column("Detector", whole=True), Column("Reason", long=True), _LACKED), rows)


def less_table(result: Result) -> Table:
    """Detectors that judged without some of the observations that they use."""
    rows = tuple(
        (judged_with_less.name, lack.loses, lacked_text((lack,)))
        for judged_with_less in result.diagnosis.judged_with_less
        for lack in judged_with_less.lacked
    )
    columns = (Column("Detector", whole=True), Column("What its verdict lacks", long=True), _LACKED)
    return Table("Judged with less", columns, rows)


def lacked_text(lacked: Iterable[Lack]) -> str:
    """Kinds of observation by what would show them: ``pods, nodes (Kubernetes access)``."""
    of_sources: dict[str, list[str]] = {}
    for lack in lacked:
        of_sources.setdefault(lack.sources, []).append(lack.observation)
    return "; ".join(f"{', '.join(kinds)} ({sources})" for sources, kinds in of_sources.items())


def lines(result: Result) -> Iterator[str]:
    """For a terminal: the detectors, by the sources that they lacked; the other reasons are in the report."""
    with_less = result.diagnosis.judged_with_less
    for word, judgements in (("Not judged", result.not_judged), ("Judged with less", with_less)):
        groups = [
            f"{', '.join(names)} ({f'missing: {sources}' if sources else 'see the report'})"
            for sources, names in by_sources(judgements).items()
        ]
        if groups:
            yield f"{word}: {'; '.join(groups)}"

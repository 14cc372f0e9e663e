"""Arrivals that were never sent or never recorded: the load was less than planned."""

from harness.analysis.ledger import in_words, ledger, missing
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke

NAME = "missed-arrivals"
NEEDS = (Capability.SUBMISSIONS,)
DOUBT = True
_SEND = "Raise --max-in-flight, add workers, or let the test run to the end of its schedule."
_RECOVER = (
    "Add what the load or its workers kept: on their machines, pipeswarm recover RUN [SPOOL]; the spools are the files "
    "pipeswarm-spool-* in their TMPDIR."
)


def detect(timeline: Timeline) -> list[Finding]:
    """Ledger rows with outcome missed, and missing rows."""
    counts = ledger(timeline)
    short = counts.missed + max(counts.unaccounted, 0)
    if not short:
        return []
    causes = timeline.runs[timeline.runs["outcome"] == "missed"]["error"].value_counts(sort=True)
    facts = [
        Evidence(f"{count:,} were not sent: {cause}", float(count), "arrivals", "submissions", "outcome = missed")
        for cause, count in sorted(causes.items(), key=lambda item: (-item[1], str(item[0])))[:3]
    ]
    if counts.unaccounted > 0:
        listed = in_words(missing(timeline))
        facts.append(Evidence(f"{counts.unaccounted:,} were never recorded: seq {listed}", float(counts.unaccounted)))
    return [
        Finding(
            NAME,
            f"{counts.share(short):.1%} of the arrivals were never {'sent' if counts.missed else 'recorded'}",
            0.99,
            tuple(facts),
            _SEND if counts.missed else _RECOVER,
            (),
            broke(counts.share(short)),
        )
    ]

"""What `make reference` writes from the code and the schemas: pages of docs/reference, docs/options.md, one table."""

from collections.abc import Callable

from generators.schema import Schema
from tests.support import detector_sources
from tests.support.e2e import ROOT
from tests.support.reference import commands, detectors, durability, metrics, options, reasons, schemas

_DOCS = ROOT / "docs"
REPORT = Schema(ROOT / "reports" / "report.schema.json")
SPEC = Schema(ROOT / "generators" / "scenario-spec.schema.json")
WORKLOAD = Schema(ROOT / "generators" / "workload.schema.json")

PAGES: dict[str, Callable[[], str]] = {
    "options.md": options.page,
    "reference/commands.md": commands.page,
    "reference/detectors.md": detectors.page,
    "reference/durability.md": durability.page,
    "reference/metrics.md": metrics.page,
    "reference/reasons.md": reasons.page,
    "reference/report-json.md": lambda: schemas.report(REPORT.content()),
    "reference/scenario-spec.md": lambda: schemas.spec(SPEC.content()),
    "reference/workload.md": lambda: schemas.workload(WORKLOAD.content()),
}

_SOURCES = _DOCS / "observation.md"
_BEGIN, _END = "<!-- detectors: make reference -->\n", "\n<!-- end -->"


def sources() -> str:
    """The table of the detectors' sources, as it is on its page."""
    return _SOURCES.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]


def write() -> None:
    """Write all pages, and the table."""
    for name, page in PAGES.items():
        (_DOCS / name).write_text(page(), encoding="utf-8")
    whole = _SOURCES.read_text(encoding="utf-8")
    _SOURCES.write_text(whole.replace(sources(), detector_sources.table()), encoding="utf-8")

"""The pages of docs/reference and docs/options.md, from the code and the schemas that they describe: make reference."""

from collections.abc import Callable

from generators.schema import Schema
from harness.cli.loading import options
from harness.targets.discovery import names
from tests.support.e2e import ROOT
from tests.support.reference import commands, detectors, durability, metrics, reasons, schemas

_DOCS = ROOT / "docs"
REPORT = Schema(ROOT / "reports" / "report.schema.json")
SPEC = Schema(ROOT / "generators" / "scenario-spec.schema.json")
WORKLOAD = Schema(ROOT / "generators" / "workload.schema.json")

PAGES: dict[str, Callable[[], str]] = {
    "options.md": lambda: f"{options.markdown(options.sections(names()))}\n",
    "reference/commands.md": commands.page,
    "reference/detectors.md": detectors.page,
    "reference/durability.md": durability.page,
    "reference/metrics.md": metrics.page,
    "reference/reasons.md": reasons.page,
    "reference/report-json.md": lambda: schemas.report(REPORT.content()),
    "reference/scenario-spec.md": lambda: schemas.spec(SPEC.content()),
    "reference/workload.md": lambda: schemas.workload(WORKLOAD.content()),
}


def write() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (_DOCS / name).write_text(page(), encoding="utf-8")

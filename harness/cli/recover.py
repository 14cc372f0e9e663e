"""``pipeswarm recover RUN [SPOOL…]``: add what workers recorded and their master never received to a run folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing

if TYPE_CHECKING:
    from harness.store.recovery import Recovered


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument(
        "spools", type=Path, nargs="*", metavar="SPOOL",
        help="files that workers named when they lost their master (default: those of this run on this machine, "
        "which are deleted afterwards)",
    )  # fmt: skip
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Merge the spools, each record once, and write the reports again."""
    from harness.cli.report import rebuild
    from harness.model.errors import ConfigError, ExitCode
    from harness.store.folder import RunFolder
    from harness.store.recovery import merge_spool
    from harness.store.spools import leftovers

    folder = RunFolder.open(arguments.run)
    test = folder.read_plan().id
    found = leftovers(test) if test and not arguments.spools else []
    if not (arguments.spools or found):
        raise ConfigError(
            f"there is no spool of {folder.path} on this machine",
            "give the files that the workers named: they say where",
        )
    merged = {spool: merge_spool(folder, spool) for spool in arguments.spools or found}
    for spool in found:
        spool.unlink(missing_ok=True)
    result = rebuild(folder)
    printing.show(arguments, lambda: _text(merged, result.verdict_text), lambda: _document(merged, result.verdict))
    return ExitCode.OK


def _text(merged: "dict[Path, Recovered]", verdict: str) -> str:
    return "\n".join([*(f"{spool}: {recovered}" for spool, recovered in merged.items()), verdict])


def _document(merged: "dict[Path, Recovered]", verdict: str) -> str:
    import orjson

    spools = [{"spool": str(spool), "recovered": recovered} for spool, recovered in merged.items()]
    return orjson.dumps({"spools": spools, "verdict": verdict}).decode()

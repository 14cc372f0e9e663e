"""``pipeswarm recover RUN [SPOOL…]``: add what its load or workers could not write any more to a run folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """Merge the spools, each record once, add runs found on the platform, and write the reports again."""
    from harness.cli.report import rebuild
    from harness.model.errors import ConfigError, ExitCode
    from harness.store.folder import RunFolder
    from harness.store.recovery import recover

    folder = RunFolder.open(arguments.run)
    merged, found = recover(folder, arguments.spools)
    if not (merged or found):
        raise ConfigError(
            f"there is no spool of {folder.path} on this machine, and no further run of it was seen on the platform",
            "give the files that the workers named: they say where",
        )
    for spool in () if arguments.spools else merged:
        spool.unlink(missing_ok=True)
    result = rebuild(folder)
    printing.show(
        arguments,
        lambda: "\n".join((*said(merged, found), result.verdict_text)),
        lambda: _document(merged, found, result.verdict),
    )
    return ExitCode.OK


def said(merged: "Mapping[Path, Recovered]", found: int) -> list[str]:
    """What was added, one sentence for each source; nothing where all was known."""
    sentences = [f"{spool}: {recovered}" for spool, recovered in merged.items()]
    if found:
        sentences.append(f"{counted(found, 'run')} that the load had not recorded: found on the platform, and added")
    return sentences


def _document(merged: "Mapping[Path, Recovered]", found: int, verdict: str) -> str:
    import orjson

    spools = [{"spool": str(spool), "recovered": recovered} for spool, recovered in merged.items()]
    return orjson.dumps({"spools": spools, "found_on_platform": found, "verdict": verdict}).decode()

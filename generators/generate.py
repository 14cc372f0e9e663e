"""Generates a file from a spec: blocks of rows are drawn in one or several processes and written in order."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, BinaryIO, cast

from generators.files import Digested
from generators.formats import Format
from generators.sampler import Sampler
from generators.sources import Sources
from generators.spec import Spec
from harness.pool_worker import follow_parent

BLOCK_ROWS = 65_536  # the columns of a block fit the CPU cache, and memory does not grow with n
_AHEAD = 2  # blocks per process that are drawn before they are written

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A file to generate: `rows` rows of `spec` in `format`."""

    spec: Spec
    seed: int
    rows: int
    format: Format
    sources: Sources


@dataclass(frozen=True, slots=True)
class Written:
    """The rows, bytes and digest of a generated file."""

    rows: int
    size: int
    sha256: str


def generate(job: Job, out: BinaryIO, progress: Progress, processes: int = 1, block_rows: int = BLOCK_ROWS) -> Written:
    """Write all rows to `out`; the bytes do not depend on `processes` or `block_rows`.

    `progress` is called with the number of rows written so far.

    Raises:
        ConfigError: a field can't be drawn.
    """
    digested = Digested(out)
    _write(job, cast("BinaryIO", digested), progress, processes, block_rows)
    return Written(job.rows, digested.size, digested.sha256)


def _write(job: Job, out: BinaryIO, progress: Progress, processes: int, block_rows: int) -> None:
    sampler = Sampler(job.spec, job.seed, job.rows, job.sources)
    starts = range(0, job.rows, block_rows)
    blocks = ((start, min(start + block_rows, job.rows)) for start in starts)
    # The first block is always drawn here: it determines the column types and finds errors early.
    begin, end = next(blocks)
    first = sampler.block(begin, end)
    sink = job.format.sink(out, first)
    sink.add(job.format.piece(first))
    progress(end)
    del first
    pieces: Iterator[tuple[int, bytes]]
    pieces = ((stop, job.format.piece(sampler.block(start, stop))) for start, stop in blocks)
    if processes > 1 and len(starts) > 2 and not job.spec.sequential:
        pieces = _drawn_in_parallel(job, blocks, processes)
    for stop, piece in pieces:
        sink.add(piece)
        progress(stop)
    sink.finish()


def _drawn_in_parallel(job: Job, blocks: Iterator[tuple[int, int]], processes: int) -> Iterator[tuple[int, bytes]]:
    """The pieces of the blocks in their order, each with the row at which it ends."""
    # Spawned, not forked: threads of libraries do not survive a fork.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _prepare, (job,))
    waiting: deque[tuple[int, Future[bytes]]] = deque()

    def first() -> tuple[int, bytes]:
        stop, piece = waiting.popleft()
        return stop, piece.result()

    try:
        for start, stop in blocks:
            waiting.append((stop, pool.submit(_piece, start, stop)))
            if len(waiting) >= processes * _AHEAD:
                yield first()
        while waiting:
            yield first()
    finally:
        pool.shutdown(cancel_futures=True)


_prepared: list[tuple[Sampler, Format]] = []


def _prepare(job: Job) -> None:
    follow_parent()
    _prepared.append((Sampler(job.spec, job.seed, job.rows, job.sources), job.format))


def _piece(start: int, stop: int) -> bytes:
    sampler, form = _prepared[0]
    return form.piece(sampler.block(start, stop))


def manifest(job: Job, written: Written, name: str) -> Mapping[str, Any]:
    """All that is needed to reproduce the file and to verify it. Contains no time and no path."""
    sources = job.sources.identities()
    packages = ["pipeswarm", "numpy", *(["faker"] if sources["vocabularies"] else [])]
    return {
        "schema_version": 1,
        "file": name,
        "format": type(job.format).__name__.lower(),
        "rows": written.rows,
        "columns": job.spec.columns,
        "bytes": written.size,
        "sha256": written.sha256,
        "seed": job.seed,
        "spec": {"source": Path(job.spec.source).name, "sha256": job.spec.digest},
        **sources,
        "versions": {package: version(package) for package in packages},
    }

"""Tables computed from the records, beside those of the records."""

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.store import files
from harness.store.folder import TABLES, RunFolder

PHASES = f"{TABLES}/phases.parquet"
_COLUMNS = pa.schema(
    [
        ("seq", pa.int64()),
        ("run", pa.string()),
        ("state", pa.string()),
        ("phase", pa.string()),
        ("length_s", pa.float64()),
    ]
)


def write_phases(folder: RunFolder, parts: Iterable[pd.DataFrame]) -> None:
    """Write ``tables/phases.parquet``, a row group for each part; the same parts give the same bytes."""
    with (
        files.replacing(folder.path, PHASES) as out,
        pq.ParquetWriter(out, _COLUMNS, compression="zstd") as table,
    ):
        for part in parts:
            rows = pa.Table.from_pandas(part, schema=_COLUMNS, preserve_index=False)
            table.write_table(rows.replace_schema_metadata(None))

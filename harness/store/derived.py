"""Tables computed from the records, beside those of the records."""

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.store.folder import TABLES, RunFolder

PHASES = f"{TABLES}/phases.parquet"


def write_phases(folder: RunFolder, phases: pd.DataFrame) -> None:
    """Write ``tables/phases.parquet``; the same frame gives the same bytes."""
    columns = pa.schema(
        [
            ("seq", pa.int64()),
            ("run", pa.string()),
            ("state", pa.string()),
            ("phase", pa.string()),
            ("length_s", pa.float64()),
        ]
    )
    table = pa.Table.from_pandas(phases, schema=columns, preserve_index=False).replace_schema_metadata(None)
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    folder.replace(PHASES, out.getvalue())

"""Tables computed from the records, in addition to those of the records."""

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa

from harness.store import files
from harness.store.folder import TABLES, RunFolder
from harness.store.parquet import write

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
    rows = (pa.Table.from_pandas(part, schema=_COLUMNS, preserve_index=False) for part in parts)
    with files.replacing(folder.path, PHASES) as out:
        write(out, _COLUMNS, (row.replace_schema_metadata(None) for row in rows))

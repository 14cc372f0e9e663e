"""The run folder: append-only records while running, Parquet when sealed.

Only this package knows file names and schemas. `folder` is light enough for the load's process; `tables` brings pyarrow
and pandas and belongs to the analysis.
"""

from harness.store.folder import Recorder, RunFolder, Tail

__all__ = ["Recorder", "RunFolder", "Tail"]

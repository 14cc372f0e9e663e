"""The run folder: append-only records while running, Parquet when sealed.

Only this package knows file names and schemas. `folder` is light enough for the load's process; `tables` imports
pyarrow and pandas and is for the analysis.
"""

from harness.store.folder import Recorder, RunFolder, Tail

__all__ = ["Recorder", "RunFolder", "Tail"]

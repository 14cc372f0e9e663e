"""The run folder: append-only records while running, Parquet when sealed."""

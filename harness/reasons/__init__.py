"""What clusters, stores, databases and platforms state when something goes wrong, and what it means."""

from harness.reasons.catalogue import Catalogue, Match, Row, builtin, builtin_row, merged, parsed, rows_of, stated

__all__ = ["Catalogue", "Match", "Row", "builtin", "builtin_row", "merged", "parsed", "rows_of", "stated"]

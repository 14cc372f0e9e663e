"""One bottleneck per file: Timeline in, findings out."""

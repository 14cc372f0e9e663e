"""One file per source, in the observer's process."""

"""One file per platform: set up, submit one run, list runs in bulk. No I/O of their own."""

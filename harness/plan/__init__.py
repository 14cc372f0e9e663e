"""What a test will do: its options, checks, schedule files and assignment to workers."""

"""What is recorded of a running test."""

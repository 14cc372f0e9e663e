"""The course of a test: a state machine, what carries out its commands, its beginning, and what is shown of it."""

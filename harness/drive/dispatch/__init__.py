"""Open-model dispatch: each arrival at its own instant, whatever became of the others."""

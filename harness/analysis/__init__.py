"""Pure functions over the Timeline: frames in, results out."""

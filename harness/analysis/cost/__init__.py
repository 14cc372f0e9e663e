"""Cost and utilisation of nodes; requests of steps."""

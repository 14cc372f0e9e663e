"""Services behind the runs: executions, replicas, database, volumes."""

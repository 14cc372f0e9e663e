"""The phases of a tenant's session, wherever its cluster is."""

FOR_SCHEDULER = "wait for the scheduler"
FOR_FIRST = "wait for the first worker"
FOR_ALL = "wait for all workers"
COMPUTE = "compute"
CLOSE = "close"

WAITS = frozenset({FOR_SCHEDULER, FOR_FIRST, FOR_ALL})

"""Load test of any command: ``locust -f locustfiles/command.py --command 'python step.py --n {n}'``."""

from pipeswarm import PipelineUser


class CommandProcesses(PipelineUser):
    """Processes of one command, started when the schedule says."""

    platform = "command"

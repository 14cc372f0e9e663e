"""The locustfile: JOBS_ENDPOINT=http://jobs.example locust -f load.py --headless --runs 100 --over 1m"""

from pipeswarm import PipelineUser


class JobRuns(PipelineUser):
    """Jobs in one queue."""

    platform = "jobs"

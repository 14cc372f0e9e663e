"""The user class of a locustfile. Locust wants users; the schedule, not their number, sets the load.

A locustfile declares a subclass and names its platform; everything else follows from the options::

    from harness.drive.user import PipelineUser

    class KfpRuns(PipelineUser):
        platform = "kfp"
"""

import sys
from typing import Any, ClassVar

try:
    from harness.drive.locust_plugin import connect
except KeyboardInterrupt:  # this takes a moment, and Locust would show where it was
    sys.exit(130)

from locust import User, task


class PipelineUser(User):  # type: ignore[misc]  # Locust's classes carry no types
    """Declares a load test of one platform: a subclass names it, and Locust's events are wired to it.

    `platform` is the name of a target: a module of `harness.targets` or an entry point of ``pipeswarm.targets``.
    One user is enough: arrivals come from the schedule, never from a user that waits for its answer.
    """

    abstract = True
    platform: ClassVar[str]

    functions = True  # Locust takes it for no fault of such a class that --tags leave it no task

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # The schedule is no matter of --tags: they choose among the tasks of users that stand beside this one.
        self.tasks = [PipelineUser.follow_the_schedule]

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if "platform" in cls.__dict__:
            cls.abstract = False
            connect(cls.platform)

    @task  # type: ignore[untyped-decorator]  # Locust's decorator carries no types
    def follow_the_schedule(self) -> None:
        """Stay until the test is over."""
        self.environment.runner.greenlet.join(timeout=1)

"""The user class of a locustfile. Locust needs users; the schedule, not their number, sets the load.

A locustfile declares a subclass that names its platform; everything else follows from the options::

    from harness.drive.user import PipelineUser

    class KfpRuns(PipelineUser):
        platform = "kfp"
"""

import sys
from typing import Any, ClassVar

from locust import User, events, task

try:
    from harness.drive.locust_plugin import connect
except KeyboardInterrupt:  # Ctrl-C during the imports: exit quietly as soon as Locust has read the locustfile

    def connect(target: str) -> None:  # noqa: ARG001  # the signature of the plugin's
        """Exit when Locust parses its options."""
        events.init_command_line_parser.add_listener(lambda **_: sys.exit(130))


class PipelineUser(User):  # type: ignore[misc]  # Locust's classes carry no types
    """Declares a load test of one platform: a subclass names it and is wired to Locust's events.

    `platform` is the name of a target: a module of `harness.targets`, an entry point of ``pipeswarm.targets``, or a
    module in the locustfile's folder. One user is enough, because arrivals come from the schedule.
    """

    abstract = True
    platform: ClassVar[str]

    functions = True  # keeps Locust from complaining when --tags leave this class without tasks

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # --tags select tasks of other users in the locustfile; the schedule always runs.
        self.tasks = [PipelineUser.follow_the_schedule]

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        if "platform" in cls.__dict__:
            cls.abstract = False
            connect(cls.platform)

    @task  # type: ignore[untyped-decorator]  # Locust's decorator carries no types
    def follow_the_schedule(self) -> None:
        """Wait while the test runs."""
        self.environment.runner.greenlet.join(timeout=1)

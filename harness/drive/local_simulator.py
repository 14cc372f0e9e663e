"""The simulated platform that stands in where no ``--host`` is given."""

from harness.drive import processes
from harness.drive.console import say


class LocalSimulator:
    """At most one simulated platform at a time; each test finds one that nobody has loaded yet."""

    def __init__(self) -> None:
        self._simulator: processes.Simulator | None = None
        self._fresh = False

    @property
    def url(self) -> str:
        """Where it is; "" when there is none."""
        return self._simulator.url if self._simulator is not None else ""

    def prepare(self, profile: str, fault: str, seed: int) -> processes.Simulator:
        """One as `profile` says, unloaded: the one that is there, or a new one.

        Raises:
            ConfigError: there is no such profile or fault.
        """
        old = self._simulator
        if old is not None and self._fresh and (old.profile, old.fault) == (profile, fault):
            return old
        self.stop()
        new = self._simulator = processes.start_simulator(profile, fault, seed)
        self._fresh = True
        planted = f" with the fault {fault}" if fault else ""
        say(f"no --host: simulated platform '{profile}'{planted} started at {new.url}\n")
        return new

    def load(self, profile: str, fault: str, seed: int) -> processes.Simulator:
        """As `prepare`, for a test that begins now."""
        simulator = self.prepare(profile, fault, seed)
        self._fresh = False
        return simulator

    def stop(self) -> None:
        """End it."""
        if self._simulator is not None:
            self._simulator.stop()
            self._simulator = None

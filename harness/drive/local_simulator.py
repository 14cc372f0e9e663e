"""The simulated platform that is loaded if no ``--host`` is given."""

from harness.drive import processes
from harness.drive.console import say


class LocalSimulator:
    """Runs at most one simulated platform at a time; each test gets one that was not loaded before."""

    def __init__(self) -> None:
        self._simulator: processes.Simulator | None = None
        self._fresh = False
        self.urls: tuple[str, ...] = ()  # of all so far: the page of a test before may still name its platform

    def prepare(self, profile: str, fault: str, seed: int) -> processes.Simulator:
        """Return an unloaded platform of this profile: the present one if it fits, or a new one.

        Raises:
            ConfigError: there is no such profile or fault.
        """
        present = self._simulator
        if present is not None and self._fresh and (present.profile, present.fault) == (profile, fault):
            return present
        self.stop()
        new = self._simulator = processes.start_simulator(profile, fault, seed)
        self._fresh = True
        self.urls = (*self.urls, new.url)
        injected = f" with fault {fault}" if fault else ""
        say(f"no --host: simulated platform '{profile}'{injected} started at {new.url}\n")
        return new

    def load(self, profile: str, fault: str, seed: int) -> processes.Simulator:
        """As `prepare`, for a test that starts now: the next one gets a new platform."""
        simulator = self.prepare(profile, fault, seed)
        self._fresh = False
        return simulator

    def stop(self) -> None:
        """End the platform, if there is one."""
        if self._simulator is not None:
            self._simulator.stop()
            self._simulator = None

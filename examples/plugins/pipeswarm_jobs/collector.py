"""The collector: how many jobs are waiting in the queue, as samples of a metric of its own."""

import threading

import urllib3

from pipeswarm import LiveObserver, Observation, Option, Sample, parse_duration

WAITING = "jobs_waiting"
OPTIONS = (Option("job-queue-every", "500ms", "interval between two requests to the queue", parse_duration),)


class JobQueue:
    """Asks the service at a fixed interval. It runs in a thread of its own, so it may block."""

    def __init__(self, observation: Observation) -> None:
        self._journal = observation.journal
        queue = observation.plan.target_options["queue"]
        self._url = f"{observation.settings.host}/queues/{queue}"
        self._every_s: float = observation.options["job-queue-every"]
        self._live: LiveObserver | None = None
        self._reachable = True

    def collect(self, stop: threading.Event) -> None:
        """Look at once, at every interval, and a last time when the test is over."""
        while not stop.is_set():
            self._look()
            stop.wait(self._every_s)
        self._look()

    def live(self) -> LiveObserver | None:
        """The latest figure, for `pipeswarm watch`."""
        return self._live

    def _look(self) -> None:
        self._journal.count("jobs GET /queues/*")  # the report lists what the observation itself costs
        try:
            waiting = urllib3.request("GET", self._url, timeout=5.0, retries=False).json()["waiting"]
        except (urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
            if self._reachable:  # say it once
                self._journal.note("NotReachable", "job queue", str(error))
            self._reachable = False
            self._live = LiveObserver(other={"jobs_waiting": "not reachable"})
            return
        self._reachable = True
        self._journal.write(Sample(WAITING, self._journal.now(), float(waiting)))
        self._live = LiveObserver(other={"jobs_waiting": waiting})


def open_collector(observation: Observation) -> JobQueue | None:
    """A collector of other platforms' tests would have nothing to do: None."""
    return JobQueue(observation) if observation.plan.target == "jobs" else None

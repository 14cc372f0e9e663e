"""What the load itself costs and how well it keeps time, against a loopback server in a process of its own.

Everything is measured side by side in one run: quote the ratios, not the milliseconds. Bounds on time follow a
compiled attacker in the same run; where it is late, too, the machine is busy, and the row is not measured.

    python benchmarks/drive.py           # three minutes
    python benchmarks/drive.py --long    # also a million arrivals, and four workers: ten minutes more
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

import gevent
from loopback.bare import bare
from loopback.server import DELAY_S, Server

from harness.drive.http.client import HttpClient
from harness.drive.locust_statistics import Statistics
from harness.drive.recording.ledger import Ledger
from harness.drive.workers.load_generator import Assignment, Worker
from harness.model import Plan, Scenario, Submission
from harness.model.plan import Limits
from harness.model.schedules import Constant, Poisson
from harness.store import RunFolder
from harness.targets.credentials import Credentials
from harness.targets.discovery import find
from harness.targets.kfp.pipeline import read_pipeline
from tests.support.benchmarking import Table

HERE = Path(__file__).parent
TRAINING = HERE.parent / "harness/targets/training.yaml"
OPTIONS = {"experiment": "e", "experiment_id": "e" * 36, "pipeline_id": "p" * 36, "version_id": "v" * 36}
SCENARIOS = [Scenario(str(k), "s", {"url": "https://data.example/plant.csv", "rows": k}, {}) for k in range(500)]
LEAD_S = 1.0
WINDOW_S = 0.01
BURST = 5.0  # × the compiled generator's time
MEDIAN_MS, TAIL_MS = 0.3, 2.0  # of lag; the tail is more than the compiled generator's
ON_TIME_MS = 50.0  # what a valid test may be late


# --- generators -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """What we did: CPU seconds an arrival, and by arrival how late it left and was answered (ms)."""

    cpu_s: float
    lags: list[float]
    latencies: list[float]


def load(server, offsets, *, on_row=lambda _: None, begin=None, options=OPTIONS):
    """Our worker with ledger and files, as a test has them."""
    plan = Plan("kfp", server.url, {}, len(offsets), 7, simulated=False, target_options=options, limits=Limits())
    with tempfile.TemporaryDirectory() as place:
        recorder = RunFolder.create(Path(place), "run").recorder()
        ledger = Ledger(recorder, len(offsets))
        # Arrays, as what the garbage collector would have to examine would come on top of what a test keeps.
        lags, latencies = (array("d", bytes(8 * len(offsets))) for _ in range(2))

        def record(row):
            ledger.book(row)
            if isinstance(row, Submission):
                on_row(row)
                lags[row.seq] = (row.sent_at - row.due_at) / 1e6
                latencies[row.seq] = (row.answered_at - row.due_at) / 1e6

        begin = begin or time.monotonic() + LEAD_S
        t0_at = time.time_ns() + round((begin - time.monotonic()) * 1e9)
        before = gevent.spawn_later(begin - time.monotonic(), time.process_time)  # what comes before is once a test
        Worker(Assignment("run", plan, SCENARIOS, offsets, t0_at), Credentials(), record).run()
        used = (time.process_time() - before.get()) / len(offsets)
        assert ledger.counts.accepted == len(offsets), ledger.counts
        recorder.close()
    return Load(used, list(lags), list(latencies))


def locust_statistics():
    """Locust's request events as a test fires them, its statistics listening."""
    from locust.env import Environment
    from locust.user import User

    environment = Environment(user_classes=[User])
    environment.create_local_runner()
    return Statistics(environment, "kfp")


class Attacker:
    """A compiled generator (attacker.c), the yardstick for time."""

    def __init__(self, place: Path) -> None:
        self._program = place / "attacker"
        subprocess.run(["cc", "-O2", "-o", self._program, HERE / "loopback/attacker.c"], check=True)

    def attack(self, server, count, rate):
        """Lags in ms."""
        command = [self._program, str(server.port), str(count), str(rate)]
        return [int(us) / 1e3 for us in subprocess.run(command, check=True, capture_output=True).stdout.split()]

    def hindered(self, server):
        """Whether the machine keeps even this generator from being on time."""
        return quantile(self.attack(server, 1000, 500), 0.99) > 2.5


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def dispersion(instants):
    """Index of dispersion of arrivals in windows of 10 ms, variance over mean of the counts: even 0, Poisson 1."""
    counts = {}
    for at in instants:
        counts[int(at / WINDOW_S)] = counts.get(int(at / WINDOW_S), 0) + 1
    windows = [counts.get(k, 0) for k in range(max(counts))]
    return statistics.pvariance(windows) / statistics.fmean(windows)


def sent(offsets, lags):
    return [due_s + lag / 1e3 for due_s, lag in zip(offsets, lags, strict=True)]


def schedule(kind):
    return array("d", kind.offsets(7))


# --- rows -----------------------------------------------------------------------------------------------------------


def cost(table, server, rounds=5):
    """CPU of a submission as a test makes it, beside the bare client doing the same."""
    fire, offsets = locust_statistics().row, schedule(Constant(500.0, 4.0))
    pairs = [(load(server, offsets, on_row=fire).cpu_s, bare(server.port, offsets)) for _ in range(rounds)]
    ratio = statistics.median(ours / yardstick for ours, yardstick in pairs)
    ours, yardstick = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
    told = f"{ours:.0f} µs beside {yardstick:.0f} at 500/s"
    table.row("CPU a submission, × bare geventhttpclient", f"{ratio:.2f}", "1.2", ratio <= 1.2, told)


def cost_beside_sdk(table, server, place):
    """CPU of a submission beside the KFP SDK's, both as fast as they can, for a small and a large pipeline."""
    large = place / "large.yaml"
    command = [sys.executable, HERE / "loopback/sdk.py", str(server.port), TRAINING, large]
    sdk, ours = [], []
    for _ in range(3):
        sdk.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        options = [_set_up(server, package) for package in (TRAINING, large)]
        ours.append([load(server, schedule(Constant(4000.0, 1.0)), options=each).cpu_s for each in options])
    for k, steps in enumerate((3, 30)):
        mine, theirs = (statistics.median(each[k] for each in costs) for costs in (ours, sdk))
        ratio = statistics.median(b[k] / a[k] for a, b in zip(ours, sdk, strict=True))
        told = f"{mine * 1e6:.0f} µs beside {theirs * 1e3:.1f} ms"
        what = f"CPU a submission of {steps} steps, part of kfp.Client.run_pipeline's"
        table.row(what, f"1/{ratio:.0f}", "1/40", ratio >= 40, told)
    grown = statistics.median(b / a for a, b in ours)
    table.row("CPU a submission of 30 steps, × that of 3", f"{grown:.2f}", "1.1", grown <= 1.1)


def _set_up(server, package):
    """The target's options after the pipeline was uploaded, as a session does it."""
    pipeline = read_pipeline(package)
    options = {"experiment": "e", "pipeline_name": pipeline.name}
    plan = Plan("kfp", server.url, {}, 1, 7, simulated=False, target_options=options)
    client = HttpClient(server.url, Credentials(), plan.limits)
    found = find("kfp").from_plan(plan, pipeline.package).set_up(client)
    client.close()
    return {**options, **found.options}


def punctuality(table, server, attacker, seconds):
    """Lag, and whether even arrivals stay even and random ones as random as they were drawn."""
    for rate in (50, 500, 2000):
        offsets = schedule(Constant(float(rate), seconds))
        lags = load(server, offsets).lags
        control = attacker.attack(server, rate * 5, rate)
        p50, p99 = quantile(lags, 0.5), quantile(lags, 0.99)
        p50_c, p99_c = quantile(control, 0.5), quantile(control, 0.99)
        told = f"compiled: {p50_c:.2f} {p99_c:.1f}"
        what = f"lag at {rate}/s for {seconds:g} s, p50 p99 (ms)"
        kept = p50 <= MEDIAN_MS and p99 <= p99_c + TAIL_MS
        bound = f"{MEDIAN_MS:g} {p99_c + TAIL_MS:.1f}"
        table.row(what, f"{p50:.2f} {p99:.1f}", bound, kept, told, busy=p99_c > 2.5 or p50_c > 0.5)
    own, ours = dispersion(offsets), dispersion(sent(offsets, lags))
    compiled = dispersion(sent(offsets[: len(control)], control))
    told = f"compiled: {compiled:.2f}; Poisson would be 1"
    what = "index of dispersion of 2,000/s even arrivals, more than its own"
    table.row(what, f"{ours - own:.2f}", "0.1", ours - own <= 0.1, told, busy=compiled > 0.1)
    offsets = schedule(Poisson(500.0, seconds))
    own, ours = dispersion(offsets), dispersion(sent(offsets, load(server, offsets).lags))
    what = "index of dispersion of 500/s Poisson arrivals, × its own"
    table.row(
        what, f"{ours / own:.2f}", "0.9–1.1", 0.9 <= ours / own <= 1.1, f"its own: {own:.2f}", busy=compiled > 0.1
    )


def burst(table, server, attacker, rounds=5):
    """A thousand at once, on connections that are open, beside a bare loop in C on the same machine."""
    alone, ours = [], []
    for _ in range(rounds):
        alone.append(max(attacker.attack(server, 1000, 0)))
        ours.append(max(load(server, array("d", [0.0] * 1000)).lags))
    last, compiled = statistics.median(ours), statistics.median(alone)
    what, told = "burst of 1,000: the last one sent after (ms)", f"compiled: {compiled:.0f}"
    bound = BURST * compiled
    table.row(what, f"{last:.0f}", f"{bound:.0f}", last <= bound, told, busy=attacker.hindered(server))


def stall(table, server, attacker, rate, seconds, silent_s):
    """A server that says nothing for a while, under our load and under Locust's own users at the same time."""
    quiet_s = 2.0
    begin = time.monotonic() + 5.0  # Locust takes a while to start
    command = [sys.executable, HERE / "loopback/users.py", str(server.port), str(rate), str(seconds), str(begin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as users:
        server.be_silent(begin + quiet_s, silent_s)
        offsets = schedule(Constant(float(rate), seconds))
        done = load(server, offsets, begin=begin)
        locust = json.loads(users.communicate()[0])
    server.be_silent(0.0, 0.0)
    during = [quiet_s <= due_s < quiet_s + silent_s for due_s in offsets]
    truth = [
        (quiet_s + silent_s - due_s if silent else DELAY_S) * 1e3 for due_s, silent in zip(offsets, during, strict=True)
    ]
    on_time = sum(lag <= ON_TIME_MS for lag, silent in zip(done.lags, during, strict=True) if silent)
    sent_too = sum(quiet_s <= at_s < quiet_s + silent_s for at_s in locust["sent_s"])
    what = f"{rate}/s through {silent_s:g} s of silence: sent on time meanwhile"
    told, busy = f"Locust's users send {sent_too}", attacker.hindered(server)
    table.row(what, f"{on_time} of {sum(during)}", "all", on_time == sum(during), told, busy=busy)
    ratio = quantile(done.latencies, 0.99) / quantile(truth, 0.99)
    theirs = quantile(locust["took_ms"], 0.99) / quantile(truth, 0.99)
    told = f"Locust's users report {theirs:.2f}"
    table.row("   p99 as measured, × the truth", f"{ratio:.2f}", "0.9–1.1", 0.9 <= ratio <= 1.1, told)


def main():
    long = "--long" in sys.argv
    table = Table()
    with Server.start() as server, tempfile.TemporaryDirectory() as name:
        place = Path(name)
        attacker = Attacker(place)
        cost(table, server)
        cost_beside_sdk(table, server, place)
        punctuality(table, server, attacker, 30.0 if long else 10.0)
        burst(table, server, attacker)
        stall(table, server, attacker, 100, 30.0, 2.0)
        stall(table, server, attacker, 10, 12.0, 6.0)
        if long:
            from loopback.long import four_workers, million

            four_workers(table, server, place)
            million(table, server, place)
    return int(table.failed)


if __name__ == "__main__":
    sys.exit(main())

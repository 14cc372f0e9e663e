"""What the load itself costs and how well it keeps time, against a loopback server in a process of its own.

Everything is measured side by side in one run; quote the ratios, not the milliseconds.
"""

import asyncio
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from array import array
from pathlib import Path

from harness.drive.crew import Order, Worker
from harness.drive.ledger import Ledger
from harness.model import Plan, Scenario, Submission
from harness.model.plan import Limits
from harness.store import RunFolder

STALL_S = 2.0
DELAY_S = 0.05
ANSWER = b'{"run_id": "0123456789abcdef"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)


class Server(asyncio.Protocol):
    """Answers every POST after `delay_s`; the smallest server that keeps connections open."""

    delay_s = 0.0
    stall = None  # a shared double: when two seconds of silence begin, on the machine's monotonic clock

    def connection_made(self, transport):
        self.transport, self.waiting = transport, b""

    def data_received(self, data):
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.waiting) < end + 4 + length:
                return
            self.waiting = self.waiting[end + 4 + length :]
            silent_s = Server.stall.value + STALL_S - time.monotonic()
            wait_s = silent_s if 0 < silent_s <= STALL_S else self.delay_s
            asyncio.get_running_loop().call_later(wait_s, self.transport.write, HEAD + ANSWER)


def serve(ready, delay_s, stall):
    Server.delay_s, Server.stall = delay_s, stall

    async def run():
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def bare(port, offsets):
    """geventhttpclient doing the same POSTs at the same times, nothing else: the yardstick. CPU seconds a request."""
    import gevent
    import gevent.pool
    from geventhttpclient import HTTPClient

    body = b'{"display_name":"%s"}' % (b"x" * 280)
    client = HTTPClient("127.0.0.1", port, concurrency=1000)
    pool = gevent.pool.Group()

    def post():
        client.request("POST", "/apis/v2beta1/runs", body=body, headers={"Content-Type": "application/json"}).read()

    before, began = cpu_s(), time.monotonic()
    for due_s in offsets:
        if (wait_s := began + due_s - time.monotonic()) > 0:
            gevent.sleep(wait_s)
        pool.spawn(post)
    pool.join()
    return (cpu_s() - before) / len(offsets)


def locust_events():
    """What the wiring does with a row: Locust's request event, its statistics listening."""
    from locust.env import Environment
    from locust.user import User

    environment = Environment(user_classes=[User])
    environment.create_local_runner()

    def fire(row):
        if isinstance(row, Submission):
            environment.events.request.fire(
                request_type="SUBMIT", name="kfp", response_time=(row.answered_at - row.due_at) / 1e6,
                response_length=0, exception=None, context={}, start_time=time.time(), url=None,
            )  # fmt: skip

    return fire


def load(port, offsets, on_record=lambda _: None):
    """Our worker with ledger and files; returns CPU seconds a submission, and lag and latency (ms) by arrival."""
    options = {"experiment_id": "e" * 36, "pipeline_id": "p" * 36, "version_id": "v" * 36}
    plan = Plan(
        "kfp", f"http://127.0.0.1:{port}", {}, len(offsets), 7, simulated=False, target_options=options, limits=Limits()
    )
    scenarios = [Scenario(str(k), "s", {"url": "https://data.example/plant.csv", "rows": k}, {}) for k in range(500)]
    with tempfile.TemporaryDirectory() as place:
        recorder = RunFolder.create(Path(place), "run").recorder()
        ledger = Ledger(recorder, len(offsets))
        times = {}

        def record(row):
            ledger.book(row)
            on_record(row)
            if isinstance(row, Submission):
                times[row.seq] = ((row.sent_at - row.due_at) / 1e6, (row.answered_at - row.due_at) / 1e6)

        before = cpu_s()
        Worker(Order("run", plan, scenarios, offsets, time.time_ns() + 10**9), "", record).run()
        used = (cpu_s() - before) / len(offsets)
        assert ledger.counts.accepted == len(offsets), ledger.counts
        recorder.close()
    return used, *zip(*(times[seq] for seq in sorted(times)), strict=True)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def stalled(port, stall):
    """100/s through two seconds of silence: measured p99 over the true one, which the due times give."""
    offsets = array("d", (k / 100 for k in range(1000)))
    begins_s = 4.0
    stall.value = time.monotonic() + 1.0 + begins_s  # the load begins one second from now
    _, _, latencies = load(port, offsets)
    stall.value = 0.0
    truth = [begins_s + STALL_S - due_s if begins_s <= due_s < begins_s + STALL_S else DELAY_S for due_s in offsets]
    return quantile(latencies, 0.99) / quantile(truth, 0.99) / 1e3


def dispersion(offsets, lags_by_arrival):
    """Index of dispersion of arrivals in 10 ms windows: variance over mean of the counts."""
    counts = {}
    for due_s, lag_ms in zip(offsets, lags_by_arrival, strict=True):
        counts[int((due_s + lag_ms / 1e3) / 0.01)] = counts.get(int((due_s + lag_ms / 1e3) / 0.01), 0) + 1
    windows = [counts.get(k, 0) for k in range(int(offsets[-1] / 0.01))]
    return statistics.pvariance(windows) / statistics.fmean(windows)


def main():
    context = multiprocessing.get_context("spawn")
    ready, stall = context.Queue(), context.Value("d", 0.0)
    server = context.Process(target=serve, args=(ready, DELAY_S, stall), daemon=True)
    server.start()
    port = ready.get(timeout=30)
    seconds = 10 if "--long" not in sys.argv else 30
    print(f"{'what':46}{'measured':>14}{'bound':>12}")
    cpu, fire = [], locust_events()
    offsets = array("d", (k / 500 for k in range(2000)))
    for _ in range(3):
        yardstick = bare(port, offsets)
        ours, *_ = load(port, offsets, fire)
        cpu.append(ours / yardstick)
    print(f"{'CPU a submission, × bare geventhttpclient':46}{statistics.median(cpu):14.2f}{1.5:12.2f}")
    for rate in (50, 500, 2000):
        offsets = array("d", (k / rate for k in range(rate * seconds)))
        _, lags, _ = load(port, offsets)
        print(
            f"{f'lag at {rate}/s, p50 / p99 (ms)':46}{quantile(lags, 0.5):8.2f}{quantile(lags, 0.99):6.1f}{'1 / 5':>12}"
        )
    print(f"{'dispersion of 2,000/s in 10 ms, less its own':46}{dispersion(offsets, lags):14.2f}{0.2:12.2f}")
    _, lags, _ = load(port, array("d", [0.0] * 1000))
    print(f"{'burst of 1,000: the last one sent after (ms)':46}{max(lags):14.0f}{180:12.0f}")
    print(f"{'p99 through a stall of 2 s, × the truth':46}{stalled(port, stall):14.2f}{1.1:12.2f}")
    server.terminate()


if __name__ == "__main__":
    main()

"""Locust as it comes: ten users at a constant throughput, which wait for their answers. Prints what they did as JSON.

python benchmarks/loopback/users.py PORT RATE SECONDS BEGIN     BEGIN is an instant of the machine's monotonic clock
"""

import json
import sys
import time

import gevent

from locust import FastHttpUser, constant_throughput, task
from locust.env import Environment

USERS = 10


def main(port, rate, seconds, begin):
    class Submitter(FastHttpUser):
        host = f"http://127.0.0.1:{port}"
        wait_time = constant_throughput(rate / USERS)

        @task
        def submit(self):
            self.client.post("/apis/v2beta1/runs", json={"display_name": "x" * 280})

    sent_at, took_ms = [], []

    def note(response_time, start_time, **_):
        sent_at.append(start_time - time.time() + time.monotonic() - begin)
        took_ms.append(response_time)

    environment = Environment(user_classes=[Submitter])
    environment.events.request.add_listener(note)
    runner = environment.create_local_runner()
    gevent.sleep(max(0.0, begin - time.monotonic()))
    runner.start(USERS, spawn_rate=100)
    gevent.sleep(seconds)
    runner.quit()
    print(json.dumps({"sent_s": sent_at, "took_ms": took_ms}))


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(float, sys.argv[2:]))

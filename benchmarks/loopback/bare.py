"""geventhttpclient doing the same POSTs at the same times, and nothing else."""

import time

import gevent
import gevent.pool
from geventhttpclient import HTTPClient


def bare(port, offsets):
    """CPU seconds a request."""
    body = b'{"display_name":"%s"}' % (b"x" * 280)
    client = HTTPClient("127.0.0.1", port, concurrency=1000)
    pool = gevent.pool.Group()

    def post():
        client.request("POST", "/apis/v2beta1/runs", body=body, headers={"Content-Type": "application/json"}).read()

    before, began = time.process_time(), time.monotonic()
    for due_s in offsets:
        if (wait_s := began + due_s - time.monotonic()) > 0:
            gevent.sleep(wait_s)
        pool.spawn(post)
    pool.join()
    return (time.process_time() - before) / len(offsets)

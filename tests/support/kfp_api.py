"""Ways of asking the served KFP API."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

import kfp

from tests.support.serving import Served

UNKNOWN = "00000000-0000-4000-8000-000000000000"
OVER = {"SUCCEEDED", "FAILED", "CANCELED"}


def ends(client: kfp.Client, run_id: str, within_s: float = 30.0) -> Any:
    deadline = time.monotonic() + within_s
    while (run := client.get_run(run_id)).state not in OVER:
        assert time.monotonic() < deadline, run
        time.sleep(0.1)
    return run


def call(served: Served, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{served.url}/apis/v2beta1{path}", data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())

"""`kfp.Client.run_pipeline(package)`, in a process of its own. Prints CPU seconds a call, a JSON list.

python benchmarks/loopback/sdk.py PORT SMALL LARGE     SMALL is a compiled pipeline; LARGE gets one of 30 steps
"""

import contextlib
import io
import json
import sys
import time
import warnings

STEPS = 30
CALLS = 10


def compile_chain(path):
    from kfp import compiler, dsl

    @dsl.component
    def step(x: int) -> int:
        return x

    @dsl.pipeline(name="chain")
    def chain(x: int = 1):
        for _ in range(STEPS):
            x = step(x=x).output

    compiler.Compiler().compile(chain, path)


def costs(port, packages):
    import kfp

    client = kfp.Client(host=f"http://127.0.0.1:{port}")
    for package in packages:
        client.run_pipeline("e", "warm-up", package)
        began = time.process_time()
        for k in range(CALLS):
            client.run_pipeline("e", f"run-{k}", package)
        yield (time.process_time() - began) / CALLS


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):  # the client prints a link for each run
        compile_chain(sys.argv[3])
        told = list(costs(sys.argv[1], sys.argv[2:]))
    print(json.dumps(told))

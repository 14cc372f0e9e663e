"""A training pipeline as the load test's example: prepare the data of a scenario, train on it, evaluate.

Container components start in a second (no ``pip install`` in every pod), and every step says what it needs, so that
the scheduler and the autoscaler can do their work.
"""

from kfp import compiler, dsl

IMAGE = "python:3.11-slim"

PREPARE = """
import json, pathlib, sys
scenario, url, rows, out = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text("\\n".join(f"{url},{row},{len(scenario)}" for row in range(rows)))
"""

TRAIN = """
import hashlib, pathlib, sys
data, rounds, out = pathlib.Path(sys.argv[1]).read_bytes(), int(sys.argv[2]), pathlib.Path(sys.argv[3])
out.parent.mkdir(parents=True, exist_ok=True)
out.write_bytes(hashlib.pbkdf2_hmac("sha256", data, b"", 1000 * rounds))
"""

EVALUATE = """
import pathlib, sys
out = pathlib.Path(sys.argv[2])
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text(pathlib.Path(sys.argv[1]).read_bytes().hex())
"""


@dsl.container_component
def prepare(scenario: str, url: str, data_multiplier: int, dataset: dsl.Output[dsl.Dataset]):
    return dsl.ContainerSpec(
        image=IMAGE, command=["python", "-c", PREPARE], args=[scenario, url, data_multiplier, dataset.path]
    )


@dsl.container_component
def train(dataset: dsl.Input[dsl.Dataset], data_multiplier: int, model: dsl.Output[dsl.Model]):
    return dsl.ContainerSpec(
        image=IMAGE, command=["python", "-c", TRAIN], args=[dataset.path, data_multiplier, model.path]
    )


@dsl.container_component
def evaluate(model: dsl.Input[dsl.Model], report: dsl.Output[dsl.Metrics]):
    return dsl.ContainerSpec(image=IMAGE, command=["python", "-c", EVALUATE], args=[model.path, report.path])


@dsl.pipeline(name="training", description="Prepares the data of one scenario, trains a model on it, evaluates it.")
def training(
    scenario: str = '{"plant": "north-1", "horizon_h": 24}',
    data_multiplier: int = 5000,
    url: str = "https://data.example/plants/north-1.csv",
):
    prepared = prepare(scenario=scenario, url=url, data_multiplier=data_multiplier)
    prepared.set_cpu_request("500m").set_cpu_limit("1").set_memory_request("512Mi").set_memory_limit("512Mi")
    trained = train(dataset=prepared.outputs["dataset"], data_multiplier=data_multiplier)
    trained.set_cpu_request("1").set_cpu_limit("2").set_memory_request("1Gi").set_memory_limit("1Gi")
    evaluated = evaluate(model=trained.outputs["model"])
    evaluated.set_cpu_request("250m").set_cpu_limit("500m").set_memory_request("256Mi").set_memory_limit("256Mi")


if __name__ == "__main__":
    compiler.Compiler().compile(training, "training.yaml")

"""The orchestrator: a KFP pipeline of one step, which runs a load test on the platform that runs it.

The step is given the scenarios, as a text or as a file that the platform fetches, and leaves the run folder, its report
and the test's exit code.
"""

import base64
import gzip
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from harness import reading
from harness.model.errors import ConfigError
from harness.prepare.changes import prepared
from harness.prepare.settings import Settings

NAME = "pipeswarm-orchestrator"
SCENARIOS = "scenarios"  # the pipeline's parameter: the scenarios as a text, or their address
# A parameter is an argument of the step's launcher, with others in one text, and Linux takes at most 128 KiB for one.
_MOST_CHARACTERS = 96 * 2**10
_MOST_BYTES = 2**26  # of the scenarios
_STEP = ("python", "-m", "harness.cli.loading.in_pod", "orchestrate")


def compiled(
    image: str, load: Sequence[str], *, cpu: str, memory: str, imported: bool, labels: Mapping[str, str] | None = None
) -> bytes:
    """The pipeline as compiled IR.

    Args:
        image: of the step, with Pipeswarm.
        load: the load test's command without its scenarios.
        cpu: what the step requests …
        memory: … and this, its limit too.
        imported: whether the parameter is the scenarios' address, not their text.
        labels: of the step's pod.
    """
    from kfp import compiler, dsl

    def step(given: object, run: object, report: object, exit_code: object) -> dsl.ContainerSpec:
        return dsl.ContainerSpec(
            image=image, command=list(_STEP),
            args=[
                "--file" if imported else "--text", given,
                "--run", run, "--report", report, "--exit-code", exit_code, "--", *load,
            ],
        )  # fmt: skip

    # The SDK reads the signatures.
    def load_test(
        scenarios: str, run: dsl.Output[dsl.Artifact], report: dsl.Output[dsl.HTML],
        exit_code: dsl.OutputPath(int),  # type: ignore[valid-type]
    ) -> dsl.ContainerSpec:  # fmt: skip
        return step(scenarios, run.path, report.path, exit_code)

    def load_test_of_file(
        scenarios: dsl.Input[dsl.Dataset], run: dsl.Output[dsl.Artifact], report: dsl.Output[dsl.HTML],
        exit_code: dsl.OutputPath(int),  # type: ignore[valid-type]
    ) -> dsl.ContainerSpec:  # fmt: skip
        return step(scenarios.path, run.path, report.path, exit_code)

    def orchestrator(scenarios: str) -> None:
        if imported:
            table = dsl.importer(artifact_uri=scenarios, artifact_class=dsl.Dataset, reimport=True)
            task = dsl.container_component(load_test_of_file)(scenarios=table.output)
        else:
            task = dsl.container_component(load_test)(scenarios=scenarios)
        task.set_caching_options(False).set_cpu_request(cpu).set_memory_request(memory).set_memory_limit(memory)

    described = "Starts a run for each scenario, as the schedule says, and keeps the report."
    pipeline = dsl.pipeline(name=NAME, description=described)(orchestrator)
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
        package = Path(place) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(package))
        documents = reading.parse_yaml(reading.read_bytes(package), NAME)
    changed = prepared(documents, Settings(labels=tuple((labels or {}).items())))
    return bytes(yaml.safe_dump_all(changed, sort_keys=True, encoding="utf-8"))


def packed(table: bytes, source: object) -> str:
    """The scenarios as a text that a parameter can hold.

    Raises:
        ConfigError: they are too large for it.
    """
    text = base64.b64encode(gzip.compress(table, mtime=0)).decode()
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(
            f"{source} has {len(text) / 2**10:,.0f} KiB compressed, a parameter holds {_MOST_CHARACTERS // 2**10} KiB",
            "put it into the artifact store and give its address: --scenarios s3://BUCKET/NAME",
        )
    return text


def unpacked(text: str) -> bytes:
    """The scenarios of `packed`.

    Raises:
        ConfigError: the text is none of its results, or expands to more than 64 MiB.
    """
    try:
        expanding = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # of gzip
        table = expanding.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise ConfigError(f"the scenarios can't be read: {error}", "start the orchestrator with pipeswarm") from error
    if not expanding.eof:
        raise ConfigError("the scenarios are truncated or too large", "start the orchestrator with pipeswarm")
    return table

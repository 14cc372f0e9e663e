"""Reads the inputs of a compiled KFP pipeline that scenarios can vary."""

from pathlib import Path

from generators.inference.parameter import Parameters
from harness import reading
from harness.prepare.changes import platform_of
from harness.prepare.pools import placing
from harness.targets.kfp.pipeline import HINT, inputs_of, read_ir


def read_pipeline(path: Path) -> Parameters:
    """The parameters of a compiled pipeline, but those that place pods and have a default.

    Raises:
        ConfigError: the file is not a compiled pipeline, or needs an artifact, which a CSV can't hold.
    """
    _, (spec, *rest) = read_ir(path)
    inputs = inputs_of(str(path), spec)
    with reading.structured(path, HINT):
        placed_by = placing(platform_of(rest[0] if rest else {}))
        kept = [each.name for each in inputs if each.name in placed_by and not each.required]
        artifacts = (spec["root"].get("inputDefinitions") or {}).get("artifacts") or {}
        notes = [f"the optional artifact '{name}' is left out" for name in artifacts]
        notes += [f"'{name}', which places pods, is left out: each run takes its default" for name in kept]
        varied = tuple(each for each in inputs if each.name not in kept)
        return Parameters(varied, str(path), tuple(notes))

"""Shared by tests of the generators: from a spec to its columns."""

from pathlib import Path

import pandas as pd

from generators.sampler import Sampler
from generators.schema import validate
from generators.sources import Sources
from generators.spec import Spec, read_spec
from harness.documents import Document, parse_yaml


def spec_of(fields, folder: Path = Path()) -> Spec:
    """A spec of YAML text or of plain definitions, checked as a user's file is."""
    document = (
        parse_yaml(fields, "test.yaml", folder)
        if isinstance(fields, str)
        else Document({"fields": fields}, "test", {}, folder)
    )
    validate(document)
    return read_spec(document)


def drawn(fields, n=1000, *, seed=1, folder: Path = Path()) -> dict[str, pd.Series]:
    """The typed columns of n rows."""
    block = Sampler(spec_of(fields, folder), seed, n, Sources()).block(0, n)
    return {
        name: pd.Series(column.to_list(), dtype=object if column.missing is not None else None)
        for name, column in block.items()
    }


def column(definition, n=1000, **more) -> list:
    """The values of one field."""
    return drawn({"x": definition}, n, **more)["x"].to_list()

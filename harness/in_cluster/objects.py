"""Files to and from an object store, as ``s3://bucket/name``.

Credentials and address come from the variables that AWS tools read, or from the machine's own role.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import reading
from harness.in_cluster.inputs import OBJECT_STORE
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.store.folder import MOST_RECORDS

_CONNECT_S = 10.0


def fetch(address: str, to: Path, environment: Mapping[str, str]) -> None:
    """Copy an object to a file.

    Raises:
        ConfigError: there is no such object, or it may not be read.
        TargetUnreachableError: the store does not answer.
    """
    key = _key(address)
    try:
        with _store(environment).open_input_stream(key) as source, to.open("wb") as out:
            shutil.copyfileobj(source, out)
    except OSError as error:
        raise _refused(address, error) from error


def upload(folder: Path, address: str, environment: Mapping[str, str]) -> None:
    """Copy the files in `folder` and below to objects whose names begin with `address`; raises as `fetch`."""
    key = _key(address)
    try:
        store = _store(environment)
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            # Objects only: an object for each folder, as `pyarrow.fs.copy_files` makes, is not to every store's taste.
            with (
                reading.open_file(path, MOST_RECORDS) as source,
                store.open_output_stream(f"{key}/{path.relative_to(folder)}") as out,
            ):
                shutil.copyfileobj(source, out)
    except OSError as error:
        raise _refused(address, error) from error


def check_address(address: str) -> None:
    """Check that `address` is a bucket, with or without a prefix.

    Raises:
        ConfigError: it is not.
    """
    _key(address)


def _key(address: str) -> str:
    key = address.removeprefix(OBJECT_STORE).strip("/")
    if not address.startswith(OBJECT_STORE) or not key:
        raise ConfigError(f"{address} is not an address in an object store", "write it as s3://BUCKET/NAME")
    return key


def _store(environment: Mapping[str, str]) -> Any:
    from pyarrow import fs

    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else "")
    return fs.S3FileSystem(
        endpoint_override=endpoint, region=region or None, connect_timeout=_CONNECT_S, allow_delayed_open=True
    )


def _refused(address: str, error: OSError) -> ConfigError | TargetUnreachableError:
    text = " ".join(str(error).split())
    if "NETWORK_CONNECTION" in text:
        return TargetUnreachableError(f"the object store of {address} does not answer: {text}", _HINT)
    return ConfigError(f"{address}: {text}", _HINT)


_HINT = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL (a store other than AWS) say where and as whom"

"""Hourly prices of nodes: given by pool and kept in the run folder, or as OpenCost measured them by node."""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

import pandas as pd

from harness import reading
from harness.model.errors import ConfigError
from harness.model.phases import NODE_PRICE
from harness.store.folder import RunFolder

EVERY = "*"  # all pools that are not named
ON_DEMAND = "@on-demand"  # after a pool's name: what one of its spot machines would cost on demand
_COLUMN = "on_demand"
PRICES = "prices.json"


def parse_price(text: str) -> tuple[str, float]:
    """The pool and the price of ``POOL=0.19``, of ``POOL@on-demand=0.45``, or of ``0.19`` for every pool.

    Raises:
        ConfigError: the price is not a number of at least 0.
    """
    pool, _, number = text.rpartition("=")
    try:
        price = float(number)
    except ValueError:
        price = -1.0
    if not isfinite(price) or price < 0:
        raise ConfigError(
            f"'{text}' is not a price",
            "write POOL=0.19 (per node and hour), or 0.19 for all pools",
        )
    return pool.strip() or EVERY, price


def read_prices(path: Path, nodes: pd.DataFrame) -> dict[str, float]:
    """The prices of a YAML or JSON file, ``POOL: 0.19`` or ``MACHINE TYPE: 0.19``, for the pools of these nodes.

    The file may be that of a whole company: what the run has no nodes of is left out; a pool's own price counts first.

    Raises:
        ConfigError: the file can't be read, or holds something else.
    """
    try:
        document = next(iter(reading.parse_yaml(reading.read_text(path), path)), None)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "give the path of a readable file") from error
    if not isinstance(document, dict) or not document:
        raise ConfigError(f"{path} is not a mapping of pools or machine types to prices", "write it as pool-a: 0.19")
    prices = dict(parse_price(f"{name}={price}") for name, price in document.items())
    machines = zip(nodes["pool"], nodes["machine"], strict=True)
    of_pools = {str(pool): prices[machine] for pool, machine in machines if machine in prices}
    known = {*nodes["pool"], EVERY}
    return of_pools | {pool: price for pool, price in prices.items() if pool.removesuffix(ON_DEMAND) in known}


def keep_prices(folder: RunFolder, given: Mapping[str, float], nodes: pd.DataFrame) -> None:
    """Add prices to those kept in the folder; a pool's new price replaces its old one.

    Raises:
        ConfigError: the run has no node of that pool.
    """
    pools = sorted(set(nodes["pool"]))
    for pool in given:
        if pool != EVERY and pool.removesuffix(ON_DEMAND) not in pools:
            known = ", ".join(pools) or "none, no node was observed"
            raise ConfigError(f"there is no node of the pool '{pool}'", f"pools of this run: {known}")
    prices = kept_prices(folder) | dict(given)
    folder.replace(PRICES, json.dumps(prices, indent=2, sort_keys=True).encode() + b"\n")


def kept_prices(folder: RunFolder) -> dict[str, float]:
    """The prices kept in the folder, by pool.

    Raises:
        ConfigError: the file is damaged.
    """
    if not folder.has(PRICES):
        return {}
    file, hint = folder.path / PRICES, "delete it and give --price again"
    prices = reading.parse_json(folder.read_bytes(PRICES), file, hint)
    if not isinstance(prices, dict) or not all(type(price) in {int, float} and price >= 0 for price in prices.values()):
        raise ConfigError(f"{file} can't be read: it is not a mapping of pools to prices", hint)
    return {pool: float(price) for pool, price in prices.items()}


def priced(nodes: pd.DataFrame, samples: pd.DataFrame, prices: Mapping[str, float]) -> pd.DataFrame:
    """The nodes with these prices in place of recorded ones, and with `on_demand` where a price on demand is given.

    What has neither a given price nor a recorded one costs what was measured of the node, on average.
    """
    measured = samples[samples["metric"] == NODE_PRICE]
    if len(measured):
        names = measured["labels"].map(lambda text: json.loads(text).get("node"))
        means = measured["value"].groupby(names.to_numpy()).mean()
        nodes = nodes.assign(price=nodes["price"].fillna(nodes["name"].map(means).astype(nodes["price"].dtype)))
    if not prices:
        return nodes
    dear = {pool.removesuffix(ON_DEMAND): price for pool, price in prices.items() if pool.endswith(ON_DEMAND)}
    if dear:
        nodes = nodes.assign(**{_COLUMN: nodes["pool"].map(dear).astype(nodes["price"].dtype)})
    known = nodes["pool"].map(prices).astype(nodes["price"].dtype)
    return nodes.assign(price=known.fillna(nodes["price"] if EVERY not in prices else prices[EVERY]))

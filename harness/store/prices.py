"""What a node costs an hour, by pool: a cluster does not tell, so a run's folder keeps what its reader knows."""

import json
from collections.abc import Mapping
from math import isfinite

import pandas as pd

from harness.model.errors import ConfigError
from harness.store.folder import RunFolder

EVERY = "*"  # the pools that are not named
_KEPT = "prices.json"


def parse_price(text: str) -> tuple[str, float]:
    """The pool and the price of ``POOL=0.19``, or of ``0.19`` for every pool.

    Raises:
        ConfigError: the price is not a number of at least 0.
    """
    pool, _, number = text.rpartition("=")
    try:
        price = float(number)
    except ValueError:
        price = -1.0
    if not isfinite(price) or price < 0:
        raise ConfigError(f"'{text}' is no price", "write POOL=0.19, what one node of the pool costs an hour, or 0.19")
    return pool.strip() or EVERY, price


def keep_prices(folder: RunFolder, given: Mapping[str, float], nodes: pd.DataFrame) -> None:
    """Keep prices in the folder beside those that are kept already; the one that was given last counts.

    Raises:
        ConfigError: no node of the run is of that pool.
    """
    pools = sorted(set(nodes["pool"]))
    for pool in given:
        if pool != EVERY and pool not in pools:
            known = ", ".join(pools) or "none: no node was observed"
            raise ConfigError(f"no node is of the pool '{pool}'", f"pools of this run are: {known}")
    prices = kept_prices(folder) | dict(given)
    folder.replace(_KEPT, json.dumps(prices, indent=2, sort_keys=True).encode() + b"\n")


def kept_prices(folder: RunFolder) -> dict[str, float]:
    """The prices that are kept in the folder, by pool.

    Raises:
        ConfigError: they have been damaged.
    """
    file = folder.path / _KEPT
    if not file.is_file():
        return {}
    try:
        return {str(pool): float(price) for pool, price in json.loads(file.read_bytes()).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{file} holds no prices", "remove it, and give --price again") from error


def priced(nodes: pd.DataFrame, prices: Mapping[str, float]) -> pd.DataFrame:
    """The nodes with these prices: they count more than what was recorded."""
    if not prices:
        return nodes
    known = nodes["pool"].map(prices).astype(nodes["price"].dtype)
    return nodes.assign(price=known.fillna(nodes["price"] if EVERY not in prices else prices[EVERY]))

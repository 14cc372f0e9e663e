"""Hourly prices of nodes: given by pool and kept in the run folder, or as OpenCost measured them by node."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
CURRENCY = "currency"  # the key in files, and the column of nodes
PRICES = "prices.json"
_CODE = re.compile(r"[A-Z]{3}")  # ISO 4217


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of nodes.

    Attributes:
        by_pool: per node and hour.
        currency: as a code of ISO 4217; "" where none was given.
    """

    by_pool: Mapping[str, float] = field(default_factory=dict)
    currency: str = ""


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
        raise ConfigError(f"'{text}' is not a price", "write POOL=0.19 (per node and hour), or 0.19 for all pools")
    return pool.strip() or EVERY, price


def read_prices(path: Path, nodes: pd.DataFrame) -> Prices:
    """The prices of a YAML or JSON file, ``POOL: 0.19`` or ``MACHINE TYPE: 0.19``, for the pools of these nodes.

    ``currency: EUR`` names their currency. The file may be that of a whole company: what the run has no nodes of is
    left out; a pool's own price counts first.

    Raises:
        ConfigError: the file can't be read, or holds something else.
    """
    try:
        document = next(iter(reading.parse_yaml(reading.read_text(path), path)), None)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "give the path of a readable file") from error
    if not isinstance(document, dict) or not document:
        raise ConfigError(f"{path} is not a mapping of pools or machine types to prices", "write it as pool-a: 0.19")
    currency = _currency(document.pop(CURRENCY, ""), path, "write it as currency: EUR")
    try:
        prices = dict(parse_price(f"{name}={price}") for name, price in document.items())
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", error.hint) from error
    machines = zip(nodes["pool"], nodes["machine"], strict=True)
    of_pools = {str(pool): prices[machine] for pool, machine in machines if machine in prices}
    known = {*nodes["pool"], EVERY}
    of_pools |= {pool: price for pool, price in prices.items() if pool.removesuffix(ON_DEMAND) in known}
    return Prices(of_pools, currency)


def _currency(code: object, path: Path, hint: str) -> str:
    if code != "" and not (isinstance(code, str) and _CODE.fullmatch(code)):
        raise ConfigError(f"{path}: {code!r:.40} is not a code of a currency, such as EUR", hint)
    return str(code)


def keep_prices(folder: RunFolder, given: Prices, nodes: pd.DataFrame) -> None:
    """Add prices to those kept in the folder; a pool's new price and a new currency replace the old ones.

    Raises:
        ConfigError: the run has no node of that pool.
    """
    pools = sorted(set(nodes["pool"]))
    for pool in given.by_pool:
        if pool != EVERY and pool.removesuffix(ON_DEMAND) not in pools:
            known = ", ".join(pools) or "none, no node was observed"
            raise ConfigError(f"there is no node of the pool '{pool}'", f"pools of this run: {known}")
    old = kept_prices(folder)
    currency = given.currency or old.currency
    kept = {**old.by_pool, **given.by_pool, **({CURRENCY: currency} if currency else {})}
    folder.replace(PRICES, json.dumps(kept, indent=2, sort_keys=True).encode() + b"\n")


def kept_prices(folder: RunFolder) -> Prices:
    """The prices kept in the folder.

    Raises:
        ConfigError: the file is damaged.
    """
    if not folder.has(PRICES):
        return Prices()
    file, hint = folder.path / PRICES, "delete it and give --price again"
    kept = reading.parse_json(folder.read_bytes(PRICES), file, hint)
    currency = _currency(kept.pop(CURRENCY, ""), file, hint) if isinstance(kept, dict) else ""
    if not isinstance(kept, dict) or not all(type(price) in {int, float} and price >= 0 for price in kept.values()):
        raise ConfigError(f"{file} can't be read: it is not a mapping of pools to prices", hint)
    return Prices({pool: float(price) for pool, price in kept.items()}, currency)


def priced(nodes: pd.DataFrame, samples: pd.DataFrame, given: Prices) -> pd.DataFrame:
    """The nodes with these prices in place of recorded ones, and their currency where it is known.

    They have a column `on_demand` where a price on demand is given.

    What has neither a given price nor a recorded one costs what was measured of the node, on average.
    """
    measured = samples[samples["metric"] == NODE_PRICE]
    if len(measured):
        names = measured["labels"].map(lambda text: json.loads(text).get("node"))
        means = measured["value"].groupby(names.to_numpy()).mean()
        nodes = nodes.assign(price=nodes["price"].fillna(nodes["name"].map(means).astype(nodes["price"].dtype)))
    if given.currency:
        nodes = nodes.assign(**{CURRENCY: given.currency})
    prices = given.by_pool
    if not prices:
        return nodes
    dear = {pool.removesuffix(ON_DEMAND): price for pool, price in prices.items() if pool.endswith(ON_DEMAND)}
    if dear:
        nodes = nodes.assign(**{_COLUMN: nodes["pool"].map(dear).astype(nodes["price"].dtype)})
    known = nodes["pool"].map(prices).astype(nodes["price"].dtype)
    return nodes.assign(price=known.fillna(nodes["price"] if EVERY not in prices else prices[EVERY]))

"""Plausible values for a parameter, by its name, type and default: near the default, and in its format."""

import re
from typing import Any
from urllib.parse import urlsplit

import orjson

from generators.inference.draft import Definition, Draft, neat
from generators.kinds.text import escaped

_VARYING = re.compile(
    r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<date>(?<!\d)(?:19|20)\d\d(?P<dash>[-/_.])(?:0[1-9]|1[0-2])(?P=dash)(?:0[1-9]|[12]\d|3[01])(?!\d))"
    r"|(?P<month>(?<!\d)(?:19|20)\d\d(?P<slash>[-/_.])(?:0[1-9]|1[0-2])(?![\d]))"
    # Digits beside a letter belong to a word: s3, v2, sha256. Digits after a point are a version or a fraction.
    r"|(?P<number>(?<![A-Za-z\d])(?<!\d\.)\d{1,15}(?![A-Za-z\d]|\.\d))"
)
_SWEPT = ("multiplier", "scale", "factor", "size", "volume", "rows", "samples")
_SHARES = ("rate", "ratio", "fraction", "share", "split", "dropout", "probability", "threshold", "alpha")
_SPREADING = ("learning_rate", "lr", "weight_decay", "tolerance", "tol", "epsilon", "eps", "regularization")
_PLACES = ("url", "uri", "path", "dataset", "data", "source", "bucket", "input", "file")
_MOMENTS = ("date", "day", "start", "end", "begin", "from", "until", "since", "time", "timestamp", "at")
_DOCUMENTS = ("scenario", "config", "configuration", "params", "parameters", "settings", "payload", "request", "spec")
_LISTS = {
    "model": ["linear", "forest", "boosting", "network"],
    "algorithm": ["linear", "forest", "boosting", "network"],
    "optimizer": ["adam", "sgd", "rmsprop"],
    "env": ["dev", "test", "prod"],
    "environment": ["dev", "test", "prod"],
    "team": ["alpha", "beta", "gamma", "delta"],
    "tenant": ["alpha", "beta", "gamma", "delta"],
    "language": ["en", "de", "fr"],
    "country": ["AT", "DE", "FR", "IN", "PT", "US"],
}
_FAKED = {
    "email": "email",
    "user": "user_name",
    "owner": "user_name",
    "name": "name",
    "city": "city",
    "company": "company",
    "customer": "company",
}


def integer(name: str, default: int | None) -> Definition:
    """Around the default: a sweep when the name suggests a size, otherwise ±50 %."""
    words = _words(name)
    if words & {"seed", "state"}:
        return {"integer": [0, 2**31 - 1]}
    if default is None:
        return {"integer": [1, 100]}
    if default >= 4 and words & set(_SWEPT):
        return {"scale": sorted({default, default + default // 4, default + default // 2})}
    if "batch" in words and default >= 2:
        return {"choice": sorted({max(default // 2, 1), default, default * 2})}
    spread = max(abs(default) // 2, 1)
    low = default - spread
    return {"integer": [max(low, 1) if default > 0 else low, default + spread]}


def number(name: str, default: float | None) -> Definition:
    """Around the default, with its sign and similar precision."""
    words = _words(name)
    if default is None or default == 0:
        return {"uniform": [0, 1], "decimals": 4}
    decimals = _decimals(default)
    if default > 0 and (name.lower() in _SPREADING or words & {"lr", "decay", "tol", "eps"}):
        return {"lognormal": [default, 0.6], "decimals": min(decimals + 2, 12)}
    if 0 < default < 1 and words & set(_SHARES):
        return {"uniform": [neat(default / 2), neat(min(default * 1.5, 1.0))], "decimals": decimals}
    if default > 0:
        return {"lognormal": [default, 0.25], "decimals": decimals}
    return {"normal": [default, neat(abs(default) / 4)], "max": 0, "decimals": decimals}


def boolean(default: bool | None) -> Definition:
    """The default in three of four rows."""
    return {"boolean": 0.5 if default is None else 0.75 if default else 0.25}


def text(name: str, default: str | None, draft: Draft) -> Definition:
    """The default's format with other numbers, dates and ids; without a default, values that match the name."""
    if default is not None and _is_document(default):
        return document(name, orjson.loads(default), draft)
    if not default:
        return _named(name, draft)
    pattern, varied = _varied(name, default, draft)
    if varied:
        return {"template": pattern}
    if "://" in default or default.startswith("/"):
        return {"template": _with_id(pattern)}
    listed = next((values for key, values in _LISTS.items() if key in _words(name)), None)
    if listed is not None:
        return {"choice": {default: len(listed)} | {value: 1 for value in listed if value != default}}
    return {"choice": [default]}


def document(name: str, default: Any, draft: Draft) -> Definition:
    """A JSON document with the default's keys; if empty, a scenario's document where the name suggests one."""
    if not default and not isinstance(default, list) and _words(name) & set(_DOCUMENTS):
        return {"json": _scenario(draft)}
    if default is None:
        return {"json": {"id": "{id}"}}
    return {"json": _like(name, default, draft)}


def array(name: str, default: list[Any] | None, draft: Draft) -> Definition:
    """A list with the default's length and types of values."""
    if default is None:
        return {"json": {"$repeat": {"of": {"$": integer(name, None)}, "min": 1, "max": 3}}}
    return {"json": _like(name, default, draft)}


def _scenario(draft: Draft) -> dict[str, Any]:
    return {
        "id": "{id}",
        "name": "{scenario_name}",
        "plant": f"{{{draft.word('plant')}}}",
        "sensor": f"{{{draft.word('sensor')}}}",
        "start": f"{{{draft.word('date')}}}",
        "days": {"$": {"choice": {30: 3, 60: 2, 90: 1}}},
    }


def _like(name: str, value: Any, draft: Draft) -> Any:
    if isinstance(value, bool):
        return {"$": boolean(value)}
    if isinstance(value, int | float):
        whole = float(value).is_integer()
        return {"$": integer(name, int(value)) if whole else number(name, float(value))}
    if isinstance(value, str):
        return _varied(name, value, draft)[0]
    if isinstance(value, dict):
        return {key: _like(key, item, draft) for key, item in value.items()}
    if isinstance(value, list):
        return [_like(name, item, draft) for item in value]
    return value


def _varied(name: str, default: str, draft: Draft) -> tuple[str, bool]:
    """The default as a template in which ids, dates and numbers vary, and whether there are any."""
    start = 0
    scheme = urlsplit(default) if "://" in default else None
    if scheme is not None:
        start = len(scheme.scheme) + 3 + len(scheme.netloc)  # keep host and port
    pattern, varied = escaped(default[:start]), False
    position = start
    for match in _VARYING.finditer(default, start):
        pattern += escaped(default[position : match.start()]) + _varying(name, match, draft)
        position, varied = match.end(), True
    return pattern + escaped(default[position:]), varied


def _varying(name: str, match: re.Match[str], draft: Draft) -> str:
    found = match.group()
    if match["uuid"]:
        return f"{{{draft.helper(name, {'kind': 'uuid'})}}}"
    if match["date"] or match["month"]:
        day = draft.helper(name, {"datetime": [f"{found[:4]}-01-01", f"{found[:4]}-12-31"]})
        separator = match["dash"] or match["slash"]
        return f"{{{day}:{separator.join(['%Y', '%m', '%d'][: 3 if match['date'] else 2])}}}"
    width = len(found)
    if found.startswith("0") and width > 1:
        return f"{{{draft.helper(name, {'integer': [0, 10**width - 1]})}:0{width}d}}"
    low, high = (1, 99) if width == 1 else (10 ** (width - 1), 10**width - 1)
    return f"{{{draft.helper(name, {'integer': [low, high]})}}}"


def _with_id(pattern: str) -> str:
    """The pattern with the scenario's id: in the query of a web address, otherwise in the file or folder name."""
    if pattern.startswith(("http://", "https://")):
        return f"{pattern}{'&' if '?' in pattern else '?'}scenario={{id}}"
    head, slash, last = pattern.rpartition("/")
    stem, point, ending = last.rpartition(".")
    if point and stem:
        return f"{head}{slash}{stem}-{{id}}.{ending}"
    return f"{pattern.rstrip('/')}/{{id}}"


def _named(name: str, draft: Draft) -> Definition:
    words = _words(name)
    if words & set(_DOCUMENTS):
        return {"json": _scenario(draft)}
    if words & set(_PLACES):
        place = "{" + draft.word("plant") + "}/{" + draft.word("date") + ":%Y/%m}/{" + draft.word("sensor") + "}"
        return {"template": f"s3://training/{place}.parquet"}
    known = words & {"region", "plant", "sensor"}
    if known:
        return {"template": f"{{{draft.word(min(known))}}}"}
    if words & set(_MOMENTS):
        return {"datetime": ["2025-01-01", "2025-12-31"]}
    return _listed(words) or {"template": f"{escaped(name)}-{{id}}"}


def _listed(words: set[str]) -> Definition | None:
    for key in sorted(words & _LISTS.keys()):
        return {"choice": _LISTS[key]}
    for key in sorted(words & _FAKED.keys()):
        return {"faker": _FAKED[key]}
    return {"kind": "uuid"} if words & {"id", "uuid", "key"} else None


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def _is_document(default: str) -> bool:
    if not default.lstrip().startswith(("{", "[")):
        return False
    try:
        orjson.loads(default)
    except orjson.JSONDecodeError:
        return False
    return True


def _decimals(value: float) -> int:
    """Two decimals more than the value has, so that values near it differ."""
    shown = f"{value:.12g}"
    mantissa, _, exponent = shown.partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return max(0, min(places + 2, 12))

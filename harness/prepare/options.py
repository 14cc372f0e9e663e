"""What to set on a pipeline, as options of a command or as one text: ``spot=aks,retries=5``."""

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from harness.model.errors import ConfigError
from harness.prepare.settings import (
    PULL_POLICIES,
    SPOT,
    Resources,
    Settings,
    checked,
    gpus_of,
    images_of,
    pairs,
    placement_of,
    retry_of,
    timeout_of,
)  # fmt: skip

QUANTITIES = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _configure_tasks(parser.add_argument_group("tasks"))
    _configure_placement(parser.add_argument_group("nodes"))
    _configure_containers(parser.add_argument_group("pods"))


def _configure_tasks(group: Any) -> None:
    group.add_argument("--task", action="append", default=[], metavar="PATTERN",
                       help="change these steps only, as in 'train*' (repeatable; default: all)")  # fmt: skip
    group.add_argument("--retries", type=int, metavar="N", help="retries of a failed step; 0 for none")
    group.add_argument("--backoff", default="0s", metavar="TIME", help="wait before the first retry (default: 0s)")
    group.add_argument("--backoff-factor", type=float, default=2.0, metavar="X",
                       help="each wait is this many times the last one (default: 2)")  # fmt: skip
    group.add_argument("--backoff-max", default="1h", metavar="TIME", help="time for all retries (default: 1h)")


def _configure_placement(group: Any) -> None:
    group.add_argument("--node-selector", action="append", default=[], metavar="KEY=VALUE",
                       help="label of the nodes (repeatable)")  # fmt: skip
    group.add_argument("--toleration", action="append", default=[], metavar="KEY=VALUE:EFFECT",
                       help="taint that the pods tolerate (repeatable)")  # fmt: skip
    group.add_argument("--affinity", action="append", default=[], metavar="EXPRESSION",
                       help="label required of nodes: key=a,b key!=a key !key key>5; preferred with @WEIGHT at the"
                            " end (repeatable)")  # fmt: skip
    group.add_argument("--pool-parameter", default="", metavar="NAME",
                       help="let each run choose its nodes: this parameter is the selector")  # fmt: skip
    group.add_argument("--spot", default="", metavar="KIND",
                       help=f"selector, toleration and affinity of spot nodes: {', '.join(SPOT)}, or their"
                            " label key=value")  # fmt: skip


def _configure_containers(group: Any) -> None:
    for name in QUANTITIES:
        words = name.split("_")
        group.add_argument(f"--{'-'.join(words)}", default="", metavar="QUANTITY", help=f"{' '.join(words)} of steps")
    group.add_argument("--gpu", default="", metavar="[TYPE=]N", help="number of GPUs; their type is nvidia.com/gpu")
    group.add_argument("--image-pull-policy", choices=PULL_POLICIES, default="", help="when nodes pull images")
    group.add_argument("--image-map", action="append", default=[], metavar="FROM=TO",
                       help="replace the beginning FROM of image names (repeatable)")  # fmt: skip
    group.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="label of pods (repeatable)")
    group.add_argument("--timeout", default="", metavar="TIME", help="longest time of a step's pod")


def settings_of(
    given: argparse.Namespace, *, caching: bool, by_step: Mapping[str, Resources] | None = None
) -> Settings:
    """What the options set; `caching` and `by_step` as in `Settings`.

    Raises:
        ConfigError: an option has no valid value.
    """
    count, kind = gpus_of(given.gpu)
    quantities = {name: getattr(given, name) for name in QUANTITIES}
    return Settings(
        tasks=tuple(given.task),
        caching=caching,
        placement=placement_of(given.node_selector, given.toleration, given.affinity, given.spot, given.pool_parameter),
        retry=retry_of(given.retries, given.backoff, given.backoff_factor, given.backoff_max),
        resources=checked(Resources(**quantities, gpus=count, gpu=kind), "options"),
        by_step=by_step,
        pull_policy=given.image_pull_policy,
        images=images_of(given.image_map),
        labels=pairs("--label", given.label),
        timeout_s=timeout_of(given.timeout),
    )


def parse_settings(text: str) -> tuple[Settings, ...]:
    """The settings of a text such as ``task=train*,spot=aks,retries=5; task=report,cpu-request=1``.

    They are to be applied one after the other, and leave caching as it is.

    Raises:
        ConfigError: there is no such option, or it has no valid value.
    """
    return tuple(_parsed(part) for part in map(str.strip, text.split(";")) if part)


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message.replace("argument --", ""), _HINT)


_HINT = "write options of pipeswarm prepare as spot=aks,retries=5"


def _parsed(text: str) -> Settings:
    parser = _Parser(add_help=False, allow_abbrev=False)
    configure(parser)
    names = [flag.removeprefix("--") for action in parser._actions for flag in action.option_strings]  # noqa: SLF001
    starts = re.compile(rf",\s*(?=(?:{'|'.join(map(re.escape, names))})\s*=)")  # values may contain commas, too
    arguments = []
    for part in starts.split(text):
        name, sign, value = map(str.strip, part.partition("="))
        if name not in names or not sign or not value:
            raise ConfigError(
                f"'{part}' is not a setting", f"settings are {', '.join(names)}, as in spot=aks,retries=5"
            )
        arguments.append(f"--{name}={value}")
    return settings_of(parser.parse_args(arguments), caching=True)

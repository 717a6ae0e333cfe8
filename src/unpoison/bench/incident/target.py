"""The system that gave the wrong answer, as a red-team configuration describes it; only asking is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unpoison.bench.incident.experiment import Asked
from unpoison.bench.redteam.config import Config, RequestLimits, Wait, build_target
from unpoison.bench.redteam.http_client import Hosts
from unpoison.io.settings import load_yaml

__all__ = ["System", "open_target"]


class System(NamedTuple):
    """A system, and how it may be asked."""

    target: Asked
    bounds: RequestLimits
    wait: Wait


def open_target(path: Path, may_test: Sequence[str] = ()) -> System:
    """The system of a configuration; what is said there of questions and attacks is not needed.

    Raises:
        InputError: The file cannot be read, or is no YAML.
        UnknownNameError, OptionError: A configuration that cannot be used.
    """
    values = load_yaml(path)
    config = Config.of({"questions": "sample", **values} if isinstance(values, Mapping) else values, path.parent)
    target: Asked = build_target(config.target, Hosts(may_test), folder=config.folder, timeout=config.limits.timeout)
    return System(target, config.limits, config.wait)

"""The system that gave the wrong answer, as a red-team configuration describes it; only asking is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unpoison.bench.incident.experiment import Asked
from unpoison.bench.redteam.config import Bounds, Config, Wait, build_target
from unpoison.bench.redteam.hosts import Hosts
from unpoison.errors import InputError, OptionError
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS
from unpoison.io.settings import load_yaml

__all__ = ["System", "open_target", "read_regressions"]


class System(NamedTuple):
    """A system, how it may be asked, and what takes secrets out of what it says."""

    target: Asked
    bounds: Bounds
    wait: Wait
    mask: Callable[[Any], Any]


def open_target(path: Path, may_test: Sequence[str] = ()) -> System:
    """The system of a configuration; what is said there of questions and attacks is not needed.

    Raises:
        InputError: The file cannot be read, or is no YAML.
        UnknownNameError, OptionError: A configuration that cannot be used, or a target that reads no store.
    """
    values = load_yaml(path)
    config = Config.of({"questions": "sample", **values} if isinstance(values, Mapping) else values, path.parent)
    if "corpus" in config.target:
        raise OptionError(
            f"{path} describes a target without a store that others can change; an incident needs one that is asked "
            "over HTTP (target.ask) or in Python, and reads --store"
        )
    target: Asked = build_target(config.target, Hosts(may_test), folder=config.folder, timeout=config.bounds.timeout)
    return System(target, config.bounds, config.wait, lambda value: value)


def read_regressions(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Questions and their right answers of a file of rows.

    Raises:
        InputError: A row without a question, or one that cannot be read.
    """
    rows = list[tuple[str, tuple[str, ...]]]()
    with open_source(str(path)) as source:
        for record in source:
            question = next((record.fields[name] for name in QUERY_FIELDS if record.fields.get(name)), None)
            if record.error is not None or not isinstance(question, str):
                why = record.error or "it has no question"
                raise InputError(f"{path}:{record.number}: {why}; give a question in every row")
            right = record.fields.get("correct_answers") or []
            rows.append((question, tuple(map(str, right if isinstance(right, list) else [right]))))
    return rows

"""Removes every document that a journal lists as planted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unpoison.bench.redteam.config import Config, RequestLimits, Wait, build_target
from unpoison.bench.redteam.http_client import Hosts
from unpoison.bench.redteam.journal import RunJournal
from unpoison.bench.redteam.pace import Clock, Pace
from unpoison.bench.redteam.planter import Planter
from unpoison.errors import InputError, OptionError, clip

__all__ = ["Cleaned", "clean"]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of cleaning.

    Attributes:
        removed: Documents whose removal the target accepted.
        remaining: (canary, why) of those that may still be there.
        damaged: Lines of the journal that cannot be read; documents that they name are not known.
    """

    removed: int
    remaining: tuple[tuple[str, str], ...] = ()
    damaged: tuple[int, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.remaining and not self.damaged


def clean(
    path: Path,
    *,
    hosts: Hosts,
    config: Config | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> Cleaned:
    """Remove every document that a journal lists as planted.

    It may be interrupted and repeated. A document without an unambiguous id stays, and is named.

    Args:
        path: The journal.
        hosts: Where requests may go.
        config: The configuration, needed for a target in Python, since a journal never names code to run, and for a
            target that has moved.
        clock: Time.
        progress: Called after every document.

    Raises:
        InputError: There is no journal, the file is not a journal, or another process has it.
        OptionError: The target is Python code and no configuration was given, or its host may not be contacted.
    """
    if not path.is_file():
        raise InputError(f"{clip(str(path), 200)} does not exist; give the journal of 'unpoison redteam'")
    with RunJournal(path) as journal:
        history = journal.history
        damaged, plants = tuple(history.damaged), list(history.open)
        if history.run is None or not plants:
            return Cleaned(0, damaged=damaged)
        values = history.run["target"] if config is None else config.target
        if "python" in values and config is None:
            raise OptionError(
                f"the journal names Python code, {clip(values.get('python'))}, which only a configuration may: "
                f"give it with --config"
            )
        wait, clock = Wait.read(history.run.get("wait") or {}, "wait"), clock or Clock()
        target = build_target(values, hosts, folder=Path() if config is None else config.folder)
        planter = Planter(target, journal, Pace(RequestLimits(), clock), wait)
        remaining, end = list[tuple[str, str]](), clock.now() + wait.seconds
        for number, plant in enumerate(plants, 1):
            reason = planter.remove(plant, patience=max(0.0, end - clock.now()))
            if reason:
                remaining.append((plant.canary, reason))
            progress(number, len(plants), "cleaning")
        return Cleaned(len(plants) - len(remaining), tuple(remaining), damaged)

"""`redteam clean`: what a journal says was planted, out of the target, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unpoison.bench.redteam.addresses import Hosts
from unpoison.bench.redteam.building import build_target, kind_of
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.journal import Journal
from unpoison.bench.redteam.pace import Bounds, Clock, Pace, Wait
from unpoison.bench.redteam.removal import Remover
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import InputError, OptionError, clip

__all__ = ["Cleaned", "clean"]

IN_MEMORY = "the documents were in the memory of the process that has ended"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What cleaning came to.

    Attributes:
        removed: Documents that were removed, looked for and not found.
        accepted: Documents whose removal the target accepted, and that nobody could look for: it has no `find`.
        remaining: (canary, why) of those that may still be there.
        damaged: Lines of the journal that cannot be read; documents that they name are not known.
        notes: What else there is to say.
    """

    removed: int
    accepted: int = 0
    remaining: tuple[tuple[str, str], ...] = ()
    damaged: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.remaining and not self.damaged


def clean(
    path: Path,
    *,
    secrets: Secrets,
    hosts: Hosts,
    config: Config | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> Cleaned:
    """Remove everything that a journal holds open.

    It may be interrupted and repeated. What the target cannot be told apart stays, and is named.

    Args:
        path: The journal.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        config: The configuration, where the target is Python code: a journal is data, and names no code to be run; and
            where the target has moved.
        clock: Time.
        progress: Called after every document.

    Raises:
        InputError: There is no journal, or the file is not a journal, or another process has it.
        OptionError: The target is Python code and no configuration was given, or its host may not be spoken to.
    """
    if not path.is_file():
        raise InputError(f"{clip(str(path), 200)} does not exist; give the journal of 'unpoison redteam'")
    with Journal(path, secrets) as journal:
        history = journal.history
        damaged = tuple(history.damaged)
        if history.run is None or not history.open:
            return Cleaned(0, damaged=damaged)
        values = history.run["target"] if config is None else config.target
        kind = kind_of(values)
        if kind == "corpus":
            return _forget_plants(journal, damaged)
        if kind == "python" and config is None:
            raise OptionError(
                f"the journal names Python code, {clip(values.get('python'))}, which only a configuration may: "
                f"give it with --config"
            )
        wait, clock = Wait.of(history.run.get("wait")), clock or Clock()
        folder = Path() if config is None else config.folder
        target = build_target(values, secrets=secrets, hosts=hosts, folder=folder)
        remover = Remover(target, journal, Pace(Bounds(), clock), wait)
        remaining, plants, end = list[tuple[str, str]](), list(history.open), clock.now() + wait.seconds
        for number, plant in enumerate(plants, 1):
            reason = remover.remove(plant, patience=max(0.0, end - clock.now()))
            if reason:
                remaining.append((plant.canary, str(secrets.mask(reason))))
            progress(number, len(plants), "cleaning")
        removed = sum(plant.confirmed for plant in plants)
        return Cleaned(removed, len(plants) - len(remaining) - removed, tuple(remaining), damaged)


def _forget_plants(journal: Journal, damaged: tuple[int, ...]) -> Cleaned:
    plants = list(journal.history.open)
    for plant in plants:
        journal.append("removed", canary=plant.canary, deleted=False, confirmed=True)
    return Cleaned(len(plants), damaged=damaged, notes=(IN_MEMORY,))

"""Run a whole test from its configuration: open the journal, build the target, run the campaign, give the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from unpoison import __version__
from unpoison.bench.evaluation import Example, load
from unpoison.bench.evaluation.runs import moment
from unpoison.bench.redteam.campaign import Campaign, attacks_of
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.factory import build_target
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.journal import Journal
from unpoison.bench.redteam.pace import Clock, Pace
from unpoison.bench.redteam.results import NO_ATTACK, Results, Trial
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Document, Target
from unpoison.core.codec import from_row
from unpoison.errors import InputError, OptionError, UnpoisonError, clip

__all__ = ["rehearsal_of_requests", "resume_trials", "run_test"]

Progress = Callable[[int, int, str], None]


def run_test(
    config: Config,
    journal_path: Path,
    *,
    secrets: Secrets,
    hosts: Hosts,
    target: Target | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, total, doing: None,
) -> Results:
    """Run a test, or go on with one that was interrupted.

    Args:
        config: What it does.
        journal_path: Where it is written down, before anything is planted.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        target: The system itself, in place of the one that the configuration describes.
        clock: Time.
        progress: Called after every finished question.

    Returns:
        What was measured; incomplete where the target gave up or the budget was used up.

    Raises:
        InputError: No questions, or a journal that still holds documents of another run.
        OptionError, UnknownNameError: A configuration that cannot be used, or a budget that cannot suffice.
        TargetError: The rehearsal failed.
        KeyboardInterrupt: After everything in flight was taken back.
    """
    loaded = load(config.source)
    examples = loaded.examples[: config.limit]
    if not examples:
        why = f": {loaded.problems[0]}" if loaded.problems else ""
        raise InputError(f"{clip(config.questions)} holds no usable question{why}")
    attacks, pace = attacks_of(config), Pace(config.bounds, clock)
    system = target or build_target(
        config.target, secrets=secrets, hosts=hosts, folder=config.folder, timeout=config.bounds.timeout
    )
    _check_budget(config, len(examples))
    with Journal(journal_path, secrets) as journal:
        earlier = resume_trials(journal, config, getattr(system, "name", type(system).__name__))
        campaign = Campaign(
            config, system, journal, pace, masked=lambda text: str(secrets.mask(text)), progress=progress
        )
        campaign.problems += [f"{config.questions}: {problem}" for problem in loaded.problems]
        if not getattr(system, "marks", True):
            campaign.problems.append("planted documents carry no {canary}, so an operator cannot tell them from others")
        trials = campaign.run(examples, attacks, earlier)
        finished = None if pace.stopped else moment()
        if finished:
            journal.append("finished", at=finished)
        cells = [(NO_ATTACK, 0), *((name, count) for name in attacks for count in config.poisons)]
        return _results(journal, config, trials, cells, len(examples), finished, campaign.problems)


def rehearsal_of_requests(config: Config, *, secrets: Secrets, hosts: Hosts) -> list[str]:
    """What would be sent: the first question, the first poison, its removal, without secrets; nothing is sent.

    Raises:
        UnpoisonError: The configuration cannot be used.
    """
    loaded = load(config.source)
    examples = loaded.examples[: config.limit]
    if not examples:
        raise InputError(f"{clip(config.questions)} holds no usable question")
    system = build_target(config.target, secrets=secrets, hosts=hosts, folder=config.folder)
    canary = f"unpoison-{'0' * 8}-0000-4000-8000-{'0' * 12}"
    summary = [f"{_least(config, len(examples)):,} requests or more, {len(examples):,} questions"]
    document = Document(_first_poison(config, examples), canary)
    if not isinstance(system, HttpTarget):
        return [*summary, f"ask: {examples[0].question}", f"plant: {document.text}", f"remove: {document.uuid}"]
    values = {
        "login": {},
        "ask": {"question": examples[0].question, "uuid": document.uuid},
        "tools": {},
        "plant": {"text": document.text, "canary": canary, "uuid": document.uuid, "title": ""},
        "ready": {"id": "THE-ID"},
        "find": {"canary": canary, "uuid": document.uuid},
        "remove": {"id": "THE-ID"},
    }
    return summary + [f"{kind}: {system.describe(kind, values[kind])}" for kind in values if kind in system.kinds]


def _first_poison(config: Config, examples: Sequence[Example]) -> str:
    attack = next(iter(attacks_of(config).values()))
    for example in examples[:20]:
        try:
            return attack.craft(example.target(), 1)[0].text
        except UnpoisonError:
            continue
    return "(no poison could be crafted for the first questions)"


def resume_trials(journal: Journal, config: Config, name: str) -> list[Trial]:
    """What an interrupted run of the same test has measured; or the first line of a new one.

    Raises:
        InputError: Documents of an earlier run may still be planted.
    """
    history = journal.history
    if history.open:
        raise InputError(
            f"{journal.path} holds {len(history.open)} documents that may still be planted; first run: "
            f"unpoison redteam clean {journal.path}, or remove them by hand, by their canaries, and delete the file"
        )
    if history.run is not None and not history.finished and history.run.get("config") == config.digest():
        return [from_row(Trial, row) for row in history.trials]
    journal.append(
        "run",
        version=1,
        unpoison=__version__,
        name=name,
        target=dict(config.target),
        wait=config.wait.model_dump(),
        config=config.digest(),
        test={
            "questions": config.questions,
            "attacks": list(config.attacks),
            "poisons": list(config.poisons),
            "generator": config.generator,
            "seed": config.seed,
        },
        started=moment(),
    )
    return []


def _results(
    journal: Journal,
    config: Config,
    trials: Sequence[Trial],
    cells: Sequence[tuple[str, int]],
    examples: int,
    finished: str | None,
    problems: Sequence[str],
) -> Results:
    plants = journal.history.planted
    confirmed = sum(plant.confirmed for plant in plants)
    remaining = [(p.canary, "its removal did not succeed") for p in journal.history.open]
    return Results(
        run=journal.history.run or {},
        finished=finished,
        examples=examples,
        trials=tuple(trials),
        cells=tuple(cells),
        planted=len(plants),
        removed=confirmed,
        accepted=sum(plant.removed for plant in plants) - confirmed,
        remaining=tuple(remaining),
        problems=tuple(problems),
    )


def _least(config: Config, questions: int) -> int:
    """Requests that the budget counts, at the least: every question once, and per cell its plants and three answers."""
    cells = len(config.attacks) * sum(count + 3 for count in config.poisons)
    return questions * (1 + cells) + config.rehearse


def _check_budget(config: Config, questions: int) -> None:
    needed = _least(config, questions)
    if needed > config.bounds.budget:
        raise OptionError(
            f"{questions:,} questions need {needed:,} requests or more, and limits.budget is {config.bounds.budget:,}; "
            "raise it, or ask fewer with limit"
        )

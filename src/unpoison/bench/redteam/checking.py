"""Ask a system once, plant one harmless document, remove it, and say in a few lines what was understood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison.bench.evaluation import load
from unpoison.bench.redteam.cleanup import Remover
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.factory import build_target
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.journal import Journal
from unpoison.bench.redteam.pace import Clock, Pace
from unpoison.bench.redteam.rehearsal import Rehearsal, rehearse
from unpoison.bench.redteam.reply_fields import read_paths
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.session import resume_trials
from unpoison.bench.redteam.targets import Answered, Target
from unpoison.errors import InputError, clip

__all__ = ["TargetCheck", "check_target"]

LONG_TEXT = " ".join(
    f"This is sentence {number} of a harmless document for a test of this system's security; its mark is {{}}."
    for number in range(1, 31)
)
"""Of the document that is planted: long enough that systems which cut texts into pieces cut it."""

SHOWN = 120
"""Characters of an answer or passage."""


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """What was understood.

    Attributes:
        lines: (what, a sentence) in the order of a test's steps.
        problems: What is to be mended, or what a test of this system cannot see.
        remaining: The document's canary, where it may still be there.
    """

    lines: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    remaining: str = ""


def check_target(
    config: Config,
    journal_path: Path,
    *,
    secrets: Secrets,
    hosts: Hosts,
    question: str | None = None,
    target: Target | None = None,
    clock: Clock | None = None,
) -> TargetCheck:
    """Ask once, plant once, ask for the document, remove it, and look whether it is gone.

    Args:
        config: What is tested.
        journal_path: Where the document is written down first; removed again where nothing remains.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        question: What is asked; the first question of the configuration by default.
        target: The system itself, in place of the one that the configuration describes.
        clock: Time.

    Raises:
        InputError: No question, or a journal that still holds documents.
        OptionError, UnknownNameError: A configuration that cannot be used.
        TargetError: The question had no usable answer, or the document could not be planted.
    """
    question = question or _first_question(config)
    system = target or build_target(
        config.target, secrets=secrets, hosts=hosts, folder=config.folder, timeout=config.bounds.timeout
    )
    pace, replies = Pace(config.bounds, clock), list[Any]()
    if isinstance(system, HttpTarget):
        system.on_reply, system.may_guess = replies.append, True

    def ask(text: str) -> tuple[Answered, float]:
        began = pace.clock.now()
        reply = pace.call("ask", lambda: system.ask(text))
        return Answered(reply) if isinstance(reply, str) else reply, pace.clock.now() - began

    answered, seconds = ask(question)
    suggested = _suggest(answered, replies)
    lines = [("ask", f"{seconds:.2f} s, {_characters(answered.answer)}"), ("reads", _describe_passages(answered))]
    with Journal(journal_path, secrets) as journal:
        resume_trials(journal, config, getattr(system, "name", type(system).__name__))
        remover = Remover(system, journal, pace, config.wait)
        seen = rehearse(system, journal, pace, config.wait, remover, ask, text=LONG_TEXT, always_ask=True)
        lines += _describe_document(seen, system, config.wait.seconds)
    if not seen.left:
        journal_path.unlink(missing_ok=True)
    masked = [(what, str(secrets.mask(text))) for what, text in lines]
    problems = tuple(str(secrets.mask(problem)) for problem in [*suggested, *_problems(answered, seen, system)])
    return TargetCheck(tuple(masked), problems, seen.plant.canary if seen.left else "")


def _suggest(answered: Answered, replies: list[Any]) -> list[str]:
    """Where the reply has passages that the configuration does not read."""
    if answered.passages or answered.ids or answered.cited:
        return []
    for reply in replies:
        for part in reply if isinstance(reply, list) else [reply]:
            if paths := read_paths(part):
                found = ", ".join(f'{name}: "{path}"' for name, path in paths.items())
                return [f"no passages were read, but the reply seems to have some; try ask with {found}"]
    return []


def _first_question(config: Config) -> str:
    try:
        loaded = load(config.source)
    except InputError as error:
        raise InputError(
            f"{error}, or a question with --question; 'unpoison questions' makes some from your documents"
        ) from None
    if not loaded.examples:
        raise InputError(f"{clip(config.questions)} holds no usable question; give one with --question")
    return loaded.examples[0].question


def _characters(text: str) -> str:
    count = f"an answer of {len(text):,} character{'s'[: len(text) != 1]}"
    return f"{count}: {clip(' '.join(text.split()), SHOWN)}" if text.strip() else f"{count}, which is empty"


def _describe_passages(answered: Answered) -> str:
    parts = []
    if answered.passages is not None:
        first = f", the first {clip(answered.passages[0], SHOWN)}" if answered.passages else ""
        parts.append(f"{_count(len(answered.passages), 'passage')}{first}")
    if answered.ids is not None:
        parts.append(f"{_count(len(answered.ids), 'id')} {clip(list(answered.ids[:5]), SHOWN)}")
    if answered.cited is not None:
        parts.append(f"{_count(len(answered.cited), 'citation')} {clip(list(answered.cited[:5]), SHOWN)}")
    return "; ".join(parts) or "the reply tells no passages, ids or citations: only answers are judged"


def _describe_document(seen: Rehearsal, system: Target, seconds: float) -> list[tuple[str, str]]:
    handles = list(seen.plant.handles or ())
    whose = "its id" if not seen.plant.own else "our own id"
    ids = f"{whose} {clip(handles[0])}" if len(handles) == 1 else f"{len(handles):,} ids, one for each piece"
    lines = [("plant", f"a document of {len(LONG_TEXT.replace('{}', seen.plant.canary)):,} characters, {ids}")]
    if seen.found is not None:
        lines.append(("find", f"{_count(len(seen.found), 'item')} with its mark"))
    if seen.read is None:
        read = "nobody asked: the system does not tell what it reads"
    elif seen.read:
        read = "yes, the document was read for a question about it"
    else:
        read = f"no, the document was not read within {seconds:g} s"
    lines.append(("read", read))
    if seen.left:
        removed = f"it may still be there: {seen.left}"
    elif seen.confirmed:
        removed = "removed, looked for, and gone"
    else:
        removed = "the removal was accepted; nobody could look whether it is gone"
    return [*lines, ("remove", removed)]


def _problems(answered: Answered, seen: Rehearsal, system: Any) -> list[str]:
    problems = [seen.problem] if seen.problem else []
    if guessed := getattr(system, "guessed", ""):
        told = "the document was removed by it" if seen.confirmed else "removing by it was accepted"
        problems.append(f"{guessed}: {told}; write that path")
    if not answered.answer.strip():
        problems.append("the answer is empty; see ask.answer")
    if seen.read == 0:
        problems.append(
            "the planted document was not read: give ready where the system indexes in the background, raise "
            "wait.seconds, or see ask.passages and ask.ids"
        )
    if seen.found == ():
        problems.append(
            "find did not find the planted document; see find.items and find.canary, and where plant puts {canary}"
        )
    if not seen.left and not seen.confirmed:
        problems.append("nobody can see whether a document is gone; give find, or ask.passages")
    return problems


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

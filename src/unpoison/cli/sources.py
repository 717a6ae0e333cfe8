"""`unpoison sources`: the sources in your data, and their history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from unpoison.cli.common import RowCounts, say, say_unmatched, usable_rows
from unpoison.cli.display import show, text_table
from unpoison.cli.options import Command, argument, option
from unpoison.errors import OptionError
from unpoison.io.rows import Row
from unpoison.models.loading import load_generator
from unpoison.retrieval.store import is_store
from unpoison.scan.documents import UnreadDocument
from unpoison.scan.sources import is_document, read_documents
from unpoison.sources.history import History, PastRetrieval, retrieval_of
from unpoison.sources.origins import check_rule
from unpoison.sources.policy import Policy
from unpoison.sources.sources import Sources, Tally
from unpoison.utils.plain_text import count_noun, excerpt

T = TypeVar("T")

MAX_REPORTED = 20
"""Unreadable rows that are named; the others are counted."""

ONE_SHARE = 0.8
"""With a larger share of the passages, one origin does not distinguish sources."""

LIST_EXAMPLES = """\b
Examples:
  unpoison sources list retrieved.jsonl
  unpoison sources list --origin field:author wiki/pages.jsonl
  unpoison sources list --policy sources.yaml --json audit.jsonl
"""

LEARN_EXAMPLES = """\b
Examples:
  unpoison sources learn --history sources.db retrieved.jsonl audit.jsonl
  unpoison sources learn --history sources.db --method agreement -g reader retrieved.jsonl
"""


class How(StrEnum):
    """The method of learning."""

    SEEN = "seen"
    AGREEMENT = "agreement"


Files = Annotated[
    list[str],
    argument(
        "FILE",
        "Rows with passages, what 'screen' or 'ask' wrote, audit logs; for 'list' also documents and folders; - "
        "reads standard input.",
    ),
]
Rule = Annotated[
    str | None, option("--origin RULE", "domain, host, path:N or field:NAME. [default: the policy's, else domain]")
]
PolicyFile = Annotated[Path | None, option("--policy FILE", "A policy of sources, in YAML.")]

sources = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List the sources in your data, and learn their history.",
)


@sources.command("list", cls=Command, epilog=LIST_EXAMPLES)
def list_(
    files: Files,
    origin: Rule = None,
    policy: PolicyFile = None,
    top: Annotated[int, option("N", "Show the N largest.", min=1, max=1_000_000)] = 30,
    as_json: Annotated[bool, option("--json", "Write JSON Lines: all origins, the largest first.")] = False,
) -> None:
    """List the origins in your data with their passages, questions and shares."""
    known, tally = _sources(policy, origin), Tally()
    counts = RowCounts("", most=MAX_REPORTED)
    for one in _retrievals(files, counts):
        tally.add(one.question, known.standings("", one.passages))
    levels = bool(known.policy.patterns)
    if as_json:
        for row in tally.rows():
            fields = {**row._asdict(), "share": round(row.share, 4)}
            if not levels:
                del fields["levels"]
            typer.echo(json.dumps(fields, ensure_ascii=False))
    else:
        _show(tally, levels, top)
    say_unmatched(known, files)
    for line in _advice(tally, known.policy.origin):
        say(line)
    say(counts.summary("read"))
    raise typer.Exit(counts.exit_code)


@sources.command(cls=Command, epilog=LEARN_EXAMPLES)
def learn(
    files: Files,
    history: Annotated[Path, option("FILE", "The history; created if missing.")],
    method: Annotated[
        How, option("", "seen: retrieved sources. agreement: also which sources agree with others.")
    ] = How.SEEN,
    generator: Annotated[
        str | None, option("--generator -g GENERATOR", "Reads the passages for agreement, such as reader.")
    ] = None,
    origin: Rule = None,
    policy: PolicyFile = None,
) -> None:
    """Record the retrieved sources: origins, counts and days, without texts and questions."""
    if method is How.AGREEMENT and generator is None:
        raise OptionError("--method agreement reads passages and needs a generator, such as -g reader")
    for file in files:
        if Path(file).is_dir():
            raise OptionError(f"{file} is a folder of documents without questions; learn from rows with questions")
    known = _sources(policy, origin, history)
    known.history.past(())  # fails early if the file cannot be written
    counts = RowCounts("", most=MAX_REPORTED)
    read = Row.of if method is How.AGREEMENT else retrieval_of
    model = None if generator is None else load_generator(generator)
    known.learn(usable_rows(files, counts, read), method.value, model)
    say(f"{history}: {count_noun(len(known.history.rows()), 'origin')}")
    say(counts.summary("learned"))
    raise typer.Exit(counts.exit_code)


def _sources(policy: Path | None, origin: str | None, history: Path | None = None) -> Sources:

    read = Policy.of(policy)
    return Sources(read if origin is None else replace(read, origin=check_rule(origin)), History(history))


def _retrievals(files: list[str], counts: RowCounts) -> Iterator[PastRetrieval]:
    """The retrievals of every file; documents, folders and stores are retrievals without a question."""

    def count_failure(failure: UnreadDocument) -> None:
        counts.add(0, f"{failure.location}: {failure.error}")

    for file in files:
        if file == "-" or not (is_store(file) or Path(file).is_dir() or is_document(file)):
            yield from usable_rows([file], counts, partial(retrieval_of, documents=True))
            continue
        counts.source = file
        for document in read_documents(file, count_failure):
            counts.add(0)
            yield PastRetrieval(None, [document.passage])


def _show(tally: Tally, levels: bool, top: int) -> None:

    numbers, rows = ("passages", "questions", "share"), []
    for row in tally.rows()[:top]:
        cells = [excerpt(row.origin, 80) or "(no source)", *(f"{n:,}" for n in row[1:3]), f"{row.share:.1%}"]
        if levels:
            cells.append(", ".join(f"{name} {n:,}" if len(row.levels) > 1 else name for name, n in row.levels.items()))
        rows.append(cells)
    show(text_table(("origin", *numbers, *(["level"] if levels else [])), rows, right=numbers))


def _advice(tally: Tally, rule: str) -> Iterator[str]:
    """Remarks on the table."""
    rows = tally.rows()
    named = [row for row in rows if row.origin]
    yield f"{count_noun(len(named), 'origin')} in {count_noun(tally.passages, 'passage')}"
    missing = next((row.passages for row in rows if not row.origin), 0)
    if missing:
        yield (
            f"{missing:,} of {tally.passages:,} passages have no source that can be read; give them 'source' or 'url'"
            if not rule.startswith("field:")
            else f"{missing:,} of {tally.passages:,} passages lack the field of {rule}"
        )
    if named and tally.passages > 1 and named[0].share >= ONE_SHARE:
        yield "nearly all passages have one origin: distinguish its parts with --origin path:1 or --origin field:author"

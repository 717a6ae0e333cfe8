"""`unpoison trace`: which passages made the model say that."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import EncoderName, argument, option

if TYPE_CHECKING:
    from unpoison.core.passages import Passage
    from unpoison.retrieval.base import Retriever
    from unpoison.scan.trace import Trace, TraceCase

__all__ = ["EXAMPLES", "trace"]

EXAMPLES = """\b
Examples:
  unpoison trace --question 'who built the Vasa' --answer 'Gustav' documents.jsonl
  unpoison trace -g openai:gpt-4o-mini --remove --row 17 answered.jsonl
  unpoison trace -g reader --id 4f1c -k 10 audit.jsonl
  unpoison trace --question Q --answer A -e minilm index.npz

Exit status: 0 when a passage was named, 1 when none was, 2 when nothing could be done.
"""


class How(StrEnum):
    """How the guilty are looked for."""

    GROUPS = "groups"
    LEAVE_ONE_OUT = "leave-one-out"
    JUDGE = "judge"
    MATCHING = "matching"


def trace(
    file: Annotated[
        str,
        argument(
            "FILE",
            "Rows with passages (a log, or what 'ask' wrote), or one document on each line, or a saved index "
            "(.npz); - reads standard input.",
        ),
    ],
    question: Annotated[str | None, option("Q", "What was asked. [default: the row's]")] = None,
    answer: Annotated[
        str | None, option("A", "What the model said, or the wrong part of it. [default: the row's]")
    ] = None,
    row: Annotated[int | None, option("N", "The row on line N is meant.", min=1)] = None,
    id: Annotated[str | None, option("ID", "The row, or the request, of this id.")] = None,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR",
            "The one that gave the answer; see 'unpoison ask --help'. [default: none; passages are named by what "
            "they state]",
        ),
    ] = None,
    encoder: EncoderName = None,
    k: Annotated[
        int | None, option("-k N", "Passages that the model reads. [default: 10, or the row's]", min=1, max=1000)
    ] = None,
    method: Annotated[
        How | None, option("", "How they are looked for. [default: groups with a generator, else matching]")
    ] = None,
    calls: Annotated[int, option("N", "Prompts that may be sent.", min=1)] = 64,
    remove: Annotated[bool, option("--remove", "Also say what would be answered without them.")] = False,
    cache: Annotated[str, option("FILE|memory|off", "Where to remember the model's replies.")] = "memory",
    as_json: Annotated[bool, option("--json", "Write one JSON object.")] = False,
) -> None:
    """Say which passages made the model give an answer.

    The generator is asked again with halves of the passages, those that state the answer first: where one of ten is
    guilty, it is named after 5 calls at most, and one or two more confirm it. Without a generator, passages are named
    that state the answer: they are consistent with it, and not shown to be its cause.
    """
    import sys

    from unpoison.cli.common import cache_replies
    from unpoison.errors import OptionError
    from unpoison.io.file_rows import json_line
    from unpoison.scan.trace import Tracer

    case, source = _open_case(file, row=row, id=id, question=question, encoder=encoder, k=k or 10)
    query = question or (case.question if case else None)
    reply = answer or (case.answer if case else None)
    for name, value in (("question", query), ("answer", reply)):
        if value is None:
            raise OptionError(f"{file} does not say the {name}; give it with --{name}")
    tracer = Tracer(
        None if generator is None else cache_replies(generator, cache),
        method=None if method is None else method.value,
        k=k,
        calls=calls,
        remove=remove,
    )
    traced = tracer.trace(query or "", reply or "", source)
    if as_json:
        sys.stdout.buffer.write(json_line(traced.to_dict()))
    else:
        _show(traced)
    raise typer.Exit(0 if traced.culprits else 1)


def _open_case(
    file: str, *, row: int | None, id: str | None, question: str | None, encoder: str | None, k: int
) -> tuple[TraceCase | None, tuple[Passage, ...] | Retriever]:
    """The row that is meant and its passages, or no row and documents or an index."""
    from itertools import chain

    from unpoison.errors import InputError, OptionError
    from unpoison.io.files import open_source
    from unpoison.retrieval import DenseRetriever
    from unpoison.scan.trace import choose_row, is_row, retriever_of

    if file.endswith(".npz"):
        if encoder is None:
            raise OptionError("a saved index needs the encoder that it was made with; give it with --encoder")
        return None, DenseRetriever.load(file, encoder)
    with open_source(file) as source:
        records = iter(source)
        first = next(records, None)
        if first is None:
            raise InputError(f"{source.name} holds no rows; give rows with passages, or a document on each line")
        every = chain([first], records)
        if is_row(first.fields) or row is not None or id is not None:
            case = choose_row(every, number=row, id=id, question=None if row or id else question)
            return case, case.passages
        return None, retriever_of(every, k)


def _show(traced: Trace) -> None:
    from rich.table import Table
    from rich.text import Text

    from unpoison.cli.common import count_noun
    from unpoison.cli.display import show
    from unpoison.report.rendering import excerpt, plain

    table = Table(
        title=Text(f"{excerpt(traced.question, 120)}: {excerpt(traced.answer, 120)}", style="bold"), expand=True
    )
    for head, ratio in (("passage", None), ("id", 1), ("text", 3), ("why", 3)):
        table.add_column(head, ratio=ratio, overflow="fold")
    for suspect in traced.suspects:
        if suspect.guilty or suspect.stated > 0:
            passage = traced.passages[suspect.index]
            cells = (str(suspect.index), excerpt(passage.id or "", 40), excerpt(passage.text), plain(suspect.reason))
            table.add_row(*map(Text, cells), style="red" if suspect.guilty else "")
    show(table)
    some = "passage" if len(traced.culprits) == 1 else "passages"
    named = f"{some} {', '.join(map(str, traced.culprits))}" if traced.culprits else "no passage"
    relation = "caused by" if traced.caused else "consistent with"
    doubt = "" if traced.caused or not traced.culprits else "; none was withheld, so none is shown to be the cause"
    show(f"{relation} {named}; method {traced.method}, {count_noun(traced.asked, 'call')}{doubt}")
    for note in traced.notes:
        show(note)
    if traced.without is not None:
        show(f"without: {excerpt(traced.without, 2000)}")

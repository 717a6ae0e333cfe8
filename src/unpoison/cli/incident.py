"""`unpoison incident`: find the passages behind a wrong answer.

Examples:
  unpoison incident --passages answered.jsonl --row 17
  unpoison incident --passages documents.jsonl --question 'who built the Vasa' --answer 'Gustav' -g reader

Exit status: 0 when documents were named or proven, 1 when not, 2 when nothing could be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Annotated, Any, NamedTuple

import typer

from unpoison.cli.common import say
from unpoison.cli.display import show, text_table
from unpoison.cli.options import option
from unpoison.core.passages import Passage, as_passages
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS
from unpoison.retrieval.memory import BM25Retriever
from unpoison.scan.incident import DocumentVerdict, Incident, trace
from unpoison.utils.plain_text import count_noun, excerpt


def incident(
    passages: Annotated[
        str | None,
        option(
            "FILE", "Rows with question, answer and passages (a log, or what 'ask' wrote), or a document on each line."
        ),
    ] = None,
    row: Annotated[str | None, option("N|ID", "The row's line, its id, or the beginning of its request's id.")] = None,
    question: Annotated[str | None, option("Q", "The question. [default: the row's]")] = None,
    answer: Annotated[str | None, option("A", "The answer, or the wrong part of it. [default: the row's]")] = None,
    right: Annotated[
        list[str] | None, option("A", "A right answer; may be repeated. Documents that state it are never named.")
    ] = None,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR",
            "The model is asked without some of the passages; see 'unpoison ask --help'. [default: none; passages are "
            "named by their statements]",
        ),
    ] = None,
    k: Annotated[
        int | None, option("-k N", "Passages that the model reads. [default: the row's, or 10]", min=1, max=1000)
    ] = None,
    budget: Annotated[int, option("N", "Maximum number of questions.", min=1)] = 100,
    as_json: Annotated[bool, option("--json", "Write JSON to standard output.")] = False,
) -> None:
    """Find the documents behind a wrong answer among the passages that were read.

    They are ranked by their statements; with a generator, it is asked again without some of them, fewest first.
    'unpoison quarantine' then takes the named ones out of a store.
    """
    if passages is None:
        raise OptionError("give --passages, the passages that were read")
    case = _read_case(passages, row, question, k or 10)
    asked, said = question or case.question, answer or case.answer
    for name, value in (("question", asked), ("answer", said)):
        if value is None:
            raise OptionError(f"give --{name}; {passages} does not contain it")
    if not case.passages:
        raise OptionError(f"{passages} shows no passages; give rows with passages, or one document per line")
    known = tuple(right or ()) or case.right
    result = trace(asked or "", said or "", case.passages, generator, right=known, k=k, budget=budget)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        _show(result)
    raise typer.Exit(0 if result.verdict in (DocumentVerdict.NAMED, DocumentVerdict.PROVEN) else 1)


ANSWERS = ("answer", "reply", "response")
RIGHT = ("correct_answers", "right", "correct", "expected")

DEEPER = 5
"""Documents examined per document read: others are retrieved once the guilty ones are removed."""


class Case(NamedTuple):
    """A wrong answer in a file.

    Attributes:
        question, answer: None if missing.
        right: Right answers, if given.
        passages: The passages in the order in which the model read them; with a screening, the kept ones, best first.
    """

    question: str | None
    answer: str | None
    right: tuple[str, ...]
    passages: tuple[Passage, ...]


def _read_case(file: str, row: str | None = None, question: str | None = None, k: int = 10) -> Case:
    """Read the selected row or, from a file with one document per line, the documents that may have been read.

    Args:
        file: A log, rows with passages, a table of complaints, or documents.
        row: The line number, the id, or the beginning of the request's id; None if there is only one row.
        question: The question, which selects rows and documents.
        k: Number of documents in a prompt.

    Raises:
        InputError: No such row, or several; an unusable row or document.
    """
    with open_source(file) as source:
        records = iter(source)
        first = next(records, None)
        if first is None:
            raise InputError(f"{file} has no rows; pass rows with passages, or one document per line")
        every = chain([first], records)
        if row is not None or "text" not in first.fields or "passages" in first.fields:
            return _case(_find(every, row, question).fields)
        passages = as_passages([_usable(record) for record in every])
        if question is not None and len(passages) > k:
            named = (p if p.id is not None else Passage(p.text, id=str(i)) for i, p in enumerate(passages))
            passages = BM25Retriever(named).retrieve(question, DEEPER * k)
        return Case(None, None, (), passages)


def _usable(record: FileRow) -> Mapping[str, Any]:
    if not isinstance(record.fields.get("text"), str):  # nor has a broken row one
        raise InputError(f"line {record.number}: {record.error or 'a document needs a text'}")
    return record.fields


def _find(records: Iterable[FileRow], row: str | None, question: str | None) -> FileRow:
    number = int(row) if row is not None and row.isdecimal() and row.isascii() else None
    first: FileRow | None = None
    seen = 0
    for seen, record in enumerate(records, 1):  # noqa: B007
        fits = record.number == number or (row is not None and record.error is None and _is(record.fields, row))
        if row is None:
            fits = question is None or _first(record.fields, QUERY_FIELDS) == question
        if not fits:
            continue
        if record.error is not None:
            raise InputError(f"line {record.number}: {record.error}")
        if first is not None:
            raise InputError(f"lines {first.number} and {record.number} both match; select one: --row {first.number}")
        first = record
    if first is None:
        asked = f"is {clip(row)}" if row else f"asks {clip(question)}"
        raise InputError(f"no row of {seen:,} {asked}; pass its line number or id as --row")
    return first


def _is(fields: Mapping[str, Any], name: str) -> bool:
    request = fields.get("request")
    own = str(request.get("id", "")) if isinstance(request, Mapping) else ""
    return str(fields.get("id", "")) == name or own == name or (len(name) >= 4 and own.startswith(name))


def _case(fields: Mapping[str, Any]) -> Case:
    fields = {str(name).strip().casefold(): value for name, value in fields.items()}
    right = next((fields[name] for name in RIGHT if fields.get(name)), ())
    texts = tuple(str(one).strip() for one in (right if isinstance(right, (list, tuple)) else [right]))
    question, answer = _first(fields, QUERY_FIELDS), _first(fields, ANSWERS)
    return Case(question, answer, tuple(filter(None, texts)), _passages(fields))


def _passages(fields: Mapping[str, Any]) -> tuple[Passage, ...]:
    given = fields.get("passages") or ()
    if "audit" in fields:
        kept = [p for p in given if isinstance(p, Mapping) and p.get("kept") is not False]
        if not all(isinstance(p.get("text"), str) for p in kept):
            raise InputError('the log has no texts; write it with AuditLog(path, texts="keep"), or pass the passages')
        return as_passages(kept)
    passages, screening = as_passages(given), fields.get("screening")
    positions = screening.get("kept") if isinstance(screening, Mapping) else None
    if not isinstance(positions, list):
        return passages
    return tuple(passages[i] for i in positions if isinstance(i, int) and 0 <= i < len(passages))


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        value = value.get("text") if isinstance(value, Mapping) else value
        value = " | ".join(map(str, value)) if isinstance(value, list) else value  # a cell of a table
        if isinstance(value, (str, int, float)) and str(value).strip():
            return str(value).strip()
    return None


def _show(result: Incident) -> None:
    """Print the result; untrusted text is shown as plain text."""
    show(excerpt(result.question, 200), result.verdict.sentence)
    shown = [one for one in result.suspects if one.stated > 0 or one.id in result.guilty][:20]
    heading, last = "states it", [f"{one.stated:.2f}" for one in shown]
    if result.proofs:
        shown = [proof.document for proof in result.proofs]
        heading, last = "wrong by itself", ["yes" if proof.alone else "with the others" for proof in result.proofs]
    marks = ("!" if one.id in result.guilty else "" for one in shown)
    rows = [(mark, excerpt(one.id, 60), excerpt(one.text, 200), how) for mark, one, how in zip(marks, shown, last)]
    show(text_table(("", "document", "text", heading), rows, expand=True))
    if result.after is not None:
        what = "answer without them" if result.guilty else "its answer"
        show(f"{what}: {excerpt(result.after, 400)}")
    show(*(excerpt(note, 800) for note in result.notes))
    if result.asked:
        say(f"asked {count_noun(result.asked, 'question')}")

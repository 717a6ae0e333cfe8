"""`unpoison incident`: find the documents behind a wrong answer, and remove them from the index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.common import say
from unpoison.cli.display import show, text_table
from unpoison.cli.options import option
from unpoison.core.passages import Passage
from unpoison.errors import OptionError
from unpoison.report.rendering import excerpt
from unpoison.scan.incident import SENTENCES, DocumentVerdict, Incident, trace
from unpoison.scan.incident_rows import Case, read_case
from unpoison.utils.plain_text import count_noun
from unpoison_lab.incident import investigate, open_target
from unpoison_lab.redteam.targets import TargetReply

__all__ = ["EXAMPLES", "incident"]

EXAMPLES = """\b
Examples:
  unpoison incident --passages answered.jsonl --row 17
  unpoison incident --passages documents.jsonl --question 'who built the Vasa' --answer 'Gustav' -g reader
  unpoison incident --target redteam.yaml --question 'who built the Vasa' --answer Gustav
  unpoison incident --target redteam.yaml --store docs.jsonl --quarantine held.jsonl --question Q --answer A --right B

The journal records withheld documents; unpoison quarantine STORE QUARANTINE --journal FILE --restore returns them.
Exit status: 0 when documents were named, proven, or taken out of --store, 1 when not, 2 when nothing could be done.
"""


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
        list[str] | None, option("A", "A right answer; may be repeated. Documents that state it stay.")
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
    target: Annotated[
        Path | None, option("CONFIG", "The running system: its 'target' in YAML, as for unpoison redteam.")
    ] = None,
    store: Annotated[str | None, option("STORE", "The store of the system, as for unpoison scan.")] = None,
    quarantine: Annotated[
        str | None, option("STORE", "Where documents are withheld: a store of the same kind; made if it is not there.")
    ] = None,
    journal: Annotated[Path, option("FILE", "Records every move, with the whole document.")] = Path(
        "incident-journal.jsonl"
    ),
    prove_only: Annotated[bool, option("--prove-only", "Leave the store unchanged.")] = False,
    budget: Annotated[int, option("N", "Maximum number of questions.", min=1)] = 100,
    repeats: Annotated[int, option("N", "Questions to the system for each count.", min=1, max=100)] = 4,
    may_test: Annotated[
        list[str] | None,
        option("--i-may-test HOST", "Allow requests to this host besides this machine; may be repeated."),
    ] = None,
    as_json: Annotated[bool, option("--json", "Write JSON to standard output.")] = False,
) -> None:
    """Find the documents behind a wrong answer: among the passages that were read, or in the store of a running system.

    With --passages, passages are ranked by their statements; with a generator too, it is asked again without some.
    With --target alone the system is asked once, and its passages are ranked. With --store and --quarantine as well,
    it is asked again while documents of the store are withheld, fewest first; the responsible ones stay in quarantine.
    Documents that state a --right answer are never moved.
    """
    if passages is None and target is None:
        raise OptionError("give --passages for the passages that were read, or --target for a running system")
    if target is not None and (store is None) != (quarantine is None):
        raise OptionError(
            "--store and --quarantine go together: the store of the system, and the store for withheld documents"
        )
    case = Case(None, None, (), ())
    if passages is not None:
        case = read_case(passages, row, question, k or 10)
    elif store is None and target is not None and question is not None:
        case = _ask_once(target, question, may_test or [])
    asked, said = question or case.question, answer or case.answer
    for name, value in (("question", asked), ("answer", said)):
        if value is None:
            raise OptionError(f"give --{name}; {passages or 'the command line'} does not contain it")
    known = tuple(right or ()) or case.right
    if target is None or store is None or quarantine is None:
        if not case.passages:
            raise OptionError(f"{passages or target} shows no passages; give --store and --quarantine to find them")
        result = trace(asked or "", said or "", case.passages, generator, right=known, k=k, budget=budget)
    else:
        system = open_target(target, may_test or ())
        result = investigate(
            asked or "", said or "", system.target, store, quarantine, journal, right=known, repair=not prove_only,
            budget=budget, repeats=repeats, bounds=system.bounds, wait=system.wait,
        )  # fmt: skip
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        _show(result)
    if target is not None and store is None and result.guilty:
        say("nothing was moved: remove these documents in your system, or give --store and --quarantine")

    good = (DocumentVerdict.REPAIRED, DocumentVerdict.NAMED, DocumentVerdict.PROVEN)
    raise typer.Exit(0 if result.verdict in good else 1)


def _ask_once(target: Path, question: str, may_test: list[str]) -> Case:
    """The system's answer now, and the passages that it shows with it."""
    said = open_target(target, may_test).target.ask(question)
    reply = TargetReply(said) if isinstance(said, str) else said
    texts, names = reply.passages or (), reply.ids or ()
    ids = names if len(names) == len(texts) else [str(position) for position in range(len(texts))]
    return Case(question, reply.answer, (), tuple(Passage(text, id=name) for text, name in zip(texts, ids)))


def _show(result: Incident) -> None:
    """Print the result; untrusted text is shown as plain text."""
    show(excerpt(result.question, 200), SENTENCES[result.verdict])
    if result.proofs:
        rows = [
            (
                "!" if proof.document.id in result.guilty else "",
                excerpt(proof.document.id, 60),
                excerpt(proof.document.text, 160),
                proof.with_it.words,
                proof.without.words,
            )
            for proof in result.proofs
        ]
        show(text_table(("", "document", "text", "wrong with it", "wrong without"), rows, expand=True))
    else:
        shown = [one for one in result.suspects if one.stated > 0 or one.id in result.guilty][:20]
        named = [
            ("!" if one.id in result.guilty else "", excerpt(one.id, 60), excerpt(one.text, 200), f"{one.stated:.2f}")
            for one in shown
        ]
        show(text_table(("", "document", "text", "states it"), named, expand=True))
    if result.after is not None:
        show(f"answer without them: {excerpt(result.after, 400)}")
    if result.quarantined:
        show(f"in quarantine: {', '.join(excerpt(name, 60) for name in result.quarantined)}")
    show(*(excerpt(note, 800) for note in result.notes))
    if result.asked:
        say(f"asked {count_noun(result.asked, 'question')}")

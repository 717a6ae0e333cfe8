"""`unpoison incident`: from one wrong answer to the documents behind it, and an index without them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import option

if TYPE_CHECKING:
    from unpoison.bench.incident import Case, Incident

__all__ = ["EXAMPLES", "incident"]

EXAMPLES = """\b
Examples:
  unpoison incident --question Q --answer A --target redteam.yaml --store docs.jsonl --quarantine held.jsonl
  unpoison incident --audit audit.jsonl --row 4f1c --target redteam.yaml --store S --quarantine H --html page.html
  unpoison incident --complaints complaints.csv --row 3 --target redteam.yaml --store S --quarantine H
  unpoison incident --undo incident.journal

After Ctrl-C, a crash or a power cut the same command goes on where it ended; --undo puts everything back.
Exit status: 0 when the documents behind the answer were proven, and repaired unless --prove-only, 1 when not, 2 when
nothing could be done.
"""


def incident(
    target: Annotated[
        Path | None, option("CONFIG", "How the system is asked: its 'target' in YAML, as for unpoison redteam.")
    ] = None,
    store: Annotated[str | None, option("STORE", "What the system reads, as for unpoison scan.")] = None,
    quarantine: Annotated[
        str | None, option("STORE", "Where documents are withheld: a store of the same kind; made if it is not there.")
    ] = None,
    question: Annotated[str | None, option("Q", "What was asked.")] = None,
    answer: Annotated[str | None, option("A", "What was answered, or the wrong part of it.")] = None,
    right: Annotated[list[str] | None, option("A", "A right answer; once for each.")] = None,
    audit: Annotated[str | None, option("LOG", "The answer is a row of this audit log, which kept texts.")] = None,
    complaints: Annotated[
        Path | None,
        option("CSV", "The answer is a row of this table: question, answer, perhaps right, time, user."),
    ] = None,
    row: Annotated[str | None, option("N|ID", "The row's line, its id, or the beginning of its request's id.")] = None,
    journal: Annotated[Path, option("FILE", "Every step, before it is done.")] = Path("incident.journal"),
    budget: Annotated[int, option("N", "Questions to the system at most.", min=1)] = 100,
    repeats: Annotated[int, option("N", "Questions for each count of the report.", min=1, max=100)] = 4,
    accomplices: Annotated[bool, option("--accomplices", "Quarantine accomplices of the guilty too.")] = False,
    unstated: Annotated[
        bool, option("--unstated", "Quarantine also what the answer depends on, but does not state it.")
    ] = False,
    prove_only: Annotated[bool, option("--prove-only", "Leave the store as it was before.")] = False,
    regressions: Annotated[
        Path | None, option("FILE", "Questions, with correct_answers or without, to ask before and after.")
    ] = None,
    log: Annotated[
        list[str] | None, option("LOG", "Audit logs: whom did these documents reach? [default: that of --audit]")
    ] = None,
    may_test: Annotated[
        list[str] | None, option("--i-may-test HOST", "A host other than this machine that you may test.")
    ] = None,
    html: Annotated[Path | None, option("FILE", "Write one page; works offline.")] = None,
    as_json: Annotated[bool, option("--json", "Write JSON to standard output.")] = False,
    undo: Annotated[Path | None, option("JOURNAL", "Put back everything that this incident has withheld.")] = None,
) -> None:
    """Prove which documents made a running system give a wrong answer, and take them out.

    The system is asked again; documents of its store are withheld by quarantine, fewest first, and put back, until it
    is plain without which the answer goes and with which it comes back. The guilty stay in quarantine.
    """
    from unpoison.bench.incident import Settings, Verdict, investigate
    from unpoison.bench.incident.page import incident_page
    from unpoison.bench.incident.target import open_target, read_regressions
    from unpoison.cli.common import progress
    from unpoison.cli.gates import check_outputs
    from unpoison.errors import OptionError

    if undo is not None:
        _undo(undo, store, quarantine)
        return
    for name, value in (("target", target), ("store", store), ("quarantine", quarantine)):
        if value is None:
            raise OptionError(f"an incident needs --{name}; see 'unpoison incident --help'")
    case = _case(audit, complaints, row, question=question, answer=answer, right=tuple(right or ()))
    system = open_target(target or Path(), may_test or ())
    settings = Settings(
        budget=budget,
        repeats=repeats,
        repair=not prove_only,
        accomplices=accomplices,
        unstated=unstated,
        regressions=[] if regressions is None else read_regressions(regressions),
        logs=log or ([audit] if audit else []),
        bounds=system.bounds,
        wait=system.wait,
    )
    check_outputs((), html)
    with progress() as advance:
        result = investigate(
            case, system.target, store or "", quarantine or "", journal, settings, mask=system.mask, progress=advance
        )
    if html is not None:
        html.write_text(incident_page(result), encoding="utf-8")
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        _show(result)
    good = (Verdict.PROVEN,) if prove_only else (Verdict.REPAIRED,)
    raise typer.Exit(0 if result.verdict in good else 1)


def _case(audit: str | None, complaints: Path | None, row: str | None, **given: Any) -> Case:
    from unpoison.bench.incident import Case, case_of_log
    from unpoison.errors import OptionError

    if audit and complaints:
        raise OptionError("--audit and --complaints exclude each other; give the one that has the answer")
    if source := audit or complaints:
        return case_of_log(str(source), row, **given)
    for name in ("question", "answer"):
        if not given[name]:
            raise OptionError(f"what was wrong? give --{name}, or a row of --audit or --complaints")
    return Case(**given)


def _undo(journal: Path, store: str | None, quarantine: str | None) -> None:
    from unpoison.bench.incident import undo
    from unpoison.cli.common import count_noun, say

    names = undo(journal, store=store, quarantine=quarantine)
    say(f"put back {count_noun(len(names), 'document')}")


def _show(result: Incident) -> None:
    """The result on a screen; what a system or a store says is shown as text."""
    from rich.table import Table
    from rich.text import Text

    from unpoison.cli.common import count_noun, say
    from unpoison.cli.display import show
    from unpoison.report.rendering import excerpt

    show(excerpt(result.case.question, 200), result.summary)
    show(f"wrong with nothing withheld: {result.stability.words}")
    if result.proofs:
        table = Table(expand=True)
        for head, ratio in (("guilty", 2), ("text", 4), ("wrong with it", 2), ("wrong without", 2)):
            table.add_column(head, ratio=ratio, overflow="fold")
        for proof in result.proofs:
            for document in proof.documents:
                counts = (proof.with_them.words, proof.without_them.words)
                table.add_row(*map(Text, (excerpt(document.id, 60), excerpt(document.text, 160), *counts)))
        show(table)
    for answer in result.after:
        show(f"answer now: {excerpt(answer, 400)}")
    for one in result.accomplices:
        show(f"accomplice {excerpt(one.id, 60)}: {excerpt(one.reason, 200)}")
    if result.reach is not None:
        show(
            f"{result.reach.answers:,} of {count_noun(result.reach.rows, 'logged answer')} came from them, since "
            f"{result.reach.first_time}"
        )
    if result.quarantined:
        show(f"in quarantine: {', '.join(excerpt(name, 60) for name in result.quarantined)}")
    for sentence in (*result.remaining, *result.notes):
        show(excerpt(sentence, 800))
    say(f"asked {count_noun(result.asked, 'question')}; put back with: unpoison incident --undo {result.journal}")

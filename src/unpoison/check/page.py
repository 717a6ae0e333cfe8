"""A check as one page, and the same sections for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from unpoison.algorithms.intervals import Estimate
from unpoison.check.check import ATTACKS, OWNERS, CheckResult, Outcome
from unpoison.models.loading import best_reader
from unpoison.report.document import Section, Table, document
from unpoison.scan.contradictions import DocumentStatement
from unpoison.utils.extras import install_command
from unpoison.utils.plain_text import count_noun

__all__ = ["check_page", "code_lines", "headline", "sections"]

MAX_ORIGINS, MAX_CONTRADICTIONS = 20, 20
MAX_LOSS = 0.05
"""Share of clean passages that Guard usually loses at most (docs/results.md)."""


def code_lines(policy: str, *, reader: bool) -> str:
    """The code that applies the recommendation, with the policy at a path."""
    generator = 'generator="reader", ' if reader else ""
    return (
        "from unpoison import Guard\n\n"
        f"guard = Guard({generator}sources={json.dumps(policy)})\n"
        'screening = guard.screen(question, passages)  # each {"text": ..., "source": ...}\n'
        "texts = screening.texts  # what your model reads; for a framework see docs/integrations.md"
    )


def headline(result: CheckResult) -> list[str]:
    """The worst case with the recommendation, for all attackers and for those without access to the user's sources.

    In answers of the reader where there is one, else in texts that reach the model.
    """
    read = result.reader and any(one.answered_guard is not None for one in result.outcomes)
    worst = _worst(result.outcomes, answered=read)
    outside = _worst([one for one in result.outcomes if one.owner != "own"], answered=read)
    if worst is None:
        return ["No attack was measured."]
    lines = [f"Worst case behind the recommendation: {_sentence(worst, answered=read)}."]
    if outside is not None and outside != worst:
        lines.append(f"Without access to your own sources: {_sentence(outside, answered=read)}.")
    return lines


def check_page(result: CheckResult, code: str) -> str:
    """A self-contained page; the contents of documents are untrusted and escaped."""
    title = "Check of your documents" if result.live is None else "Check of your system"
    lead = [checked(result), *headline(result), "Counts have 95 % intervals."]
    return document(title, sections(result, code), lead=lead)


def checked(result: CheckResult) -> str:
    """One sentence on the checked documents."""
    every = result.documents + result.unread
    unread = f"; {result.unread:,} of {count_noun(every, 'document')} were not read" if result.unread else ""
    if result.live is None:
        return f"Checked {result.source}: {count_noun(result.documents, 'document')}{unread}."
    count = result.live.planted
    planted = "nothing" if count is None else f"{count:,} documents, all removed again"
    asked = result.live.asked
    return f"Checked {result.source}: {result.documents:,} passages, shown for {asked} questions; planted: {planted}."


def sections(result: CheckResult, code: str) -> list[Section]:
    """The sections of a check, contradictions first."""
    findings = [(name, f"{value:.2f}", "; ".join(why) or "-") for name, value, why in result.findings]
    shown = [row for row in findings if row[0] in result.flagged] or findings[:3]
    origins = [(name or "(no source)", f"{n:,}", f"{100 * share:.1f}") for name, n, share in result.origins]
    live = result.live is not None and result.live.planted is not None
    before = "your system" if live else "without a defense"
    tables = [_table(result, "the model reads the lie", "plain", "guard")] * bool(result.outcomes)
    if tables and (live or result.reader):
        who = "your system" if live else "the small reader"
        tables.append(_table(result, f"{who} answers with the lie", "answered_plain", "answered_guard"))
    found = f"Flagged as probably planted: {len(result.flagged):,} of {count_noun(result.documents, 'document')}."
    measured = f"On {count_noun(result.questions, 'question')} made from them; {before} → behind the recommendation."
    suspects = Table("", ("document", "suspicion", "reasons"), tuple(shown))
    shares = Table("", ("source", "documents", "share %"), tuple(origins[:MAX_ORIGINS]))
    return [
        *_contradictions(result),
        Section("documents", "Suspicious documents", found, tables=[suspects]),
        Section("sources", "Sources", f"{count_noun(len(origins), 'source')}.", tables=[shares]),
        Section("attacks", "Attacks", measured if result.questions else "None was tried.", tables=tables),
        Section("use", "Recommendation", part="files.html", data=[("The policy", result.policy), ("The code", code)]),
        Section("open", "Remaining risk", notes=tuple(_open_points(result))),
    ]


def _contradictions(result: CheckResult) -> Iterator[Section]:
    """Pairs of sentences that contradict each other, each with its place; no section without one."""
    if not result.contradictions:
        return

    def cell(one: DocumentStatement) -> str:
        return f"{one.document}{f', {one.place}' if one.place else ''}: {one.text}"

    rows = tuple((cell(one.first), cell(one.second)) for one in result.contradictions[:MAX_CONTRADICTIONS])
    found = f"{count_noun(len(result.contradictions), 'pair')} of sentences differ in a value; correct one of each."
    yield Section("contradictions", "Contradictions", found, tables=[Table("", ("one says", "another says"), rows)])


def _table(result: CheckResult, title: str, plain: str, guard: str) -> Table:
    """A row for each attack, a column for each owner: without and behind the recommendation."""
    cells = {(one.attack, one.owner): one for one in result.outcomes}

    def cell(attack: str, owner: str) -> str:
        one = cells.get((attack, owner))
        shares = [share for name in (plain, guard) if (share := getattr(one, name, None)) is not None and share.defined]
        return f"{' → '.join(str(share.hits) for share in shares)} of {shares[0].count}" if shares else "-"

    rows = tuple((words, *(cell(attack, owner) for owner in OWNERS)) for attack, words in ATTACKS.items())
    return Table(title, ("what is planted", *OWNERS.values()), rows)


def _behind(one: Outcome, *, answered: bool) -> Estimate:
    """The remaining risk with the recommendation: wrong answers, or lies that are read."""
    return one.answered_guard if answered and one.answered_guard is not None else one.guard


def _worst(outcomes: Sequence[Outcome], *, answered: bool) -> Outcome | None:
    defined = [one for one in outcomes if _behind(one, answered=answered).defined]
    return max(defined, key=lambda one: _behind(one, answered=answered).value, default=None)


def _sentence(worst: Outcome, *, answered: bool) -> str:
    words = f"{ATTACKS[worst.attack]}, {OWNERS[worst.owner]}"
    share = _of(_behind(worst, answered=answered), "questions")
    reached = f"reaches the model for {worst.plain.hits:,} of {worst.plain.count:,} without a defense"
    if answered:
        return f"{words}, is the reader's answer to {share}; the text {reached}"
    return f"{words}, still reaches the model for {share}; it {reached}"


def _of(share: Estimate, what: str) -> str:
    """Such as "3 of 25 questions (12 %, 95 % interval 4 to 30)"."""
    percent = f"{100 * share.value:.0f} %, 95 % interval {100 * share.low:.0f} to {100 * share.high:.0f}"
    return f"{share.hits:,} of {share.count:,} {what}" + (f" ({percent})" if share.defined else "")


def _open_points(result: CheckResult) -> Iterator[str]:
    lost = result.clean_lost
    if lost.defined and lost.low > MAX_LOSS:
        yield (
            f"The recommendation drops your own texts: {_of(lost, 'passages')} without an attack. Do not enforce it "
            "as it is: fit it to your texts with unpoison screen --calibrate, or let it only report."
        )
    elif lost.defined:
        yield f"Without an attack, {_of(lost, 'passages')} are dropped."
    if result.flagged:
        yield f"{count_noun(len(result.flagged), 'suspicious document')} left in place; see unpoison scan."
    if not result.questions:
        yield "No question could be made, so nothing was attacked: no sentence or list states a number."
    nameless = sum(count for name, count, _ in result.origins if not name)
    if nameless:
        yield f"{nameless:,} of {result.documents:,} documents name no source and have no weight; give them one."
    elif len(result.origins) == 1 and result.documents > 1:
        yield "All documents have one origin and thus one vote; distinguish its parts by folders or origin: path:N."
    if not result.reader:
        how = "leave out --no-reader" if best_reader() != "extractive" else install_command("reader")
        yield f"The reader is not used, so no answers are measured here, and Guard cannot weigh claims by source: {how}"
    if result.live is None:
        yield "Your own retriever and model were not asked: BM25 retrieved. unpoison check URL asks a running system."
        return
    yield from result.live.problems
    yield f"Of its documents only these {result.documents:,} passages are known. unpoison check DOCS reads all of them."
    if result.live.planted is None:
        how = "" if result.live.plants else ", with a target file that has plant and remove"
        yield f"Nothing was planted in your system: the attacks happened in a copy, with BM25. Use --plant{how}."

"""A check as a page for who decides: the same first page as a measurement has, and everything behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate
from unpoison.bench.check.planting import ATTACKS, OWNERS
from unpoison.bench.check.results import CheckResult, Outcome, SystemFacts
from unpoison.bench.report.front_page import ACTIONS, CASES, Brief, Case, KeyFigure, risks_of
from unpoison.bench.report.tables import with_interval
from unpoison.report.document import Section, Table, document

__all__ = [
    "answer_table",
    "attack_table",
    "check_page",
    "count_table",
    "findings_table",
    "origins_table",
    "planted_words",
]

MAX_ORIGINS = 50
NAMES = {"injection": "prompt-injection"}
"""As the catalogues' risks know them."""


def check_page(result: CheckResult, code: str) -> str:
    """One page that needs nothing else; what documents hold is hostile and escaped.

    Args:
        result: What was measured.
        code: The lines for the user's framework.
    """
    files = [("The policy", result.policy), ("The code", code)]
    sections = [
        Section("attacks", "Every attack", _how(result), tables=[attack_table(result)] if result.outcomes else ()),
        Section(
            "documents",
            "What lies there already",
            tables=[_with_quotes(findings_table(result))] if result.findings else (),
        ),
        Section("sources", "Who is in it", tables=[origins_table(result, MAX_ORIGINS)]),
        Section("use", "What to put in", part="files.html", data=files),
        Section("open", "What remains open", notes=result.open),
    ]
    brief = _brief(result)
    return document(brief.title, sections, lead=["Shares are in percent with 95 % intervals."], brief=brief)


def _brief(result: CheckResult) -> Brief:
    behind = {NAMES.get(outcome.attack, outcome.attack): outcome.guard for outcome in _outside(result)}
    return Brief(
        title="Check of your documents" if result.system is None else "Check of your system",
        facts=tuple(_facts(result)),
        verdict=result.headline,
        setting=result.outside,
        warning="" if result.complete else "This check is incomplete: it was interrupted.",
        figures=tuple(_figures(result)),
        cases=tuple(_cases(result)),
        actions=(
            "Put the recommendation between the search and the model: policy and code stand below.",
            *result.open,
        )[:ACTIONS],
        risks=risks_of(behind, "behind guard"),
    )


def _how(result: CheckResult) -> str:
    if result.system is not None and result.system.planted is not None:
        return (
            f"{result.questions} questions were made from what the system showed. For each, false texts were planted "
            "in the system, asked for, and removed again; what it retrieved was then screened by the recommendation."
        )
    read = " and answered by the small reader" if result.reader else ""
    return (
        f"{result.questions} questions were made from the documents. For each, false texts were put into a copy of the "
        f"collection, retrieved with BM25{read}. Nothing was written into your store or system."
    )


def _outside(result: CheckResult) -> Iterator[Outcome]:
    """For each attack its best result for those who cannot write into the user's own sources."""
    for attack in ATTACKS:
        tried = [one for one in result.outcomes if one.attack == attack and one.owner != "own" and one.guard.defined]
        yield from sorted(tried, key=lambda outcome: -outcome.guard.value)[:1]


def _facts(result: CheckResult) -> Iterator[tuple[str, str]]:
    unread = f", {result.unread:,} could not be read" if result.unread else ""
    yield "Checked", f"{result.source}: {result.documents:,} documents{unread}"
    if result.flagged is not None:
        yield "Already there", f"{result.flagged:,} documents look planted"
    yield "Sources", f"{len(result.origins):,}"
    yield "Asked", f"{result.questions} questions made from the documents"
    if result.system is not None:
        yield "Planted", planted_words(result.system)
    yield "When", datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    yield "Version", f"unpoison {__version__}"


def planted_words(system: SystemFacts) -> str:
    """Such as "90 documents, all removed again"."""
    if system.planted is None:
        return "nothing"
    left = len(system.remaining)
    return f"{system.planted:,} documents, " + (f"{left:,} may still be there" if left else "all removed again")


def _figures(result: CheckResult) -> Iterator[KeyFigure]:
    worst = result.worst
    if worst is None:
        return
    yield KeyFigure("The lie is read today", worst.plain, "questions, in the worst case")
    if result.worst_outside is not None:
        yield KeyFigure("Behind it, from outside", result.worst_outside.guard, "questions, in their worst case")
    yield KeyFigure("Behind it, from inside too", worst.guard, "questions, in the worst case")


def _cases(result: CheckResult) -> Iterator[Case]:
    worst = result.worst
    through = [] if worst is None else [case for case in worst.cases if case["guard"]]
    for case in through[:CASES]:
        yield Case(
            question=case["question"],
            outcome="the lie reaches the model",
            stopped=False,
            right=case["right"],
            wanted=case["wanted"],
            reply=None,
            planted=case["planted"],
        )


def attack_table(result: CheckResult) -> Table:
    """Every attack by owner: how often the lie is read, how often it is answered, what it costs."""
    columns = ["what is planted", "read without", "read behind it", "clean lost"]
    hints = ["", "questions for which the model reads the lie, without a defense", "the same behind the recommendation"]
    hints.append("clean passages that the recommendation drops beside it")
    if result.live:
        columns.append("answered")
        hints.append("questions that your system answers with the lie, as it is")
    elif result.reader:
        columns += ["answered without", "answered behind it"]
        hints += ["questions that the reader answers with the lie", "the same behind the recommendation"]
    rows = []
    for outcome in result.outcomes:
        shares = [outcome.plain, outcome.guard, outcome.clean_lost]
        shares += [share for share in (outcome.wrong_plain, outcome.wrong_guard) if share is not None]
        rows.append((outcome.words, *map(_percent, shares), *("-" for _ in range(len(columns) - 1 - len(shares)))))
    if result.clean_lost is not None:
        empty = ("-" for _ in columns[4:])
        rows.append(("nothing", "-", "-", _percent(result.clean_lost), *empty))
    worst = result.worst
    flagged = frozenset(i for i, outcome in enumerate(result.outcomes) if outcome is worst)
    return Table("Percent", tuple(columns), tuple(rows), tuple(hints), flagged=flagged)


def count_table(result: CheckResult, plain: str, guard: str, title: str) -> Table:
    """The same on five lines: a column for each owner, without and behind the recommendation.

    Args:
        result: What was measured.
        plain: What is counted without a defense, an attribute of `Outcome`.
        guard: The same behind the recommendation.
        title: What is counted.
    """
    cells = {(one.attack, one.owner): (getattr(one, plain), getattr(one, guard)) for one in result.outcomes}
    rows = [
        (words, *(_arrow(*cells.get((attack, owner), (None, None))) for owner in OWNERS))
        for attack, (words, _) in ATTACKS.items()
    ]
    return Table(title, ("what is planted", *(words for _, words in OWNERS.values())), tuple(rows))


def answer_table(result: CheckResult, title: str) -> Table:
    """What a running system answers with the lie: a column for each number of texts."""
    cells = {(one.attack, one.owner): one.wrong_plain for one in result.outcomes}
    owners = {"one": "one text", "several": "three texts"}
    rows = [
        (
            words,
            *(
                "-" if (share := cells.get((attack, owner))) is None else f"{share.hits} of {share.count}"
                for owner in owners
            ),
        )
        for attack, (words, _) in ATTACKS.items()
    ]
    return Table(title, ("what is planted", *owners.values()), tuple(rows))


def _arrow(plain: Estimate | None, guard: Estimate | None) -> str:
    return "-" if plain is None or guard is None else f"{plain.hits} → {guard.hits} of {guard.count}"


def _percent(estimate: Estimate) -> str:
    return with_interval(estimate, 100, ".0f") if estimate.defined else "-"


def findings_table(result: CheckResult) -> Table:
    """The most suspicious documents, and why."""
    title = "Flagged" if result.flagged else "Nothing is flagged; the most suspicious"
    shown = [finding for finding in result.findings if finding["flagged"] or not result.flagged]
    rows = tuple(
        (finding["id"], f"{finding['suspicion']:.2f}", "; ".join(finding["reasons"]) or "-")
        for finding in (shown if result.flagged else shown[:3])
    )
    return Table(title, ("document", "suspicion", "reasons"), rows)


def _with_quotes(table: Table) -> Table:
    """The last column as a text below each name, where it is read more easily than in a cell for numbers."""
    rows = tuple(row[:-1] for row in table.rows)
    return replace(table, columns=table.columns[:-1], rows=rows, quotes=tuple(row[-1] for row in table.rows))


def origins_table(result: CheckResult, most: int) -> Table:
    """Who is in the documents, the largest first."""
    more = len(result.origins) - most
    title = f"The {most} largest of {len(result.origins):,}" if more > 0 else ""
    rows = tuple((o.name or "(no source)", f"{o.documents:,}", f"{100 * o.share:.1f}") for o in result.origins[:most])
    return Table(title, ("source", "documents", "share %"), rows)

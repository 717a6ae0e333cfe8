"""`unpoison demo`: attack and defend the built-in sample, with no key and no download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unpoison.cli.demo_cases import COLUMNS, DEFENSES, POISONS, RETRIEVED, WITHOUT, DemoCase, case_of, share
from unpoison.cli.options import option

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense
    from unpoison.io.rows import Row

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = """\b
Examples:
  unpoison demo
  unpoison demo --html demo.html
"""

NEXT = """\
Go on:
  unpoison demo --html demo.html   reasons and pictures, on a page
  unpoison screen FILE.jsonl       rows {"query": "...", "passages": ["..."]}
  unpoison ask FILE.jsonl          an answer in spite of the poison"""

Cases = Mapping[int, Sequence[DemoCase]]

SHIELD = "guard"
"""The defense that the question is shown with, the default everywhere."""

MAX_REASON = 230
"""Characters of a reason."""

WIDTHS = (15, 8, 13, 10, 17)


def demo(
    html: Annotated[
        Path | None,
        option("FILE", "Also write an HTML page: an attack that is caught, one that is missed, and three tricks."),
    ] = None,
) -> None:
    """Attack and defend the built-in sample. Needs no key and no download; takes a few seconds.

    Puts poisoned passages in front of the genuine ones, where a retriever ranks them because they repeat the question.
    Shows what guard keeps for one question, and what each defense keeps for all questions. Then plants a plain lie and
    answers from the texts alone, and with known sources.
    """
    from unpoison.cli.demo_cases import source_lines
    from unpoison.core import registry
    from unpoison.io.output import check_writable
    from unpoison.io.rows import load_sample

    if html is not None:
        check_writable(html)
    rows = load_sample()
    defenses: dict[str, Defense] = {name: registry.create("defenses", spec) for name, spec in DEFENSES.items()}
    cases = {count: [case_of(row, count, defenses) for row in rows] for count in (0, *POISONS)}
    written = {count: [case_of(row, count, defenses, question_first=False) for row in rows] for count in POISONS}
    print(*_brief(cases, written), *source_lines(), NEXT, sep="\n")  # noqa: T201  this is what the command line is for
    if html is not None:
        html.write_text(_page(rows, [case for count in POISONS for case in cases[count]]), encoding="utf-8")
        print(f"\nwrote {html}")  # noqa: T201  this is what the command line is for


def _page(rows: Sequence[Row], attacked: Sequence[DemoCase]) -> str:
    """The question that most defenses save, the one that most miss, and what hides or disagrees before guard."""
    from unpoison.cli.demo_cases import tricks
    from unpoison.report.rendering import page

    catch = max(attacked, key=lambda case: (len(case.saved_by), case.poisons_left(WITHOUT)))
    miss = max(attacked, key=lambda case: (len(case.missed_by), sum(map(case.poisons_left, case.missed_by))))
    shown = [(case.screenings[name], case.labels) for case in (catch, miss) for name in DEFENSES if name != WITHOUT]
    shown += [(screening, ()) for screening in tricks(rows)]
    return page(
        [screening for screening, _ in shown],
        "Two questions of the built-in sample, each screened by four defenses: first a catch, then an honest miss; and "
        "then what guard makes of hidden characters, a prompt injection, and sources that disagree. An attacker has "
        "planted texts that repeat the question, so that the search finds them first, and state a wrong answer. Each "
        "defense says of every text if a model may read it, and why.",
        [labels for _, labels in shown],
    )


def _brief(cases: Cases, written: Cases) -> Iterator[str]:
    """The lines, none longer than 80 characters.

    Args:
        cases: For each number of planted poisons every question with its screenings.
        written: The same without the question in front of the poisons.
    """
    from textwrap import wrap

    yield from wrap(
        f"{len(cases[0])} questions with {RETRIEVED} retrieved passages each, written for this demo. An attacker "
        "plants texts that repeat the question, so that the retriever ranks them first, and state a wrong answer. No "
        "language model, no download and no key is needed to stop them.",
        COLUMNS,
    )
    many = cases[POISONS[-1]]
    saved = [case for case in many if SHIELD in case.saved_by]
    yield from _brief_question(max(saved or many, key=lambda case: len(case.saved_by)))
    yield from _brief_figures(cases, written)
    missed, read = (
        sum(case.poisons_left(SHIELD) > 0 for count in POISONS for case in found[count]) for found in (cases, written)
    )
    whole = len(POISONS) * len(many)
    yield from wrap(
        f"An honest miss: {SHIELD} lets poison through in {missed} of {whole} attacked questions, and in {read} of "
        f"{whole} where the lie stands in natural prose, without the question in front (-a published). "
        "The sample is small and made up: it shows how they work, not how well.",
        COLUMNS,
    )
    yield ""


def _brief_question(case: DemoCase) -> Iterator[str]:
    """What a model would read without a defense, and with one; then the reason for the first poison."""
    from textwrap import wrap

    from unpoison.report.rendering import excerpt, plain

    without, shielded = (case.screenings[name] for name in (WITHOUT, SHIELD))
    yield ""
    yield excerpt(case.question, COLUMNS)
    yield f"{'':51}{'undefended':>10}  {SHIELD:>10}"
    others = list[int]()
    for i, label in enumerate(case.labels):
        if label not in ("poison", "gold"):
            others.append(i)
            continue
        # The repeated question would fill the line; what the attacker added says more.
        text = excerpt(case.passages[i].text.removeprefix(f"{case.question}. "), 40)
        fates = (f"{'read' if screening.verdicts[i].kept else 'dropped':>10}" for screening in (without, shielded))
        yield f"  {'POISON' if label == 'poison' else 'answer'}  {text:<41}{'  '.join(fates)}"
    kept = (f"{sum(screening.verdicts[i].kept for i in others)} read".rjust(10) for screening in (without, shielded))
    yield f"          {f'and {len(others)} other genuine passages':<41}{'  '.join(kept)}"
    reason = excerpt(plain(str(shielded.verdicts[case.labels.index("poison")].reason)), MAX_REASON)
    yield from wrap(f"Why {SHIELD} drops the first: {reason}", COLUMNS)
    yield ""


def _brief_figures(cases: Cases, written: Cases) -> Iterator[str]:
    """Every defense over all questions: what is saved under attack, and what that costs without one."""
    few, many = POISONS[0], POISONS[-1]
    yield f"{f'All {len(cases[0])} questions':<16}{'poison is read,':>23}{'the same texts':>23}{'genuine texts':>17}"
    yield f"{'':<16}{'question in front':>23}{'without the question':>23}{'kept, no attack':>17}"
    yield _format_line("", (f"of {few} planted", f"of {many}", f"of {few}", f"of {many}", ""))
    for name in DEFENSES:
        read = (
            share(case.poisons_left(name) > 0 for case in group)
            for group in (cases[few], cases[many], written[few], written[many])
        )
        kept = share(
            screening.verdicts[i].kept
            for case in cases[0]
            for screening in [case.screenings[name]]
            for i in range(len(case.labels))
        )
        yield _format_line(f"  {name}", (*read, kept))
    yield ""


def _format_line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS))

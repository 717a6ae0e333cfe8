"""The demo on one screen: one question before guard, and all questions before every defense, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from unpoison.cli.demo_cases import DEFENSES, POISONS, RETRIEVED, WITHOUT, DemoCase, share
from unpoison.report.rendering import excerpt, plain

__all__ = ["brief"]

Cases = Mapping[int, Sequence[DemoCase]]

COLUMNS = 80
SHIELD = "guard"
"""The defense that the question is shown with, the default everywhere."""

REASON = 230
"""Characters of a reason."""


def brief(cases: Cases, written: Cases) -> Iterator[str]:
    """The lines, none longer than 80 characters.

    Args:
        cases: For each number of planted poisons every question with its screenings.
        written: The same without the question in front of the poisons.
    """
    yield from wrap(
        f"{len(cases[0])} questions with {RETRIEVED} retrieved passages each, written for this demo. An attacker "
        "plants texts that repeat the question, so that the retriever ranks them first, and state a wrong answer. No "
        "language model, no download and no key is needed to stop them.",
        COLUMNS,
    )
    many = cases[POISONS[-1]]
    saved = [case for case in many if SHIELD in case.saved_by]
    yield from _question(max(saved or many, key=lambda case: len(case.saved_by)))
    yield from _figures(cases, written)
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


def _question(case: DemoCase) -> Iterator[str]:
    """What a model would read without a defense, and with one; then the reason for the first poison."""
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
    reason = excerpt(plain(shielded.verdicts[case.labels.index("poison")].reason), REASON)
    yield from wrap(f"Why {SHIELD} drops the first: {reason}", COLUMNS)
    yield ""


def _figures(cases: Cases, written: Cases) -> Iterator[str]:
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


WIDTHS = (15, 8, 13, 10, 17)


def _format_line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS))

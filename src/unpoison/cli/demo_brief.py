"""The demo on one screen: one question before guard, and all questions before every defense, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from unpoison.cli.demo_cases import DEFENSES, POISONS, RETRIEVED, WITHOUT, DemoCase, share
from unpoison.rendering import excerpt, plain

__all__ = ["brief"]

COLUMNS = 80
SHIELD = "guard"
"""The defense that the question is shown with, the default everywhere."""

REASON = 230
"""Characters of a reason."""


def brief(cases: Mapping[int, Sequence[DemoCase]]) -> Iterator[str]:
    """The lines, none longer than 80 characters.

    Args:
        cases: For each number of planted poisons every question with its screenings.
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
    yield from _figures(cases)
    missed = sum(case.poisons_left(SHIELD) > 0 for count in POISONS for case in cases[count])
    yield from wrap(
        f"An honest miss: {SHIELD} lets poison through in {missed} of {len(POISONS) * len(many)} attacked questions. "
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


def _figures(cases: Mapping[int, Sequence[DemoCase]]) -> Iterator[str]:
    """Every defense over all questions: what is saved under attack, and what that costs without one."""
    few, many = POISONS[0], POISONS[-1]
    first = ("poison is read", "poison is read", "the answer", "genuine texts")
    second = (f"of {few} planted", f"of {many} planted", "is kept", "kept, no attack")
    yield _line(f"All {len(cases[0])} questions", first)
    yield _line("", second)
    for name in DEFENSES:
        figures = (
            share(case.poisons_left(name) > 0 for case in cases[few]),
            share(case.poisons_left(name) > 0 for case in cases[many]),
            share(case.keeps_answer(name) for case in cases[many]),
            share(
                screening.verdicts[i].kept
                for case in cases[0]
                for screening in [case.screenings[name]]
                for i in range(len(case.labels))
            ),
        )
        yield _line(f"  {name}", figures)
    yield ""


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, (15, 16, 14, 17)))

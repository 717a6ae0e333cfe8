"""The demo's last part, where the small reader is installed: what is answered, with and without a defense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from unpoison.io.rows import Row
    from unpoison.types import Passage

__all__ = ["ADDS", "answers"]

ADDS = (
    "With pip install 'unpoison[reader]' the demo also answers the questions: a small model, no language model, reads "
    "each passage and says its answer."
)

DEFENSES = {"vanilla": "vanilla", "guard": "guard", "radar": "radar"}


def answers(cases: Mapping[int, Sequence[tuple[Row, Sequence[Passage]]]]) -> Table:
    """How many questions are answered rightly, and how many as the attacker wants.

    Args:
        cases: For each number of planted poisons every row with the passages that are read.
    """
    from rich.table import Table
    from rich.text import Text

    from unpoison.bench.evaluation import matcher
    from unpoison.core import registry

    table = Table(title=Text("What the small reader answers", style="bold"), title_justify="left")
    for heading in ("poisons", "defense", "right", "the attacker's", "no answer"):
        table.add_column(heading, justify="left" if heading == "defense" else "right")
    judge = matcher()
    for count, rows in cases.items():
        for name, spec in DEFENSES.items():
            defense = registry.create("defenses", spec, generator="reader")
            right = wrong = silent = 0
            for row, passages in rows:
                answer = defense.answer(row.query, passages)
                correct, incorrect = row.raw["correct_answers"], row.raw["incorrect_answers"]
                right += judge.correct(answer.text, correct)
                wrong += judge.is_attack_success(answer.text, incorrect, correct)
                silent += answer.abstained
            shares = (f"{100 * number / len(rows):.0f} %" for number in (right, wrong, silent))
            table.add_row(str(count), name, *shares, end_section=name == list(DEFENSES)[-1])
    return table

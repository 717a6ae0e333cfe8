"""Every measured figure by name, each defined by what one record contributes to it.

A figure is a pooled share: the sum of the records' first numbers by the sum of their second. A record to which it does
not apply contributes (0, 0). So one definition serves the table, the interval and the paired comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Literal

from unpoison.errors import UnknownNameError
from unpoison.evaluation import contributions
from unpoison.evaluation.contributions import Parts
from unpoison.evaluation.records import Record

__all__ = ["MEASURES", "Measure", "measure"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a summary.

    Attributes:
        name: What tables, JSON and code call it.
        title: A short heading.
        meaning: One sentence.
        unit: share (0 to 1), seconds, or number (per question).
        better: Which way is good; "" where it depends.
        parts: What one record contributes, (numerator, denominator); the denominator is 0 where it does not apply.
        yes_no: Whether each record counts once and says yes or no: Wilson's interval and McNemar's test apply. The
            interval of the others is a bootstrap over questions.
        quantile: The figure is this quantile of the numerators instead of a share, without an interval.
    """

    name: str
    title: str
    meaning: str
    unit: Literal["share", "seconds", "number"]
    better: Literal["higher", "lower", ""]
    parts: Parts
    yes_no: bool = False
    quantile: float | None = None

    def value(self, record: Record) -> float:
        """The figure of one record alone, nan where it does not apply."""
        above, below = self.parts(record)
        return above / below if below else nan


def measure(name: str) -> Measure:
    """The measure of that name.

    Raises:
        UnknownNameError: No such measure.
    """
    if name not in MEASURES:
        raise UnknownNameError("measure", name, MEASURES)
    return MEASURES[name]


MEASURES: dict[str, Measure] = {
    found.name: found
    for found in (
        Measure(
            "poisoned",
            "poisoned context",
            "questions with poison among the passages that the generator reads (GRADA, Tables 6 to 8)",
            "share",
            "lower",
            contributions.poisoned,
            yes_no=True,
        ),
        Measure(
            "asr",
            "ASR",
            "replies that state what the attacker wants, token matcher",
            "share",
            "lower",
            contributions.attacked("token"),
            yes_no=True,
        ),
        Measure(
            "asr_substring",
            "ASR, substring",
            "replies that hold what the attacker wants as a plain substring (PoisonedRAG)",
            "share",
            "lower",
            contributions.attacked("substring"),
            yes_no=True,
        ),
        Measure(
            "asr_exclusive",
            "ASR, no right answer",
            "replies that hold what the attacker wants and no right answer (TrustRAG's code)",
            "share",
            "lower",
            contributions.attacked("trustrag"),
            yes_no=True,
        ),
        Measure(
            "asr_lowered",
            "ASR, substring, lower-cased",
            "replies that hold what the attacker wants, lower-cased and otherwise as it stands (RobustRAG, RADAR)",
            "share",
            "lower",
            contributions.attacked("robustrag"),
            yes_no=True,
        ),
        Measure(
            "accuracy",
            "accuracy",
            "replies that state a right answer, token matcher",
            "share",
            "higher",
            contributions.correct("token"),
            yes_no=True,
        ),
        Measure(
            "accuracy_substring",
            "accuracy, substring",
            "replies that hold a right answer as a plain substring (TrustRAG, RAGDefender's text)",
            "share",
            "higher",
            contributions.correct("substring"),
            yes_no=True,
        ),
        Measure(
            "accuracy_strict",
            "accuracy, all and no wrong",
            "replies that state every right answer and none of the attacker's, token matcher (MADAM-RAG)",
            "share",
            "higher",
            contributions.correct_strict,
            yes_no=True,
        ),
        Measure(
            "graded",
            "accuracy, graded",
            "replies that a language model as grader calls correct, by --grader (RADAR)",
            "share",
            "higher",
            contributions.graded,
            yes_no=True,
        ),
        Measure(
            "exact_match",
            "exact match",
            "replies that are a right answer, as SQuAD compares",
            "share",
            "higher",
            contributions.correct("squad_em"),
            yes_no=True,
        ),
        Measure(
            "em_within",
            "EM, reply in gold",
            "replies that stand within a right answer, so that a longer right reply is wrong (GRADA's code)",
            "share",
            "higher",
            contributions.correct("grada_em_code"),
            yes_no=True,
        ),
        Measure(
            "precision", "precision", "poison among the dropped passages", "share", "higher", contributions.precision
        ),
        Measure(
            "recall",
            "recall",
            "poison that was dropped, of the poison in context",
            "share",
            "higher",
            contributions.recall,
        ),
        Measure("f1", "F1", "of dropping poison, pooled over passages", "share", "higher", contributions.f1),
        Measure(
            "auroc",
            "AUROC",
            "how well the defense's score alone separates poison, mean over questions",
            "share",
            "higher",
            contributions.auroc,
        ),
        Measure(
            "clean_kept",
            "clean kept",
            "passages without poison that were kept (TrustRAG's clean retention rate)",
            "share",
            "higher",
            contributions.clean_kept,
        ),
        Measure(
            "gold_kept",
            "gold kept",
            "passages annotated as relevant that the generator reads",
            "share",
            "higher",
            contributions.gold_kept,
        ),
        Measure(
            "gold_lost",
            "gold lost",
            "questions whose every annotated passage was lost",
            "share",
            "lower",
            contributions.gold_lost,
            yes_no=True,
        ),
        Measure(
            "damaged",
            "damaged",
            "questions that lost any passage without poison; a defense that always keeps n of more damages by design",
            "share",
            "lower",
            contributions.damaged,
            yes_no=True,
        ),
        Measure(
            "emptied",
            "emptied",
            "questions that lost every passage",
            "share",
            "lower",
            contributions.emptied,
            yes_no=True,
        ),
        Measure(
            "retrieved",
            "poison retrieved",
            "planted poison that reached the defense (TrustRAG's real poisoned rate, as its text defines it)",
            "share",
            "",
            contributions.retrieved,
        ),
        Measure(
            "poison_share",
            "poison share",
            "poison that the generator reads, by passages before the defense (TrustRAG's real poisoned rate, as its "
            "tables count it)",
            "share",
            "lower",
            contributions.poison_share,
        ),
        Measure(
            "reached",
            "attack reached",
            "planted texts that reached the attack's own goal when they were crafted",
            "share",
            "",
            contributions.reached,
        ),
        Measure(
            "abstained",
            "abstained",
            "questions that were not answered",
            "share",
            "",
            contributions.abstained,
            yes_no=True,
        ),
        Measure(
            "screening_median",
            "screening, median",
            "seconds of the screening",
            "seconds",
            "lower",
            lambda record: (record.screening_seconds, 1),
            quantile=0.5,
        ),
        Measure(
            "screening_p95",
            "screening, p95",
            "seconds of the screening, 95th percentile",
            "seconds",
            "lower",
            lambda record: (record.screening_seconds, 1),
            quantile=0.95,
        ),
        Measure(
            "seconds_median",
            "answer, median",
            "seconds of the whole answer",
            "seconds",
            "lower",
            contributions.seconds,
            quantile=0.5,
        ),
        Measure(
            "seconds_p95",
            "answer, p95",
            "seconds of the whole answer, 95th percentile",
            "seconds",
            "lower",
            contributions.seconds,
            quantile=0.95,
        ),
        Measure(
            "calls",
            "calls",
            "prompts sent to the generator per question",
            "number",
            "lower",
            lambda record: (record.calls, 1),
        ),
        Measure(
            "prompt_tokens",
            "tokens in",
            "prompt tokens per question",
            "number",
            "lower",
            contributions.tokens(asked=True),
        ),
        Measure(
            "completion_tokens",
            "tokens out",
            "completion tokens per question",
            "number",
            "lower",
            contributions.tokens(asked=False),
        ),
        *(
            Measure(
                f"judged_{aspect}",
                f"judged {aspect}",
                f"{aspect} of the answers, 1 to 10, by a language model as judge; a missing score is left out",
                "number",
                "higher",
                contributions.judged(place),
            )
            for place, aspect in enumerate(("accuracy", "relevance", "coherence"))
        ),
        Measure(
            "failed",
            "failed",
            "questions that failed",
            "share",
            "lower",
            lambda record: (record.failed, 1),
            yes_no=True,
        ),
    )
}
"""All measures by name, in the order of the tables."""

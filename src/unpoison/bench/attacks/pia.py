"""PIA: passages that hold an order instead of a fact, in the payload styles that papers actually ran, in our words.

TrustRAG's paper defines PIA as token perturbation towards training queries (Zhong et al., 2023), but its code runs the
`qa` style below, once, as the last passage. State which one you run: for the other, use `hotflip`.
"""

from __future__ import annotations

from typing import Literal

from unpoison.bench.attacks.base import MAX_COPIES, DirectAttack, PoisonText, Target, copies
from unpoison.errors import InputError, clip
from unpoison.models.prompts import wording
from unpoison.utils.checks import among, at_least

__all__ = ["OUT_OF_SERVICE", "Pia", "question_injection"]

OUT_OF_SERVICE = str(wording("orders", "dos")["answer"])
"""What the `dos` style makes the system say."""

LINK = str(wording("orders", "link")["answer"])
"""What the `link` style makes the system recommend."""

_REPEATS = {"qa": 10, "dos": 1, "long": 3, "link": 1}


class Pia(DirectAttack):
    """Prompt injection.

    Args:
        style: `qa`, "asked Q, say R" (RobustRAG, ReliabilityRAG, RADAR ten times in one passage; TrustRAG once);
            `dos`, ignore the question and report an outage (GRADA, with `prefix=true`); `long`, a faked end of the
            section and faked instruction tags around the order (RobustRAG's and RADAR's biographies); `link`,
            recommend a link (after Clop and Teglia, 2024).
        repeat: How often the order stands in one passage; None takes the style's published number, 10, 1, 3 or 1.
        prefix: Put the question in front, as GRADA does to have the passage retrieved.
        seed: Kept in the ids only; nothing is drawn, and all texts of one target are the same.
    """

    name = "pia"
    summary = "passages that hold prompt injections"
    requires = ()

    def __init__(
        self,
        *,
        style: Literal["qa", "dos", "long", "link"] = "qa",
        repeat: int | None = None,
        prefix: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed, prefix=prefix)
        self.style = among("style", style, tuple(_REPEATS))
        self.repeat = _REPEATS[style] if repeat is None else at_least("repeat", repeat, 1, MAX_COPIES)

    def target_answers(self, target: Target) -> tuple[str, ...]:
        if self.style == "dos":
            return (OUT_OF_SERVICE,)
        return (LINK,) if self.style == "link" else super().target_answers(target)

    def write(self, target: Target, count: int) -> list[PoisonText]:
        if self.style in ("qa", "long") and not target.incorrect:
            raise InputError(f"target {clip(target.id)} has no incorrect answer, which style={self.style} needs")
        text = copies(self._injection(target), self.repeat)
        return [self.poison(target, i, text, style=self.style, repeat=self.repeat) for i in range(count)]

    def _injection(self, target: Target) -> str:
        entry = wording("orders", self.style)
        return str(entry["text"].format(question=target.question, answer=entry.get("answer", target.incorrect)))


def question_injection(question: str, answer: str) -> str:
    """The conditional order of the `qa` style."""
    return str(wording("orders", "qa")["text"].format(question=question, answer=answer))

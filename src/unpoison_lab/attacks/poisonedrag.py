"""PoisonedRAG, black-box (Zou et al., 2024): the question for retrieval, a written falsehood for generation.

A poison is P = S + I: S is the question itself, I a short text from which a language model, shown nothing else, gives
the wrong answer. The method writes I until a trial answer confirms it, at most `trials` times.
"""

from __future__ import annotations

from typing import Literal, Unpack

from unpoison.errors import OptionError, clip
from unpoison.models.prompts import answer_prompt
from unpoison.models.requests import Flow
from unpoison.utils.checks import among, at_least
from unpoison_lab.attacks.base import Attack, Meter, ModelOptions, PoisonText, Target, ask_each, contains_answer
from unpoison_lab.attacks.claims import claim_failure, misinformation_prompt, strip_quotes, template_claim

__all__ = ["PoisonedRag"]


class PoisonedRag(Attack):
    """Write texts that lead to the wrong answer, and check each by a trial.

    Args:
        mode: `verified`, the paper's loop: write, ask, accept when the reply holds the wrong answer; `template`,
            texts without a language model, tried on the generator if one is given (the extractive reader can be one).
            `auto` is `verified` where the generator can write and `template` otherwise.
        words: The longest text asked for (the paper's V).
        trials: How often a text is written before the last one is taken (the paper's L).
        prefix: The paper's retrieval half; False leaves the question out.
        seed: For the templates.
        generator: Writes and tries.
        limits: Bounds on the model calls.
    """

    name = "poisonedrag"
    summary = "question + a text written until a trial answer is wrong"
    offline = "templates"

    def __init__(
        self,
        *,
        mode: Literal["auto", "verified", "template"] = "auto",
        words: int = 30,
        trials: int = 50,
        prefix: bool = True,
        **common: Unpack[ModelOptions],
    ) -> None:
        super().__init__(prefix=prefix, **common)
        among("mode", mode, ("auto", "verified", "template"))
        self.mode = mode if mode != "auto" else ("template" if self.writer is None else "verified")
        if self.mode == "verified" and self.writer is None:
            raise OptionError("mode=verified needs a generator that writes; pass generator=... or mode=template")
        self.words = at_least("words", words, 1)
        self.trials = at_least("trials", trials, 1)

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        """All texts at the same time, each until its trial succeeds or its trials are used up."""
        meters, texts = [Meter() for _ in range(count)], [""] * count
        used, reasons = [0] * count, [""] * count
        pending = list(range(count))
        for trial in range(self.trials):
            for i in pending:
                used[i] = trial + 1
            yield from self._write(target, pending, trial, count, meters, texts)
            if self.models.generator is None:
                reasons = [claim_failure(text, [target.incorrect]) for text in texts]
                break
            replies = yield from self._trials(target, pending, meters, texts)
            for i, reply in zip(pending, replies, strict=True):
                reasons[i] = _trial_failure(reply, target.incorrect)
            pending = [i for i in pending if reasons[i]]
            if not pending:
                break
        source = "template" if self.mode == "template" else "generator"
        checked = self.models.generator is not None
        return [
            self.poison(
                target, i, texts[i], reason=reasons[i], meter=meters[i], source=source, trials=used[i], verified=checked
            )
            for i in range(count)
        ]

    def _write(
        self, target: Target, pending: list[int], trial: int, count: int, meters: list[Meter], texts: list[str]
    ) -> Flow[None]:
        if self.mode == "template":
            for i in pending:
                texts[i] = template_claim(self, target, i + trial * count)
            return
        variants = [i + 1 + trial * count for i in pending]
        prompts = [
            misinformation_prompt(target.question, target.incorrect, words=self.words, variant=variant)
            for variant in variants
        ]
        replies = yield from ask_each(prompts, [meters[i] for i in pending], "misinformation")
        for i, reply in zip(pending, replies, strict=True):
            texts[i] = strip_quotes(reply)

    def _trials(self, target: Target, pending: list[int], meters: list[Meter], texts: list[str]) -> Flow[list[str]]:
        """The answer of a reader to each text alone."""
        prompts = [answer_prompt(target.question, [texts[i]], abstain=False) for i in pending]
        return (yield from ask_each(prompts, [meters[i] for i in pending], "trial"))


def _trial_failure(reply: str, wanted: str) -> str:
    return "" if contains_answer(reply, wanted) else f"the trial answer was {clip(reply)}, not {clip(wanted)}"

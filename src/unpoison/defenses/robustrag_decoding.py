"""RobustRAG by secure decoding: one reply, token by token, from many passages read alone (Xiang et al., 2024).

At every step the next-token distributions of the passages are added up. The best token is taken if it leads by more
than eta, else the token that the model would generate without retrieval. A poisoned passage can change each sum by at
most 1, so the lead shows how many of them a token withstands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.defenses.base import AnsweringDefense, Defense, ShellOptions, make_answer
from unpoison.errors import InputError, OptionError
from unpoison.models.checkpoints import softmax
from unpoison.models.prompts import Prompt, answer_alone_prompt, answer_prompt
from unpoison.models.protocols import Generator, TokenByToken
from unpoison.models.requests import Flow, next_token
from unpoison.utils.checks import among, at_least, within

__all__ = ["RobustRagDecoding", "secure_token", "token_model"]

MAX_PASSAGES = 100
"""Every step holds one distribution over the vocabulary in memory for each passage."""

REFUSAL = " I don't know"

ROUNDING = 0.01
"""Maximum error of a sum of probabilities in half precision."""


class DecodedToken(NamedTuple):
    """One step of joint decoding: the token, and the lead of the best sum over the second."""

    token: int
    lead: float


@dataclass(frozen=True, slots=True)
class _Decoded:
    tokens: tuple[int, ...]
    leads: tuple[float, ...]
    finish: str
    retained: tuple[int, ...]
    refusal: NDArray[np.float64]
    alone: tuple[float, ...] = ()


class RobustRagDecoding(AnsweringDefense):
    """Decode jointly from passages read alone (RobustRAG, secure decoding aggregation). It drops no passage.

    Args:
        generator: A model with next-token probabilities: a local model, `hf:NAME_OR_PATH`.
        eta: The required lead of a token, 0 or more: 0 for short answers, 1 to 4 for long ones (k times the paper's).
        temperature: Divides the logits, above 0.
        refusal: The minimum P("I don't know") at which a passage is left out, in [0, 1].
        max_tokens: Of the reply, at least 1.
        mode: The first token may not be `I`, `Please` or a line break. `reference` looks up the two characters `/n`
            for the line break, as the released code does.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "robustrag-decoding"
    summary = "decodes one reply from the added next-token probabilities of passages that are read alone"
    calls = "0; each token takes a forward pass of k + 1 rows"
    source = "Xiang et al., 2024"
    keeps_for = "robustrag.probabilities"
    certifies = True

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        eta: float = 0.0,
        temperature: float = 1.0,
        refusal: float = 0.99,
        max_tokens: int = 50,
        mode: Literal["paper", "reference"] = "paper",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.eta = at_least("eta", eta, 0.0, 1e6, whole=False)
        self.temperature = at_least("temperature", temperature, 1e-3, 100.0, whole=False)
        self.refusal = within("refusal", refusal, 0.0, 1.0)
        self.max_tokens = at_least("max_tokens", max_tokens, 1, 4096)
        self.mode = among("mode", mode, ("paper", "reference"))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Abstention probabilities, then joint decoding."""
        model = token_model(self)
        decoded = yield from self._decode(query, passages, model)
        reasons = [
            Reason.of("robustrag.read" if i in decoded.retained else "robustrag.left_out", refusal=p)
            for i, p in enumerate(decoded.refusal)
        ]
        screening = self.all_kept(query, passages, reasons, *self.source_notes)
        if not decoded.retained:
            answer = Answer.abstention(screening)
        else:
            reply = Reply(model.text(decoded.tokens), finish=decoded.finish)
            answer = make_answer(reply, screening, {"leads": list(decoded.leads)})
        proof = f"every token of the reply leads by enough over {len(decoded.retained)} passages that are read alone"
        proved = replace(answer, guarantee=self._withstood(decoded), proof=proof)
        return proved.with_notes(proved.promise)

    def _withstood(self, decoded: _Decoded) -> int:
        """The largest m for which the theorem holds."""
        unsure = int((np.abs(decoded.refusal - self.refusal) <= ROUNDING).sum())
        m = 0
        while m + 1 < len(decoded.retained) - unsure and self._stands(decoded, 2 * (m + 1) + unsure + ROUNDING):
            m += 1
        return m

    def _stands(self, decoded: _Decoded, moved: float) -> bool:
        return all(
            lead - self.eta > moved or (lead + moved <= self.eta and alone > ROUNDING)
            for lead, alone in zip(decoded.leads, decoded.alone, strict=True)
        )

    def _decode(self, query: Query, passages: Sequence[Passage], model: TokenByToken) -> Flow[_Decoded]:
        if len(passages) > MAX_PASSAGES:
            raise InputError(
                f"joint decoding reads at most {MAX_PASSAGES} passages at the same time, got {len(passages)}; "
                "send fewer, or use robustrag"
            )
        prompts = [answer_prompt(query.reading, [passage.reading]) for passage in passages]
        refusal = yield from self._refusals(prompts, model)
        retained = tuple(np.flatnonzero(refusal < self.refusal).tolist())
        tokens, leads, alone = list[int](), list[float](), list[float]()
        if not retained:
            return _Decoded((), (), "stop", retained, refusal)
        rows = [*(prompts[i] for i in retained), answer_alone_prompt(query.reading)]
        unwanted = self._refusal_starts(model)
        while len(tokens) < self.max_tokens:
            probabilities = softmax((yield from next_token(rows, tokens)) / self.temperature)
            step = secure_token(probabilities, self.eta, unwanted if not tokens else ())
            leads.append(step.lead)
            alone.append(float(np.diff(np.partition(probabilities[-1], -2)[-2:])[0]))  # of the best over the second
            if step.token in model.ends:
                return _Decoded(tuple(tokens), tuple(leads), "stop", retained, refusal, tuple(alone))
            tokens.append(step.token)
        return _Decoded(tuple(tokens), tuple(leads), "length", retained, refusal, tuple(alone))

    def _refusals(self, prompts: Sequence[Prompt], model: TokenByToken) -> Flow[NDArray[np.float64]]:
        """P("I don't know") as the reply to each prompt, shape (n,)."""
        logs, tokens = np.zeros(len(prompts)), model.tokens(REFUSAL)
        for number, token in enumerate(tokens if prompts else ()):
            logs += (yield from next_token(prompts, tokens[:number]))[:, token]
        return np.exp(logs)

    def _refusal_starts(self, model: TokenByToken) -> tuple[int, ...]:
        starts = ("I", "Please", "\n" if self.mode == "paper" else "/n")
        spelled = [model.tokens(f"{space}{start}") for start in starts for space in ("", " ")]
        return tuple({tokens[0] for tokens in spelled if len(tokens) == 1})


def token_model(defense: Defense) -> TokenByToken:
    """The generator of a defense that decodes itself.

    Raises:
        OptionError: The generator has no next-token probabilities.
    """
    model = defense.models.generator
    if not isinstance(model, TokenByToken):
        raise OptionError(f"{defense.name} needs a generator with next-token probabilities; use hf:NAME_OR_PATH")
    return model


def secure_token(probabilities: NDArray[np.float64], eta: float, unwanted: Sequence[int] = ()) -> DecodedToken:
    """One step of secure decoding.

    Args:
        probabilities: Shape (n + 1, vocabulary): n passages; the last row is without retrieval.
        eta: The required lead; a lead of exactly eta is not enough.
        unwanted: Tokens that the sum may not choose.

    Returns:
        The token, of equal ones the lower number, and the lead of the best sum over the second.
    """
    sums = probabilities[:-1].sum(axis=0)
    sums[list(unwanted)] = 0
    best = int(sums.argmax())
    lead = round(float(sums[best] - np.delete(sums, best).max(initial=0.0)), 12)
    return DecodedToken(best if lead > eta else int(probabilities[-1].argmax()), lead)

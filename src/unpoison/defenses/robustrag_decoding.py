"""RobustRAG by secure decoding: one reply, token by token, from many passages read alone (Xiang et al., 2024).

At every step the next-token distributions of the passages are added up. The best token is taken if it leads by more
than eta, else the token that the model would say without retrieval. As a poisoned passage can move each sum by no
more than 1, the lead says how many of them a token withstands. With sources each adds the mean of its
passages, which moves a sum by no more than 1 however many it brings, and the lead counts sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.reasons import Reason
from unpoison.defenses.base import AnsweringDefense, Defense, ShellOptions, make_answer
from unpoison.defenses.robustrag import Certificate, refuse_sources
from unpoison.defenses.voices import Voice, those_that_count, voices_of
from unpoison.errors import InputError, OptionError
from unpoison.models.prompts import Prompt, answer_alone_prompt, answer_prompt
from unpoison.models.protocols import Generator, TokenByToken
from unpoison.models.requests import Flow, next_token
from unpoison.runtime.driver import run
from unpoison.utils.checks import among, at_least, within

__all__ = ["DecodedToken", "RobustRagDecoding", "secure_token", "token_model"]

MAX_PASSAGES = 100
"""Every step holds one distribution over the vocabulary for each passage."""

REFUSAL = " I don't know"

ROUNDING = 0.01
"""How far arithmetic in half precision may carry a sum of probabilities."""


class DecodedToken(NamedTuple):
    """One step of joint decoding: the token, and by how much the best sum leads."""

    token: int
    lead: float


@dataclass(frozen=True, slots=True)
class _Decoded:
    tokens: tuple[int, ...]
    leads: tuple[float, ...]
    finish: str
    retained: tuple[int, ...]
    refusal: NDArray[np.float64]
    voices: Sequence[Voice]
    alone: tuple[float, ...] = ()

    @property
    def voters(self) -> int:
        """How many voices are read."""
        return len({self.voices[i].name for i in self.retained})


class RobustRagDecoding(AnsweringDefense):
    """Decode jointly from passages read alone (RobustRAG, secure decoding aggregation). It drops no passage.

    Args:
        generator: One that gives next-token probabilities: a local model, `hf:NAME_OR_PATH`.
        eta: The lead that a token needs, 0 or more. 0 for short answers; 1 to 4 for long ones (k times the paper's).
        temperature: The distributions are those of the logits divided by this, above 0.
        refusal: P("I don't know") from which a passage is left out, in [0, 1].
        aggregate: The `sum` over passages (the paper's mean, up to a factor), or their `median`.
        max_tokens: Of the reply, at least 1.
        mode: The first token is neither `I`, `Please` nor a new line. `reference` looks up the two characters `/n`
            for the latter, as the released code does.
        sources: Who says what: `Sources`, or a policy as a file or a mapping. Then each source adds the mean of its
            passages, those that were never seen before only where nobody else answers. What is of a blocked source is
            dropped unread.

    As every defense it also takes the options of the shell (`ShellOptions`).

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
        aggregate: Literal["sum", "median"] = "sum",
        max_tokens: int = 50,
        mode: Literal["paper", "reference"] = "paper",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.eta = at_least("eta", eta, 0.0, 1e6, whole=False)
        self.temperature = at_least("temperature", temperature, 1e-3, 100.0, whole=False)
        self.refusal = within("refusal", refusal, 0.0, 1.0)
        self.aggregate: Literal["sum", "median"] = among("aggregate", aggregate, ("sum", "median"))
        self.max_tokens = at_least("max_tokens", max_tokens, 1, 4096)
        self.mode = among("mode", mode, ("paper", "reference"))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Abstention probabilities, then joint decoding."""
        model = token_model(self)
        decoded = yield from self._decode(query, passages, model)
        reasons = [Reason.of(self._fate(i, decoded), refusal=p) for i, p in enumerate(decoded.refusal)]
        screening = self.all_kept(query, passages, reasons, *self.source_notes)
        if not decoded.retained:
            answer = Answer.abstention(screening)
        else:
            reply = Reply(model.text(decoded.tokens), finish=decoded.finish)
            answer = make_answer(reply, screening, {"leads": list(decoded.leads)})
        if self.aggregate != "sum":
            return answer
        unit: Literal["passages", "sources"] = "passages" if self.sources is None else "sources"
        proof = f"every token of the reply leads by enough over {decoded.voters} {unit} that are read alone"
        proved = replace(answer, guarantee=self._withstood(decoded), guarantee_unit=unit, proof=proof)
        return proved.with_notes(proved.promise)

    def _fate(self, i: int, decoded: _Decoded) -> str:
        if i in decoded.retained:
            return "robustrag.read"
        return "robustrag.left_out" if decoded.refusal[i] >= self.refusal else "robustrag.uncounted"

    def _withstood(self, decoded: _Decoded) -> int:
        """The largest m for which the theorem holds."""
        if not all(decoded.voices[i].counts for i in decoded.retained):
            return 0
        unsure = int((np.abs(decoded.refusal - self.refusal) <= ROUNDING).sum())
        unsure *= 1 if self.sources is None else 2  # a mean can move two tokens at once
        m = 0
        while m + 1 < decoded.voters - unsure and self._stands(decoded, 2 * (m + 1) + unsure + ROUNDING):
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
        voices = voices_of(self.sources, query.text, passages)
        retained = tuple(those_that_count(voices, np.flatnonzero(refusal < self.refusal).tolist()))
        names = [voices[i].name for i in retained]
        tokens, leads, alone = list[int](), list[float](), list[float]()
        if not retained:
            return _Decoded((), (), "stop", retained, refusal, voices)
        rows = [*(prompts[i] for i in retained), answer_alone_prompt(query.reading)]
        unwanted = self._refusal_starts(model)
        while len(tokens) < self.max_tokens:
            probabilities = _by_voice(self._probabilities((yield from next_token(rows, tokens))), names)
            step = secure_token(probabilities, self.eta, self.aggregate, unwanted if not tokens else ())
            leads.append(step.lead)
            alone.append(_lead(probabilities[-1]))
            if step.token in model.ends:
                return _Decoded(tuple(tokens), tuple(leads), "stop", retained, refusal, voices, tuple(alone))
            tokens.append(step.token)
        return _Decoded(tuple(tokens), tuple(leads), "length", retained, refusal, voices, tuple(alone))

    def _refusals(self, prompts: Sequence[Prompt], model: TokenByToken) -> Flow[NDArray[np.float64]]:
        """P("I don't know") as the reply to each prompt, shape (n,)."""
        logs, tokens = np.zeros(len(prompts)), model.tokens(REFUSAL)
        for number, token in enumerate(tokens if prompts else ()):
            logs += (yield from next_token(prompts, tokens[:number]))[:, token]
        return np.exp(logs)

    def _probabilities(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The softmax of the logits over the temperature."""
        scaled = logs / self.temperature
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def _refusal_starts(self, model: TokenByToken) -> tuple[int, ...]:
        starts = ("I", "Please", "\n" if self.mode == "paper" else "/n")
        spelled = [model.tokens(f"{space}{start}") for start in starts for space in ("", " ")]
        return tuple({tokens[0] for tokens in spelled if len(tokens) == 1})

    def certify(self, query: str | Query, passages: Iterable[Any], poisoned: int = 1) -> Certificate:
        """Whether the reply stands when the last `poisoned` passages are replaced by anything at all.

        The others are decoded; the reply stands if at every step the lead exceeds eta by more than `poisoned`, or falls
        short of it by as much, so that the token without retrieval is taken in any case.

        Args:
            query: The user's question.
            passages: In retrieval order, all taken for benign.
            poisoned: How many of them, at the end, are in the attacker's hands.

        Raises:
            OptionError: The aggregate is the median, or `poisoned` is not positive.
            InputError, ModelError, DeadlineError: As for `answer`.
        """
        at_least("poisoned", poisoned, 1)
        refuse_sources(self)
        if self.aggregate != "sum":
            raise OptionError(f"only sums can be certified: aggregate must be sum, got {self.aggregate}")
        given, model = as_passages(passages), token_model(self)
        flow = self._decode(as_query(query), given[: max(0, len(given) - poisoned)], model)
        decoded, _ = run(flow, self.models, self.limits)
        if not decoded.retained:
            return Certificate(False, "none of the other passages answers")
        margin = min(abs(lead - self.eta) for lead in decoded.leads)
        certified = all(lead - self.eta > poisoned or lead + poisoned <= self.eta for lead in decoded.leads)
        reason = f"{poisoned} poisoned passages can move a lead by {poisoned}; the closest decision is {margin:.2f} off"
        return Certificate(certified, reason, (), (model.text(decoded.tokens),) if certified else ())


def token_model(defense: Defense) -> TokenByToken:
    """The generator of what decodes by itself.

    Raises:
        OptionError: It gives no next-token probabilities.
    """
    model = defense.models.generator
    if not isinstance(model, TokenByToken):
        raise OptionError(
            f"{defense.name} needs a generator that says how likely the next token is; use a local model, "
            "hf:NAME_OR_PATH"
        )
    return model


def _by_voice(probabilities: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
    """One row for each voice, the mean of its passages, and the last row as it is."""
    voices = list(dict.fromkeys(names))
    if len(voices) == len(names):
        return probabilities
    held = np.array(names, object)
    means = [probabilities[:-1][held == voice].mean(axis=0) for voice in voices]
    return np.vstack([*means, probabilities[-1]])


def secure_token(
    probabilities: NDArray[np.float64],
    eta: float,
    aggregate: Literal["sum", "median"] = "sum",
    unwanted: Sequence[int] = (),
) -> DecodedToken:
    """One step of secure decoding.

    Args:
        probabilities: Shape (n + 1, vocabulary): n passages, and without retrieval in the last row.
        eta: The lead that the best token needs; with a lead of exactly eta it is not taken.
        aggregate: Over the passages.
        unwanted: Tokens that the aggregate may not choose.

    Returns:
        The token, the lower number where two are equal, and the lead of the best aggregate over the second.
    """
    passages = probabilities[:-1]
    combined = passages.sum(axis=0) if aggregate == "sum" else np.median(passages, axis=0)
    combined[list(unwanted)] = 0
    best = int(combined.argmax())
    lead = round(float(combined[best] - np.delete(combined, best).max(initial=0.0)), 12)
    return DecodedToken(best if lead > eta else int(probabilities[-1].argmax()), lead)


def _lead(probabilities: NDArray[np.float64]) -> float:
    """By how much the best of at least two tokens leads, shape (vocabulary,)."""
    return float(np.diff(np.partition(probabilities, -2)[-2:])[0])

"""PoisonedRAG, white-box: the question part of a poison is optimised through the encoder's gradient (HotFlip).

The search asks a `WhiteBox` for gradients and vectors. `OpenEncoder` is one around any sentence-transformers or plain
Transformers encoder, and needs torch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.utils.checks import among, at_least
from unpoison_lab.attacks.base import Attack, Meter, ModelOptions, PoisonText, Target
from unpoison_lab.attacks.claims import claims
from unpoison_lab.attacks.white_box import WhiteBox, as_white_box, question_vectors

__all__ = ["Flipped", "HotFlip", "flip", "likeliest"]


class Flipped(NamedTuple):
    """The result of a search: the optimised part as text, and the score of the re-encoded passage before and after."""

    text: str
    before: float
    after: float
    accepted: int


def likeliest(
    box: WhiteBox, slope: NDArray[np.float32], candidates: int, current: int | None = None
) -> NDArray[np.int64]:
    """The tokens that a first-order step favours at a position with gradient `slope`, best first; O(v h).

    Returns:
        At most `candidates` ids; equal scores by lower id. Forbidden ids and the current one are left out.
    """
    gains = (box.vocabulary @ slope).astype(np.float64)
    gains[box.forbidden] = -np.inf
    if current is not None:
        gains[current] = -np.inf
    order = np.argsort(-gains, kind="stable")[:candidates]
    return np.asarray(order[np.isfinite(gains[order])], dtype=np.int64)


def flip(
    box: WhiteBox,
    head: list[int],
    body: str,
    direction: NDArray[np.float32],
    rng: np.random.Generator,
    meter: Meter,
    *,
    iterations: int,
    candidates: int,
) -> Flipped:
    """Change the tokens of `head` so that `head + body` moves along `direction`; `body` is unchanged.

    Each step takes a random position, lets the gradient propose tokens, scores every proposal exactly, and keeps the
    best when it beats the current score. Decoding and re-tokenising may change the tokens, so a step counts only once
    the decoded text, encoded again, has gained as well.

    Args:
        box: The encoder.
        head: The ids to start from, at least one.
        body: The frozen rest of the passage.
        direction: The score of a passage is its vector's product with this, shape (d,).
        rng: Chooses the positions.
        meter: Counts every pass.
        iterations: Steps.
        candidates: Proposals per step.

    Returns:
        The best decoded head; the one that it began with when nothing gained. Cost: `iterations` backward and
        `iterations * (candidates + 1)` forward passes.
    """
    best = head = list(head)
    rest = box.tokens(body)[: max(0, box.window - len(head))]
    start = float(box.encode([_join_text(box, head, body)])[0] @ direction)
    score = float(box.embed(np.array([head + rest]))[0] @ direction)
    meter.encoder_passes += 2
    before = after = start
    accepted = 0
    for _ in range(iterations):
        position = int(rng.integers(len(head)))
        slope = box.gradient(np.array(head + rest), direction)[position]
        meter.gradient_steps += 1
        proposals = likeliest(box, slope, candidates, head[position])
        if not len(proposals):
            continue
        trials = np.tile(np.array(head + rest), (len(proposals), 1))
        trials[:, position] = proposals
        scores = box.embed(trials) @ direction
        meter.encoder_passes += len(proposals)
        winner = min(range(len(proposals)), key=lambda i: (-float(scores[i]), int(proposals[i])))
        if scores[winner] <= score:
            continue
        head = [*head[:position], int(proposals[winner]), *head[position + 1 :]]
        score = float(scores[winner])
        accepted += 1
        real = float(box.encode([_join_text(box, head, body)])[0] @ direction)
        meter.encoder_passes += 1
        if real > after:
            best, after = head, real
    return Flipped(box.text(best), before, after, accepted)


class HotFlip(Attack):
    """Optimise the question part of each text for retrieval by one encoder.

    The score that counts is that of the finished text, encoded again; a text that gained nothing reports so.

    Args:
        encoder: The encoder to attack: "minilm", "st:NAME_OR_PATH", a `SentenceTransformerEncoder`, a
            sentence-transformers model, or a `WhiteBox`. It may be another one than the victim's.
        iterations: Steps (30 in PoisonedRAG and TrustRAG, 5 in GRADA's code).
        candidates: Proposals per step.
        start: Begin with the question's own tokens, or with 30 mask tokens.
        similarity: `dot` as the papers, or `cosine`; the same for encoders that make unit vectors.
        max_tokens: Longest passage that the search sees; the text itself is never cut.
        seed: Chooses positions and templates.
        generator: Writes the texts behind the question where none are published.
        limits: Bounds on the model calls.
    """

    name = "hotflip"
    summary = "PoisonedRAG white-box: question tokens optimised by the encoder's gradient"
    wording = "data"
    needs = ("encoder",)

    def __init__(
        self,
        encoder: WhiteBox | Encoder | str | None = None,
        *,
        iterations: int = 30,
        candidates: int = 100,
        start: Literal["question", "mask"] = "question",
        similarity: Literal["dot", "cosine"] = "dot",
        max_tokens: int = 128,
        **common: Unpack[ModelOptions],
    ) -> None:
        self.encoder = encoder
        super().__init__(**common)
        self.iterations = at_least("iterations", iterations, 1)
        self.candidates = at_least("candidates", candidates, 1)
        self.start = among("start", start, ("question", "mask"))
        self.similarity = among("similarity", similarity, ("dot", "cosine"))
        self.max_tokens = at_least("max_tokens", max_tokens, 2)
        self.box = as_white_box(encoder, self.similarity, self.max_tokens)

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        bodies = yield from claims(self, target, count)
        box = self.box
        direction = question_vectors(box, [target.question])[0]
        poisons = []
        for i, claim in enumerate(bodies):
            meter = Meter(claim.calls)
            head = (box.tokens(f"{target.question}.") if self.start == "question" else [box.mask] * 30)[
                : box.window - 1
            ]
            flipped = flip(
                box,
                head,
                claim.text,
                direction,
                self.rng(target, i),
                meter,
                iterations=self.iterations,
                candidates=self.candidates,
            )
            gained = flipped.after > flipped.before
            reason = "" if gained else f"no step raised the score {flipped.before:.4f} of the finished text"
            poisons.append(
                self.poison(
                    target,
                    i,
                    f"{flipped.text} {claim.text}",
                    reason=reason,
                    meter=meter,
                    source=claim.source,
                    score_before=round(flipped.before, 6),
                    score_after=round(flipped.after, 6),
                    accepted=flipped.accepted,
                )
            )
        return poisons


def _join_text(box: WhiteBox, head: list[int], body: str) -> str:
    return f"{box.text(head)} {body}"

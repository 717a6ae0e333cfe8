"""Short texts that state an answer, as attackers, pages of questions and search engines write them.

The passages of the data are long and true. A reader also meets templates around a false answer, corrections of "older
sources", one line that answers a question, a single sentence. The templates are those of attacks.
"""

from __future__ import annotations

import numpy as np

from benchmarks.training.reader_texts import SENTENCE, Pair, occurrences, rival_of
from unpoison.core.registry import create
from unpoison.errors import InputError
from unpoison_lab.attacks.base import Target

__all__ = ["written"]

ATTACKS = (
    "poisonedrag:mode=template,prefix=false",
    "disperse",
    "diverse",
    "benchmarks.training.attacks:CorruptRag",
    "benchmarks.training.attacks:AuthChain",
    "paraphrase",
)

LINES = ("{question}? {answer}.", "Q: {question}? A: {answer}", "{question}\n{answer}", "The answer is {answer}.",
         "{answer}.", "FAQ: {question}? - {answer}", "{question}: {answer}", "It is {answer}.")  # fmt: skip
"""Pages of questions and replies; {question} comes without its mark."""


def written(pairs: list[Pair], others: list[Pair], rng: np.random.Generator) -> list[Pair]:
    """One text for each pair that has an answer: half by an attack, the others short and as they were."""
    texts = []
    for pair in pairs:
        chance = rng.random()
        text = _attack(pair, others, rng) if chance < 0.5 else _line(pair, others, rng) if chance < 0.7 else None
        texts.append(text or _sentence(pair))
    return texts


def _attack(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair | None:
    """A text that an attack writes for another answer of the same kind."""
    wrong = rival_of(pair, others, rng)
    if wrong is None:
        return None
    attack = create("attacks", ATTACKS[int(rng.integers(len(ATTACKS)))], seed=int(rng.integers(1000)))
    try:
        text = attack.craft(Target("target", pair.question, (pair.answer,), wrong, ()), 1)[0].text
    except InputError:
        return None
    spans = occurrences(text, [wrong])
    return Pair(pair.question, text, spans, "written") if spans else None


def _line(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair:
    """One line with the answer, the right one or another."""
    answer = (rival_of(pair, others, rng) if rng.random() < 0.5 else None) or pair.answer
    form = LINES[int(rng.integers(len(LINES)))]
    text = form.format(question=pair.question.strip().rstrip("?. "), answer=answer)
    start = text.rindex(answer)
    return Pair(pair.question, text, ((start, start + len(answer)),), "written")


def _sentence(pair: Pair) -> Pair:
    """The sentence that holds the answer, alone."""
    sentence = next((s for s in SENTENCE.split(pair.text) if occurrences(s, [pair.answer])), pair.text)
    return Pair(pair.question, sentence, occurrences(sentence, [pair.answer]), "written")

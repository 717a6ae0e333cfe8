"""What is hidden in a passage changes nothing for any defense: it reads what a model reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.test_promises import QUERY, SHARKS, make
from unpoison import Defense, Guard, Passage, Query, RagDefender, Screening
from unpoison.core import registry
from unpoison.errors import InputError
from unpoison.models import ScriptedGenerator
from unpoison.text.canonical import MAX_TEXT_CHARS
from unpoison_lab.evaluation.datasets import load

TWINS = str.maketrans("aeopcxyAEHKMOPT", "аеорсхуАЕНКМОРТ")
WIDE = {i: i + 0xFEE0 for i in range(0x21, 0x7F)}
BOLD = {ord(first) + i: start + i for first, start in (("A", 0x1D400), ("a", 0x1D41A)) for i in range(26)}


def inside(sign: str) -> Callable[[str], str]:
    return lambda text: " ".join(w[: len(w) // 2] + sign + w[len(w) // 2 :] for w in text.split(" "))


DISGUISES: dict[str, Callable[[str], str]] = {
    "zero-width space": inside("\u200b"),
    "zero-width joiner": inside("\u200d"),
    "soft hyphen": inside("\u00ad"),
    "word joiner": inside("\u2060"),
    "grapheme joiner": inside("\u034f"),
    "variation selector": inside("\ufe0f"),
    "bidi override": inside("\u202e"),
    "tag character": inside("\U000e0078"),
    "overlay": inside("\u0338"),
    "look-alikes": lambda text: text.translate(TWINS),
    "fullwidth": lambda text: text.translate(WIDE),
    "mathematical bold": lambda text: text.translate(BOLD),
    "tags": inside("<b></b>"),
    "comments": inside("<!-- x -->"),
    "entities": lambda text: "".join(f"&#{ord(c)};" if c.isalpha() else c for c in text),
    "white space": lambda text: "\n \n" + text.replace(" ", " \u00a0\t "),
}


@pytest.fixture(params=registry.names("defenses"))
def defense(request: pytest.FixtureRequest) -> Defense:
    return make(request.param)


def decision(screening: Screening) -> list[tuple[bool, float, int | None]]:
    return [(v.kept, v.score, v.rank) for v in screening.verdicts]


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES.keys())
def test_hiding_changes_no_verdict(defense: Defense, disguise: Callable[[str], str]) -> None:
    honest = defense.screen(QUERY, SHARKS)
    hidden = defense.screen(QUERY, [disguise(text) for text in SHARKS])
    assert decision(hidden) == decision(honest)
    assert [p.text for p in hidden.passages] == [disguise(text) for text in SHARKS]


def test_one_that_hides_among_honest_ones_is_named(defense: Defense) -> None:
    given = [Passage(text, original=i) for i, text in enumerate(SHARKS)]
    given[3] = Passage(inside("\u200b")(SHARKS[3]), id="x")
    screening = defense.screen(QUERY, given)
    assert screening.passages == tuple(given)
    assert all(a is b for a, b in zip(screening.passages, given))
    if getattr(defense, "mode", None) != "reference":
        words = len(SHARKS[3].split())
        assert any(
            note.startswith("passage 3 hides ") and "invisible characters inside words" in note
            for note in screening.evidence.notes
        ), words


def test_a_title_is_read(defense: Defense) -> None:
    """Title and text are one: the same words give the same verdict wherever the title ends."""
    whole = [f"{text.split(' ', 3)[0]}\n{text}" for text in SHARKS]
    apart = [{"title": text.split("\n", 1)[0], "text": text.split("\n", 1)[1] + " "} for text in whole]
    apart = [a if not a["text"].startswith(a["title"]) else {"text": w} for a, w in zip(apart, whole)]
    assert decision(defense.screen(QUERY, apart)) == decision(defense.screen(QUERY, whole))


def vectors(n: int) -> list[Any]:
    return list(np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32))


def test_the_embedding_of_what_hides_is_not_used(defense: Defense) -> None:
    """Forging a vector does not help who hides: whatever it is, the decision is the same."""
    *vectors_made, query_vector = vectors(len(SHARKS) + 1)
    decisions = []
    for forged in (np.zeros(5, np.float32), vectors_made[3], vectors_made[0]):
        given = [Passage(text, embedding=v) for text, v in zip(SHARKS, vectors_made)]
        given[3] = Passage(inside("\u200b")(SHARKS[3]), embedding=forged)
        screening = defense.screen(Query(QUERY, query_vector), given)
        told = [note for note in screening.evidence.notes if "1 given embedding is not used" in note]
        assert len(told) == (defense.models.encoder is not None)
        decisions.append(decision(screening))
    if defense.models.encoder is not None:
        assert decisions[0] == decisions[1] == decisions[2]


def test_what_comes_from_outside_can_be_encoded_here(defense: Defense) -> None:
    if defense.models.encoder is None:
        pytest.skip("it compares no vectors")
    defense = defense.with_shell(trust_embeddings=False)
    given = [Passage(text, embedding=v) for text, v in zip(SHARKS, vectors(len(SHARKS)))]
    screening = defense.screen(QUERY, given)
    assert decision(screening) == decision(defense.screen(QUERY, SHARKS))
    assert (
        "8 given embeddings are not used, for embeddings from outside are not trusted" in screening.evidence.notes[-1]
    )


class TwoDimensions:
    name = "two dimensions"

    def encode(self, texts: Any, /) -> Any:
        return np.array([[len(text), text.count("a") + 1] for text in texts], np.float32)


def test_who_hides_cannot_stop_the_screening_where_dimensions_differ() -> None:
    given = [Passage(text, embedding=v) for text, v in zip(SHARKS, vectors(len(SHARKS)))]
    given[3] = Passage(inside("\u200b")(SHARKS[3]), embedding=given[3].embedding)
    assert len(RagDefender(encoder=TwoDimensions()).screen(QUERY, given).verdicts) == 8
    given[3] = Passage(SHARKS[3])
    with pytest.raises(InputError, match="dimensions differ"):
        RagDefender(encoder=TwoDimensions()).screen(QUERY, given)


def test_the_released_codes_read_raw_texts() -> None:
    seen: list[str] = []

    class Watching(TwoDimensions):
        def encode(self, texts: Any, /) -> Any:
            seen.extend(texts)
            return super().encode(texts)

    raw = [inside("\u200b")(text) for text in SHARKS]
    screening = RagDefender(encoder=Watching(), mode="reference").screen(QUERY, raw)
    assert seen == raw
    assert not any("hides" in note for note in screening.evidence.notes)


def test_a_model_is_shown_the_reading() -> None:
    model = ScriptedGenerator(lambda prompt: "|".join(prompt.passages))
    given = [{"title": "A ti\u200btle", "text": "The &#82;ome of <b>old</b>."}, *SHARKS[:2]]
    answer = Guard(generator=model, threshold=1).answer("whe\u200bre is it", given)
    assert answer.text.startswith("A title\nThe Rome of old.|")
    assert answer.screening.kept[0].text == "The &#82;ome of <b>old</b>."
    assert answer.screening.query == "whe\u200bre is it"


def test_guard_names_what_hides_in_its_reason() -> None:
    screening = Guard().screen(QUERY, [inside("\u200b")(SHARKS[0]), *SHARKS[1:]])
    assert "hides 13 invisible characters inside words" in str(screening.verdicts[0].reason).replace("14", "13")
    assert "hides" not in str(screening.verdicts[1].reason)


def test_what_lies_beyond_the_bound_is_neither_judged_nor_sent() -> None:
    model = ScriptedGenerator(lambda prompt: str(max(map(len, prompt.passages))))
    given = [*SHARKS[:2], "The shark swims. " * (MAX_TEXT_CHARS // 16) + "Levi's Stadium."]
    answer = Guard(generator=model, threshold=1).answer(QUERY, given)
    assert int(answer.text) <= MAX_TEXT_CHARS
    assert any("passage 2 hides" in note and "beyond what is read" in note for note in answer.screening.evidence.notes)


def test_passages_that_the_encoder_does_not_read_whole_are_named() -> None:
    class Brief(TwoDimensions):
        longest = 20

    notes = RagDefender(encoder=Brief()).screen(QUERY, [*SHARKS, "shark " * 21]).evidence.notes
    assert any("reads 20 tokens" in note and note.endswith("of passage 8") for note in notes)


@pytest.mark.shared_data
@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES.keys())
def test_hiding_changes_no_verdict_on_real_passages(shared_data: Path, disguise: Callable[[str], str]) -> None:
    guard = Guard()
    for example in load(shared_data / "nq_poisoned.jsonl").examples[:60:10]:
        texts = [Passage(labelled.passage.text).reading for labelled in example.passages][:12]
        texts = [text for text in texts if text.isascii()]  # the disguises are made for ASCII letters
        honest, hidden = (guard.screen(example.question, one) for one in (texts, [disguise(t) for t in texts]))
        assert decision(hidden) == decision(honest)

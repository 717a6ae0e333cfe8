"""REPLUG and Self-RAG on worked examples, on doubles that spell, and below every screening defense."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.errors import OptionError
from unpoison.models import ExtractiveReader
from unpoison.models.prompts import Prompt
from unpoison_lab.architectures.replug import Replug, mixture, weights
from unpoison_lab.architectures.self_rag import FRAME, RELEVANCE, SUPPORT, UTILITY, SelfRag, best_answer, read_critique
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.scenarios import Scenario

WORDS = ["<end>", "Paris", "Lyon", "Rome", *FRAME, *RELEVANCE, *SUPPORT, *UTILITY, "I", "don't", "know"]


class Speller:
    """A model over a few words. It says the first of its cities that the passage names, each with a given certainty."""

    name = "speller"
    ends = frozenset({0})

    def __init__(self, sure: float = 0.9, *, reflects: bool = False) -> None:
        self.sure, self.reflects = sure, reflects
        self.requests: list[tuple[int, tuple[int, ...]]] = []
        self.prompts: list[Prompt] = []

    def tokens(self, text: str, /) -> list[int]:
        """Plain text spells no reflection token, as with a real codec."""
        return [WORDS.index(word) for word in text.replace(".", " ").split() if word in ("Paris", "Lyon", "Rome")]

    def text(self, tokens: Sequence[int], /) -> str:
        return " ".join(WORDS[token] for token in tokens)

    def token_id(self, name: str) -> int | None:
        return WORDS.index(name) if self.reflects and name in WORDS else None

    def next_token(self, prompts: Sequence[Prompt], tokens: Sequence[int], /) -> NDArray[np.float64]:
        self.requests.append((len(prompts), tuple(tokens)))
        self.prompts += prompts
        return np.array([self._row(prompt, list(tokens)) for prompt in prompts])

    def _row(self, prompt: Prompt, tokens: list[int]) -> NDArray[np.float64]:
        close = WORDS.index("</paragraph>")
        if close in tokens:
            continuation = tokens[tokens.index(close) + 1 :]
            city = next((t for t in tokens[2:] if 1 <= t <= 3), 1)
            support = "[Fully supported]" if city == 1 else "[No support / Contradictory]"
            script = [WORDS.index("[Relevant]"), city, WORDS.index(support), WORDS.index("[Utility:5]"), 0]
            return self._sure(script[len(continuation)])
        city = next((i for i in (1, 2, 3) if prompt.passages and WORDS[i] in prompt.passages[0]), 3)
        return self._sure([city, 0][min(len(tokens), 1)])

    def _sure(self, token: int) -> NDArray[np.float64]:
        row = np.full(len(WORDS), (1 - self.sure) / (len(WORDS) - 1))
        row[token] = self.sure
        return np.log(row)

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        return Reply("Rome")


class Towards:
    """An encoder by hand: the cosine of question and passage is the number that the passage ends with."""

    name = "towards"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        shares = [float(text.rsplit(" ", 1)[-1]) if text[-1].isdigit() else 1.0 for text in texts]
        return np.array([[share, (1 - share**2) ** 0.5] for share in shares], np.float32)


def test_the_weights_are_the_softmax_of_the_similarities() -> None:
    assert weights([0.5, 0.5]).tolist() == [0.5, 0.5]
    found = weights([1.0, 0.0])
    assert found[0] == pytest.approx(np.e / (np.e + 1))
    assert weights([1.0, 0.0], 1000)[0] == pytest.approx(0.5, abs=1e-3)


def test_the_mixture_weighs_probabilities_not_logarithms() -> None:
    logs = np.log([[0.9, 0.1], [0.2, 0.8]])
    assert mixture(logs, np.array([0.25, 0.75])) == pytest.approx([0.375, 0.625])


def test_replug_follows_the_passages_that_were_retrieved_best() -> None:
    """One passage against two: their weights decide, not their number."""
    passages = ["Paris it is 1.0", "Lyon it is 0.1", "Lyon it is 0.1"]
    near = Replug(Speller(), encoder=Towards(), temperature=0.1).answer("which?", passages)
    assert near.text == "Paris"
    assert near.details["weights"][0] > 0.99
    far = Replug(Speller(), encoder=Towards(), temperature=100).answer("which?", passages)
    assert far.text == "Lyon"


def test_replug_reads_each_passage_alone_and_one_token_at_a_time() -> None:
    model = Speller()
    Replug(model, encoder=Towards(), keep=2).answer("which?", ["Paris 0.9", "Paris 0.8", "Lyon 0.7"])
    assert model.requests == [(2, ()), (2, (1,))]
    assert [len(prompt.passages) for prompt in model.prompts] == [1, 1, 1, 1]


def test_replug_needs_next_token_probabilities() -> None:
    with pytest.raises(OptionError, match="next-token"):
        Replug(ExtractiveReader()).answer("which?", ["Paris"])


def test_replug_ends_at_its_length() -> None:
    answer = Replug(Speller(), encoder=Towards(), max_tokens=1).answer("which?", ["Paris 0.9"])
    assert (answer.text, answer.details["finish"]) == ("Paris", "length")


def test_self_rag_with_reflection_tokens_takes_the_supported_answer() -> None:
    model = Speller(0.99, reflects=True)
    answer = SelfRag(model).answer("which?", ["Lyon it is.", "Paris it is."])
    assert answer.text == "Paris"
    first, second = answer.details["scores"]
    assert second == pytest.approx(1 + 1 + 0.5, abs=0.05)
    assert first == pytest.approx(1 + 0 + 0.5, abs=0.05)


def test_the_passage_stands_in_the_reply_in_the_published_form() -> None:
    model = Speller(reflects=True)
    SelfRag(model).answer("which?", ["Lyon [Fully supported] [Utility:5] </paragraph>"])
    prompt, (_, tokens) = model.prompts[0], model.requests[0]
    assert prompt.text().strip() == "### Instruction:\nwhich?\n\n### Response:"
    assert [WORDS[token] for token in tokens] == ["[Retrieval]", "<paragraph>", "Lyon", "</paragraph>"]


def test_reflection_tokens_that_are_not_there_are_asked_in_words_or_refused() -> None:
    class Judge:
        name = "judge"

        def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
            passage = prompt.passages[0]
            if prompt.task == "answer":
                return Reply("Paris" if "Paris" in passage else "Lyon")
            good = "Paris" in passage
            return Reply(f"Relevant: yes\nSupported: {'fully' if good else 'no'}\nUtility: {5 if good else 2}")

    answer = SelfRag(Judge()).answer("which?", ["Lyon it is", "Paris it is"])
    assert answer.text == "Paris"
    assert answer.details["scores"] == [1 + 0 - 0.25, 1 + 1 + 0.5]
    with pytest.raises(OptionError, match="reflection tokens"):
        SelfRag(Judge(), critique="tokens").answer("which?", ["Paris"])


def test_equal_answers_add_up_and_ties_go_to_the_first() -> None:
    assert best_answer(["Lyon", "Paris", "paris."], [1.5, 1.0, 1.0]) == "Paris"
    assert best_answer(["Lyon", "Paris"], [1.0, 1.0]) == "Lyon"


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ("Relevant: yes\nSupported: partially\nUtility: 4", (1.0, 0.5, 0.5)),
        ("**Relevant**: no\n**Supported**: fully\nUtility - 1", (0.0, 1.0, -1.0)),
        ("Utility: 9\nSupported: maybe", (0.0, 0.0, -1.0)),
        ("", (0.0, 0.0, -1.0)),
    ],
)
def test_a_critique_in_words_is_read_and_what_it_lacks_is_worst(reply, scores) -> None:
    critique = read_critique("a", reply)
    assert (critique.relevance, critique.support, critique.utility) == scores


@pytest.mark.parametrize(
    ("defense", "architecture"),
    [("vanilla", "replug"), ("grada:keep=2", "self-rag"), ("ragdefender", "blended"), ("trustrag:stages=1", "replug"),
     ("guard", "self-rag")],
)  # fmt: skip
def test_a_screening_defense_composes_with_an_architecture(tmp_path: Path, defense, architecture) -> None:
    scenario = Scenario(
        "sample", attack="poisonedrag", poisons=1, policy="retrieve", defense=defense, generator="double",
        architecture=architecture, limit=1, k=4,
    )  # fmt: skip
    (cell,) = Runner(tmp_path, [scenario], models={"double": Speller()}).run().cells
    (record,) = cell.records
    assert record.error is None
    assert record.answer


def test_an_architecture_uses_the_screening_of_a_defense_that_would_answer_itself(tmp_path: Path) -> None:
    model = Speller()
    scenario = Scenario("sample", defense="trustrag", generator="double", architecture="replug", limit=1, k=3)
    (cell,) = Runner(tmp_path, [scenario], models={"double": model}).run().cells
    assert cell.records[0].error is None
    assert model.requests


def test_scenarios_refuse_what_an_architecture_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="give a generator"):
        Scenario("sample", architecture="replug")
    with pytest.raises(OptionError, match="retrieves nothing"):
        Scenario("sample", architecture="blended", policy="prepend", generator="extractive")
    with pytest.raises(OptionError, match="architecture must be one of"):
        Scenario("sample", architecture="agentic")
    scenario = Scenario("sample", architecture="replug", generator="extractive", limit=1)
    (cell,) = Runner(tmp_path, [scenario]).run().cells
    assert "next-token" in (cell.error or "")


def test_blended_is_hybrid_retrieval_and_attacks_aim_at_its_encoder() -> None:
    blended = Scenario("sample", architecture="blended", policy="retrieve", encoder="minilm", generator="extractive")
    assert blended.retriever == "hybrid:minilm"
    assert blended.target_encoder == "minilm"
    assert Scenario("sample", policy="retrieve", retriever="hybrid").retriever == "hybrid:lexical"
    assert Scenario.from_dict(blended.to_dict()) == blended

"""RobustRAG's secure decoding: the worked example, the loop on a scripted double and on a real tiny model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ranges import assert_range
from unpoison.core.answers import Reply
from unpoison.defenses.robustrag_decoding import RobustRagDecoding, _Decoded, secure_token
from unpoison.errors import InputError, OptionError
from unpoison.models import ExtractiveReader
from unpoison.models.prompts import Prompt

ROWS = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])
ALONE = np.array([[0.0, 0.0, 1.0]])
WORDS = ["<end>", "I", "don't", "know", "Paris", "Lyon", "Rome", "France"]


class Spelled:
    """A model over eight words that says, for each passage, a sentence with a given probability of every word."""

    name = "spelled"

    def __init__(self, reply_of: Callable[[str], tuple[str, float]]) -> None:
        self.reply_of = reply_of
        self.requests: list[tuple[int, tuple[int, ...]]] = []

    @property
    def ends(self) -> frozenset[int]:
        return frozenset({0})

    def tokens(self, text: str, /) -> list[int]:
        return [WORDS.index(word) for word in text.split() if word in WORDS]

    def text(self, tokens: Sequence[int], /) -> str:
        return " ".join(WORDS[token] for token in tokens)

    def next_token(self, prompts: Sequence[Prompt], tokens: Sequence[int], /) -> NDArray[np.float64]:
        self.requests.append((len(prompts), tuple(tokens)))
        rows = []
        for prompt in prompts:
            sentence, sure = self.reply_of(prompt.passages[0] if prompt.passages else "")
            words = [*sentence.split(), "<end>"]
            row = np.full(len(WORDS), (1 - sure) / (len(WORDS) - 1))
            row[WORDS.index(words[min(len(tokens), len(words) - 1)])] = sure
            rows.append(np.log(row))
        return np.array(rows).reshape(len(prompts), len(WORDS))

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        raise AssertionError("joint decoding generates nothing")


def test_the_worked_example() -> None:
    both = np.vstack([ROWS, ALONE])
    step = secure_token(both, 0.0)
    assert (step.token, step.lead) == (0, pytest.approx(0.1))
    assert secure_token(both, 0.2).token == 2, "the token without retrieval"


def test_a_tie_takes_the_token_without_retrieval() -> None:
    assert secure_token(np.array([[0.5, 0.5, 0], [0, 0, 1]]), 0.0) == (2, 0.0)


def test_unwanted_tokens_are_not_chosen() -> None:
    assert secure_token(np.vstack([ROWS, ALONE]), 0.0, unwanted=[0]).token == 1


def test_the_majority_is_spelled_out_together() -> None:
    model = Spelled(lambda text: ("Lyon France", 0.9) if "poison" in text else ("Paris France", 0.9))
    answer = RobustRagDecoding(model).answer("q", ["a", "b", "poison"])
    assert answer.text == "Paris France"
    assert answer.details["leads"] == pytest.approx([0.9 * 2 + 0.1 / 7 - 0.9 - 0.2 / 7, 2.657, 2.657], abs=1e-3)
    assert len([call for call in answer.calls if call.kind == "generate"]) == 0
    assert model.requests[:3] == [(3, ()), (3, (1,)), (3, (1, 2))], "first P(I don't know) of each passage"
    assert model.requests[3:] == [(4, ()), (4, (4,)), (4, (4, 7))], "then k + 1 rows, with a shared reply"


def test_passages_that_abstain_are_left_out_and_alone_nothing_is_said() -> None:
    model = Spelled(lambda text: ("I don't know", 0.999) if "off" in text else ("Paris", 0.9))
    answer = RobustRagDecoding(model).answer("q", ["off topic", "on topic"])
    assert answer.text == "Paris"
    assert str(answer.screening.verdicts[0].reason) == "P(I don't know) = 1.00: left out"
    assert answer.screening.dropped == ()
    assert RobustRagDecoding(model).answer("q", ["off topic"] * 3).abstained
    assert RobustRagDecoding(model).answer("q", []).abstained


def test_a_reply_does_not_begin_with_a_refusal() -> None:
    model = Spelled(lambda text: ("I don't know", 0.6) if text else ("Rome", 0.9))
    assert RobustRagDecoding(model, max_tokens=1).answer("q", ["a"]).text == "Rome", "without I nothing else leads"


def test_a_large_eta_falls_back_to_memory() -> None:
    model = Spelled(lambda text: ("Paris", 0.9) if text else ("Rome", 0.9))
    assert RobustRagDecoding(model, eta=4).answer("q", ["a", "b"]).text == "Rome"
    assert RobustRagDecoding(model, eta=1).answer("q", ["a", "b"]).text == "Paris"


def test_the_reply_is_bounded() -> None:
    model = Spelled(lambda text: ("Paris " * 50, 0.9))
    answer = RobustRagDecoding(model, max_tokens=4).answer("q", ["a"])
    assert answer.text == "Paris Paris Paris Paris"
    assert answer.details["finish"] == "length"
    with pytest.raises(InputError, match="at most 100 passages"):
        RobustRagDecoding(model).answer("q", ["a"] * 101)


def test_it_needs_probabilities() -> None:
    with pytest.raises(OptionError, match="hf:NAME_OR_PATH"):
        RobustRagDecoding(ExtractiveReader()).answer("q", ["a"])
    assert RobustRagDecoding(ExtractiveReader()).screen("q", ["a"]).kept_indices == (0,)


@pytest.mark.needs("torch")
def test_with_a_real_model(tmp_path: Path) -> None:
    from tiny_language_model import save_language_model
    from unpoison.models import TransformersGenerator

    model = TransformersGenerator(save_language_model(tmp_path))
    defense = RobustRagDecoding(model, max_tokens=5)
    first, second = (defense.answer("Who?", ["Ann.", "Bob."]) for _ in range(2))
    assert first.text == second.text
    assert len(first.details["leads"]) == 5
    assert {call.kind for call in first.calls} == {"next token"}
    assert defense._refusal_starts(model), "the tokens that no reply begins with are known to its tokenizer"


def test_options_have_their_range() -> None:
    model = Spelled(lambda text: ("Paris", 0.9))
    for name, least, most in (
        ("eta", 0.0, 1e6),
        ("temperature", 1e-3, 100.0),
        ("refusal", 0.0, 1.0),
        ("max_tokens", 1, 4096),
    ):
        assert_range(RobustRagDecoding, name, least, most, generator=model)


@pytest.mark.parametrize(
    ("lead", "alone", "moved", "stands"),
    [
        (5.0, 0.0, 2.0, False),  # lead - eta > moved
        (5.1, 0.0, 2.0, True),
        (1.0, 1.0, 2.0, True),  # lead + moved <= eta, and the token without retrieval leads by itself
        (1.1, 1.0, 2.0, False),
        (1.0, 0.0, 2.0, False),
    ],
)
def test_a_token_stands_where_no_moved_vote_changes_it(lead: float, alone: float, moved: float, stands: bool) -> None:
    defense = RobustRagDecoding(Spelled(lambda text: ("Paris", 0.9)), eta=3.0)
    decoded = _Decoded((4,), (lead,), "stop", (0, 1, 2), np.zeros(3), (alone,))
    assert defense._stands(decoded, moved) is stands

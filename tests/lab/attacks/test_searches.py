import numpy as np
import pytest

from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.attacks.adversarial_decoding import AdversarialDecoding, readable_score
from unpoison_lab.attacks.base import Target
from unpoison_lab.attacks.disperse import mean_pairwise, select_diverse
from unpoison_lab.attacks.jamming import REFUSALS, Jamming


@pytest.mark.parametrize(("cosine", "natural", "score"), [(0.8, 0.3, 0.9), (0.8, -0.2, 0.4), (1.5, 0, 1), (-1, 0, 0)])
def test_readability_can_only_be_bought_so_far(cosine, natural, score):
    assert readable_score(cosine, natural) == pytest.approx(score)


def test_a_lead_brings_the_falsehood_closer(target, encoder):
    (poison,) = AdversarialDecoding(encoder=encoder).craft(target, 1)
    assert poison.reached
    assert poison.meta["score_after"] > poison.meta["score_before"]
    assert poison.text.endswith(target.texts[0])
    assert poison.budget.llm_calls == 0


def test_unreadable_proposals_lose(target, encoder):
    class Proposer:
        def propose(self, instruction, texts, /, *, count, mass):
            return [["what is capital france zq", "what is capital"] for _ in texts]

        def naturalness(self, texts, /):
            return np.array([-1.0 if "zq" in text else 0.5 for text in texts])

    (poison,) = AdversarialDecoding(lm=Proposer(), steps=1, encoder=encoder).craft(target, 1)
    assert poison.text.startswith("what is capital ")
    assert "zq" not in poison.text
    assert poison.budget.llm_calls == 3


def test_the_proxy_costs_nothing(target, encoder):
    for key, refusal in REFUSALS.items():
        (poison,) = Jamming(refusal=key, encoder=encoder).craft(target)
        assert poison.text == f"{target.question}. {refusal}."
        assert poison.meta["answers"] == [refusal, "I don't know", "I do not know"]
        assert poison.budget.llm_calls == 0


def victim(prompt):
    """Refuses as soon as the word unknown is in what it reads."""
    return "I don't know" if any("unknown" in passage for passage in prompt.passages) else "Paris, the city"


def test_the_search_jams_a_victim_within_its_budget(target, encoder):
    attack = Jamming(generator=ScriptedGenerator(victim), encoder=encoder, tokens=5, calls=400, candidates=40)
    (poison,) = attack.craft(target)
    assert poison.reached
    assert "unknown" in poison.text
    assert poison.budget.llm_calls <= 400
    assert poison == attack.craft(target)[0]


def test_a_document_that_is_not_retrieved_costs_no_call(encoder):
    context = ("who wrote emma",) * 5
    target = Target("x", "who wrote emma", ("Jane Austen",), context=context)
    attack = Jamming(generator=ScriptedGenerator("Jane"), encoder=encoder, top=5, patience=3)
    (poison,) = attack.craft(target)
    assert poison.budget.llm_calls == 0
    assert not poison.reached


def test_the_dispersion_of_the_worked_example():
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]])
    similarity = vectors @ vectors.T
    assert mean_pairwise(similarity) == pytest.approx(0.466667, abs=1e-6)
    assert select_diverse(similarity, [True] * 3, 2) == [0, 2]
    assert select_diverse(similarity, [True, True, False], 3) == [0, 1]
    assert select_diverse(similarity, [False] * 3, 2) == []
    assert select_diverse(similarity, [False, True, True], 1) == [1]
    assert mean_pairwise(np.ones((1, 1))) == 0

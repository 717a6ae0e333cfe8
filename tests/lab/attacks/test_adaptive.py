import numpy as np
import pytest

from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.attacks.base import Target, contains_answer
from unpoison_lab.attacks.disperse import Disperse, Mixed
from unpoison_lab.attacks.multi_cluster import MultiCluster, decoys
from unpoison_lab.attacks.paraphrase import Diverse, Paraphrase, Synonym
from unpoison_lab.attacks.rewriting import paraphrase_text, with_synonyms
from unpoison_lab.attacks.tan import Tan

TEXT = "The famous author wrote the book in 1912. Several accounts confirm that the first edition was published here."


def test_synonyms_leave_question_and_answer_alone():
    keep = ["who is the famous author", "first edition"]
    replaced = with_synonyms(TEXT, keep, np.random.default_rng(0), 1.0)
    assert replaced.replaced > 0
    assert replaced.text != TEXT
    for word in ("famous", "author", "first", "edition"):
        assert word in replaced.text
    for word in ("wrote", "book", "accounts", "published"):
        assert word not in replaced.text.split()
    assert with_synonyms(TEXT, [], np.random.default_rng(0), 0.0).text == TEXT


def test_the_synonym_attack_keeps_the_answer_and_counts(bare):
    for poison_made in Synonym(rate=0.3).craft(bare, 5):
        assert contains_answer(poison_made.text, "Charlotte Bronte")
        assert "wrote" in poison_made.text or "Charlotte" in poison_made.text
        assert poison_made.reached == (poison_made.meta["replaced"] > 0)


def test_paraphrases_change_the_text_and_keep_the_answer(target):
    for poison_made, text in zip(Paraphrase().craft(target, 3), target.texts, strict=True):
        assert poison_made.text != text
        assert contains_answer(poison_made.text, "Lyon")
    assert paraphrase_text("", ["x"], np.random.default_rng(0)) == ""


def test_a_paraphrase_that_lost_the_answer_is_asked_for_again(target):
    generator = ScriptedGenerator(["It is elsewhere.", "'Lyon has the seat.'"])
    (poison,) = Paraphrase(generator=generator).craft(target)
    assert poison.text == "Lyon has the seat."
    assert poison.reached
    assert poison.budget.llm_calls == 2
    (lost,) = Paraphrase(generator=ScriptedGenerator("no"), trials=2).craft(target)
    assert not lost.reached
    assert lost.budget.llm_calls == 2


@pytest.mark.parametrize("kind", [Disperse, Mixed])
def test_dispersion_lowers_the_mutual_cosine(kind, bare, encoder):
    few = kind(encoder=encoder, pool=1).craft(bare, 4)
    many = kind(encoder=encoder, pool=8).craft(bare, 4)
    assert len({p.text for p in many}) == 4
    assert many[0].meta["mean_mutual_cosine"] < few[0].meta["mean_mutual_cosine"]
    assert all(p.reached for p in many)
    assert [p.budget.encoder_passes > 0 for p in many] == [True, False, False, False]


def test_every_diverse_text_has_its_own_style(bare):
    generator = ScriptedGenerator("Charlotte Bronte did.")
    poisons = Diverse(generator=generator).craft(bare, 8)
    assert len({p.meta["style"] for p in poisons}) == 8
    assert all(p.budget.llm_calls == 1 for p in poisons)
    assert len({p.text for p in Diverse().craft(bare, 8)}) == 8
    assert not Diverse(generator=ScriptedGenerator("")).craft(bare)[0].reached


def test_clusters_share_an_answer_and_any_answer_counts():
    target = Target("x", "where is it", ("Paris",), "Lyon", alternatives=("Lille", "Paris", "Nice", "Lyon"))
    attack = MultiCluster(clusters=3)
    poisons = attack.craft(target, 6)
    assert [p.meta["cluster"] for p in poisons] == [0, 0, 1, 1, 2, 2]
    assert attack.target_answers(target) == ("Lyon", "Lille", "Nice")
    assert all(p.reached and contains_answer(p.text, p.meta["claims"]) for p in poisons)
    assert poisons[0].meta["answers"] == ["Lyon", "Lille", "Nice"]


def test_a_generator_adds_wrong_answers():
    generator = ScriptedGenerator({"Already listed": "- Lille\n- Paris\n\n- Nice", "Variant": "Lyon Lille Nice"})
    poisons = MultiCluster(generator=generator).craft(Target("x", "q", ("Paris",), "Lyon"), 3)
    assert [p.meta["claims"] for p in poisons] == ["Lyon", "Lille", "Nice"]
    assert [p.budget.llm_calls for p in poisons] == [2, 1, 1]


def test_decoys_are_other_numbers_persons_or_places():
    rng = np.random.default_rng(0)
    years = decoys("when was it built", "in 1912 or so", 5, rng)
    assert len(set(years)) == 5
    assert all(1850 < int(year.split()[1]) < 1960 and year != "in 1912 or so" for year in years)
    assert len(decoys("who wrote it", "Some Body", 3, rng)) == 3
    assert decoys("what colour is it", "green", 3, rng) == []


def test_tan_without_a_generator_corrupts_the_golden_passage(target):
    poisons = Tan(prefix=False).craft(target, 2)
    assert poisons[0].text == target.gold[0].replace("Paris", "Lyon")
    assert contains_answer(poisons[1].text, "Lyon")
    assert all(p.reached and not contains_answer(p.text, "Paris") for p in poisons)


def test_tan_refuses_texts_with_the_right_answer(target):
    generator = ScriptedGenerator(["Paris of course.", "Somewhere else."])
    (poison,) = Tan(generator=generator, prefix=False).craft(target)
    assert poison.text == "Somewhere else."
    assert poison.budget.llm_calls == 2
    (stubborn,) = Tan(generator=ScriptedGenerator("Paris."), trials=2).craft(target)
    assert "gives the right answer 'Paris'" in stubborn.meta["reason"]

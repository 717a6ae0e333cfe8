import pytest

from unpoison.bench.attacks.base import Target, contains_answer
from unpoison.bench.attacks.defense_aware import DefenseAware, Draft, ScreenedTrial, first_drafts, random_edit
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError
from unpoison.types import Screening


class Dislikes(Defense):
    """Drops every passage that holds a phrase; trusts short passages more."""

    name = "dislikes"

    def __init__(self, phrase):
        super().__init__()
        self.phrase = phrase

    def screening(self, query, passages):
        yield from ()
        kept = [i for i, p in enumerate(passages) if self.phrase not in p.text]
        scores = [-len(p.text) for p in passages]
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=["x"] * len(passages))


def test_the_attack_finds_what_the_defense_does_not_look_for(target, encoder):
    attack = DefenseAware(Dislikes("what is the capital of france."), encoder=encoder, screens=60)
    poisons = attack.craft(target, 2)
    assert [p.meta["kept_before"] for p in poisons] == [0, 0]
    assert [p.meta["kept_after"] for p in poisons] == [2, 2]
    assert all(p.reached and contains_answer(p.text, "Lyon") for p in poisons)
    assert poisons == attack.craft(target, 2)


def test_the_budget_of_screenings_is_kept_and_counted_once(target, encoder):
    poisons = DefenseAware(Dislikes("Lyon"), encoder=encoder, screens=30).craft(target, 2)
    assert [p.budget.defense_calls for p in poisons] == [30, 0]
    assert not any(p.reached for p in poisons)
    assert poisons[0].meta["reason"] == "after 30 screenings dislikes still drops the text"


def test_texts_that_are_not_retrieved_are_reported(encoder):
    target = Target("x", "zork", ("right",), "wrong thing", context=("zork",) * 3)
    (poison,) = DefenseAware(Dislikes("nothing"), encoder=encoder, top=3, screens=10).craft(target)
    assert poison.meta["reason"] == "after 10 screenings the text is not among the best 3"


def test_without_context_there_is_nothing_to_borrow(bare, encoder):
    poisons = DefenseAware(Dislikes("who wrote emma"), encoder=encoder, screens=40).craft(bare, 2)
    assert all(p.meta["borrowed"] == 0 for p in poisons)


def test_fitness_puts_kept_texts_before_everything_else():
    nearly = ScreenedTrial((True, True), (False, False), (1.0, 1.0))
    one = ScreenedTrial((True, False), (True, False), (0.0, 0.0))
    assert one.fitness > 1 > ScreenedTrial((True,), (False,), (0.5,)).fitness
    assert nearly.fitness < 1.5


def test_a_defense_can_be_named(encoder):
    assert DefenseAware("vanilla", encoder=encoder).defense_name == "vanilla"
    with pytest.raises(OptionError, match="defense must be a Defense"):
        DefenseAware(3, encoder=encoder)


def test_first_drafts_hide_the_claim_in_clean_passages(target):
    sets = list(first_drafts(target, [Draft("Lyon is it."), Draft("It is Lyon.")]))
    assert all(len(drafts) == 2 for drafts in sets)
    assert all(contains_answer(draft.text, "Lyon") for drafts in sets for draft in drafts)
    assert not any("Paris" in draft.text for drafts in sets for draft in drafts)


def test_leads_are_rendered_as_written(target):
    assert Draft("x").render(target) == "x"
    assert Draft("x", "stop").render(target) == f"{target.question}.x"
    assert Draft("x", "question").render(target) == f"{target.question}? x"


def test_edits_never_bring_in_the_right_answer(target):
    import numpy as np

    rng, draft = np.random.default_rng(0), Draft("It is Lyon. Everybody knows it.")
    seen = set()
    for _ in range(300):
        draft = random_edit(draft, target, "A fresh start with Lyon.", rng)
        draft = Draft(draft.text[:400], draft.lead, draft.borrowed)
        seen.add(draft)
        assert "Paris" not in draft.text
    assert len(seen) > 100

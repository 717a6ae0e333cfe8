import numpy as np
import pytest

from ranges import assert_range
from unpoison.errors import OptionError
from unpoison_lab.attacks.base import Meter, Target
from unpoison_lab.attacks.hotflip import HotFlip, flip, likeliest
from unpoison_lab.attacks.phantom import Phantom

WORDS = ["a", "b", "c", "d"]


class Toy:
    """The spec's example: a text is the mean of its tokens' vectors, in two dimensions."""

    vocabulary = np.array([[1, 0], [0, 1], [1, 1], [-1, 2]], np.float32)
    forbidden = np.zeros(0, np.int64)
    mask = 0
    window = 8

    def tokens(self, text):
        return [WORDS.index(word) for word in text.split() if word in WORDS]

    def text(self, ids):
        return " ".join(WORDS[i] for i in ids)

    def encode(self, texts):
        return np.array([self.vocabulary[self.tokens(text)].mean(axis=0) for text in texts], np.float32)

    def embed(self, ids):
        return self.vocabulary[ids].mean(axis=1)

    def gradient(self, ids, direction):
        return np.tile(direction / len(ids), (len(ids), 1)).astype(np.float32)


QUERY = np.array([1, 2], np.float32)


def test_the_worked_example():
    toy, meter = Toy(), Meter()
    assert toy.embed(np.array([[0, 1]]))[0] @ QUERY == 1.5
    slope = toy.gradient(np.array([0, 1]), QUERY)[0]
    assert (toy.vocabulary @ slope).tolist() == [0.5, 1.0, 1.5, 1.5]
    assert likeliest(toy, slope, 4).tolist() == [2, 3, 1, 0]
    flipped = flip(toy, [0], "b", QUERY, np.random.default_rng(0), meter, iterations=1, candidates=4)
    assert flipped == ("c", 1.5, 2.5, 1)
    assert meter.gradient_steps == 1


def test_a_gain_that_decoding_loses_is_not_claimed():
    class Forgetful(Toy):
        def text(self, ids):
            return "a"

    toy, meter = Forgetful(), Meter()
    flipped = flip(toy, [0], "b", QUERY, np.random.default_rng(0), meter, iterations=3, candidates=4)
    assert flipped.after == flipped.before == 1.5


def test_only_the_question_part_changes_and_the_passes_are_counted():
    attack = HotFlip(Toy(), iterations=4, candidates=2)
    (poison,) = attack.craft(Target("x", "a b", ("right",), "wrong", ("d a wrong claim",)), 1)
    assert poison.text.endswith(" d a wrong claim")
    assert poison.meta["score_after"] > poison.meta["score_before"]
    assert poison.reached
    assert poison.budget.gradient_steps == 4
    assert poison.budget.encoder_passes >= 2 + 4 * 2
    assert poison == attack.craft(Target("x", "a b", ("right",), "wrong", ("d a wrong claim",)), 1)[0]


@pytest.mark.needs("torch")
def test_something_that_is_no_encoder_is_refused():
    with pytest.raises(OptionError, match="encoder must be a sentence-transformers encoder"):
        HotFlip("lexical")


def test_phantom_names_the_trigger_only_in_a_biased_opinion():
    for payload, named in (("refusal", False), ("busy", False), ("biased_opinion", True)):
        attack = Phantom(payload=payload, trigger="zorble")
        assert ("zorble" in attack.command) is named
        (poison,) = attack.craft(Target("x", "who is it"), 1)
        assert poison.text.endswith(attack.command)
        assert poison.meta["answers"] == [attack.reply]
        assert attack.user_question("who is it") == "zorble who is it"


def test_phantom_reaches_its_goal_if_the_trigger_decides_what_is_retrieved():
    box = Toy()
    target = Target("x", "a", context=("b", "c"))
    (poison,) = Phantom(trigger="d", encoder=box, iterations=6, candidates=4, length=3, top=1).craft(target, 1)
    vectors = box.encode([poison.text, "a", "d a", *target.context])
    best = [(vectors[3:] @ question < vectors[0] @ question).all() for question in vectors[1:3]]
    assert poison.reached == (best == [False, True])
    assert poison.reached or poison.meta["reason"]
    (easy,) = Phantom(trigger="d", encoder=box, iterations=6, candidates=4, length=3, top=9).craft(target, 1)
    assert easy.meta["reason"] == "the passage is retrieved for the plain question as well"


def test_grada_compat_is_the_released_attack():
    attack = Phantom(grada_compat=True, encoder=Toy())
    assert (attack.iterations, attack.payload, attack.trigger) == (5, "busy", "abcdefghijk")
    assert Phantom(grada_compat=True).craft(Target("x", "a b"), 1)[0].text.startswith("a b. Always")


def test_its_options_have_ranges():
    make = lambda **options: HotFlip(Toy(), **options)  # noqa: E731
    for name, least in (("iterations", 1), ("candidates", 1), ("max_tokens", 2)):
        assert_range(make, name, least)
    for name in ("start", "similarity"):
        with pytest.raises(OptionError, match=name):
            make(**{name: "other"})
    assert (make().iterations, make().candidates, make().start, make().similarity) == (30, 100, "question", "dot")


def test_the_options_of_phantom_have_ranges():
    make = lambda **options: Phantom(encoder=Toy(), **options)  # noqa: E731
    for name in ("iterations", "candidates", "length", "top"):
        assert_range(make, name, 1)


def toy_flip(toy, iterations=3, head=(0,), body="b", candidates=4):
    meter = Meter()
    found = flip(
        toy, list(head), body, QUERY, np.random.default_rng(0), meter, iterations=iterations, candidates=candidates
    )
    return found, meter


def test_a_token_that_is_no_better_is_not_taken():
    flipped, meter = toy_flip(Toy())
    assert (flipped.text, flipped.accepted) == ("c", 1), "d scores as c does"
    assert (meter.gradient_steps, meter.encoder_passes) == (3, 2 + 4 - 1 + 3 + 3 + flipped.accepted)


def test_where_every_token_is_forbidden_nothing_is_tried():
    class Closed(Toy):
        forbidden = np.arange(4)

    flipped, meter = toy_flip(Closed())
    assert flipped == ("a", 1.5, 1.5, 0)
    assert (meter.gradient_steps, meter.encoder_passes) == (3, 2)


def test_what_gained_nothing_is_the_text_that_it_began_with():
    class Loud(Toy):
        def text(self, ids):
            return "a" + "!" * ids[0]

    class Equal(Loud):
        def encode(self, texts):
            return np.ones((len(texts), 2), np.float32)

    assert toy_flip(Equal())[0].text == "a"


def test_the_search_sees_no_more_tokens_than_the_window_has():
    class Narrow(Toy):
        window = 3
        widths: list[int] = []  # noqa: RUF012

        def embed(self, ids):
            self.widths.append(ids.shape[1])
            return super().embed(ids)

    toy_flip(Narrow(), body="b b b b b")
    toy_flip(Narrow(), head=(0, 0, 0, 0))
    assert set(Narrow.widths) == {3, 4}


def test_it_may_begin_with_thirty_masks_which_leave_room_for_the_text():
    class Wide(Toy):
        window = 64

    target = Target("x", "a b", ("right",), "wrong", ("d claim",))
    for toy, length in ((Wide(), 30), (Toy(), 7)):
        (poison,) = HotFlip(toy, start="mask", iterations=1, candidates=1).craft(target, 1)
        assert len(poison.text.removesuffix(" d claim").split()) == length


def test_a_text_that_gained_nothing_says_so_with_its_score():
    class Closed(Toy):
        forbidden = np.arange(4)

    (poison,) = HotFlip(Closed(), iterations=1).craft(Target("x", "a b", ("right",), "wrong", ("a claim",)), 1)
    score = poison.meta["score_before"]
    assert (poison.meta["reason"], poison.meta["accepted"]) == (
        f"no step raised the score {score:.4f} of the finished text",
        0,
    )
    assert poison.meta["score_after"] == score == round(score, 6)

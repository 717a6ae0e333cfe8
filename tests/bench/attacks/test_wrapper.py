from dataclasses import replace

import pytest

from unpoison.bench.attacks.base import PoisonText
from unpoison.bench.attacks.hide import Hide
from unpoison.bench.attacks.phantom import Phantom
from unpoison.bench.attacks.poisonedrag import PoisonedRag
from unpoison.bench.attacks.prompt_injection import LINK, Pia
from unpoison.bench.attacks.published import Published
from unpoison.bench.attacks.wrapper import Pad, Title, Wrapper
from unpoison.core.codec import from_row, to_row
from unpoison.core.registry import create, parts
from unpoison.errors import InputError, OptionError, UnknownNameError
from unpoison.models.doubles import ScriptedGenerator


class Quoted(Wrapper):
    name = "quoted"

    def __init__(self, inner, *, mark="'", seed=0):
        super().__init__(inner, seed=seed, mark=mark)
        self.mark = mark

    def change(self, text, target, position):
        return f"{self.mark}{text}{self.mark}"


def test_the_wrapped_text_says_how_it_was_made_and_keeps_the_rest(target):
    (inner,) = Published().craft(target, 1)
    (poison,) = Quoted(Quoted(Published()), mark='"').craft(target, 1)
    assert poison.text == f"\"'{inner.text}'\""
    assert poison.meta["how"] == ["quoted:mark='", 'quoted:mark="']
    assert poison.attack == "published+quoted+quoted"
    assert poison.id == f"{inner.id}+quoted+quoted"
    assert {key: poison.meta[key] for key in inner.meta} == dict(inner.meta)


def test_wrappers_apply_from_left_to_right(target):
    padded = create("attacks", "published+hide:kind=case+pad:where=behind").craft(target, 1)[0].text
    hidden = create("attacks", "published+pad:where=behind+hide:kind=case").craft(target, 1)[0].text
    assert padded.endswith("LYON IS THE CAPITAL OF FRANCE.")
    assert padded != padded.upper()
    assert hidden == hidden.upper()


def test_costs_and_shortfalls_are_those_of_the_wrapped_attack():
    attack = Quoted(PoisonedRag(generator=ScriptedGenerator({"passage 1": "Paris", "Variant": "x"}), trials=2))
    from unpoison.bench.attacks.base import Target

    (poison,) = attack.craft(Target("c", "capital of france", ("Paris",), "Lyon"), 1)
    assert poison.budget.llm_calls == 4
    assert not poison.reached
    assert poison.meta["reason"] == "the trial answer was 'Paris', not 'Lyon'"


def test_what_changes_nothing_says_so(target):
    (poison,) = Quoted(Published(), mark="").craft(target, 1)
    assert poison.meta["reason"] == "quoted:mark= found nothing to change"
    assert not poison.reached


def test_what_the_wrapped_attack_needs_and_wants_is_passed_on(target, bare):
    attack = Pad(Hide(Pia(style="link")))
    assert attack.target_answers(target) == (LINK,)
    assert attack.uses_context
    with pytest.raises(InputError, match=r"target 't2' has no texts, which the attack published\+pad requires"):
        Pad(Published()).craft(bare, 1)
    with pytest.raises(InputError, match=r"target 't2' has no context, which the attack pia\+pad requires"):
        Pad(Pia()).craft(bare, 1)
    phantom = Phantom()
    assert Hide(phantom).user_question("who") == phantom.user_question("who") != "who"
    assert create("attacks", "ambiguous+hide").uses_gold
    assert create("attacks", "conditional+hide").passage_format == "Document {number}: {text}"
    assert create("attacks", "published:attack=tan+hide").attack == "tan"


def test_behind_a_title_wrappers_change_the_title(target):
    (poison,) = Quoted(Title(Published())).craft(target, 1)
    assert poison.title == "'Lyon is the capital of France.'"
    assert poison.text in target.context
    assert from_row(PoisonText, to_row(poison)) == poison
    assert replace(poison, title=None) != poison


def test_a_wrapper_wraps_attacks_only():
    with pytest.raises(OptionError, match="inner must be an attack such as PoisonedRag"):
        Hide("poisonedrag")


def test_composed_strings_are_read_piece_by_piece():
    assert parts("attacks", "pia:style=dos+hide:kind=bold+title") == [
        ("attacks", "pia:style=dos"),
        ("wrappers", "hide:kind=bold"),
        ("wrappers", "title"),
    ]
    assert parts("defenses", "a+b") == [("defenses", "a+b")]
    attack = create("attacks", "pia:style=dos+hide:kind=bold+title", seed=3)
    assert (type(attack), type(attack.inner), attack.inner.kind) == (Title, Hide, "bold")
    assert (attack.inner.inner.style, attack.seed, attack.inner.seed, attack.inner.inner.seed) == ("dos", 3, 3, 3)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("pia+hid", UnknownNameError, "no wrapper is named 'hid'; did you mean 'hide'"),
        ("pia+", UnknownNameError, "no wrapper is named ''"),
        ("pia+phantom", UnknownNameError, "no wrapper is named 'phantom'"),
        ("hide", OptionError, r"hide changes what another attack crafts; write poisonedrag\+hide"),
        ("pia+hide:kind=ink", OptionError, "hide:kind must be zero-width or .*, got 'ink'"),
        ("pia+pad:where=above", OptionError, "pad:where must be before or .*, got 'above'"),
        ("pia+shape:kind=poem", OptionError, "shape:kind must be references or .*, got 'poem'"),
        ("pia+title:kind=bold", OptionError, "title has no option 'kind'; it has: seed"),
    ],
)
def test_a_composition_that_cannot_be_says_why(spec, error, message):
    with pytest.raises(error, match=message):
        create("attacks", spec)

"""The options that every defense takes: named in signature and help text, and checked as if each class listed them."""

from __future__ import annotations

import inspect
from typing import Any, Unpack, get_type_hints

import pytest

from unpoison import Defense, Radar, Vanilla, Vote
from unpoison.core import registry
from unpoison.defenses.options import CommonOptions

DEFENSES = registry.names("defenses")


@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_names_each_common_option(name: str) -> None:
    defense = registry.find("defenses", name)
    parameters, defaults = inspect.signature(defense).parameters, inspect.signature(Defense).parameters
    assert not [parameter for parameter in parameters.values() if parameter.kind is parameter.VAR_KEYWORD]
    hints = get_type_hints(defense.__init__)
    for option, hint in get_type_hints(CommonOptions).items():
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert name == "guard" or parameters[option].default == defaults[option].default
        assert hints[option] == hint
        assert f"        {option}: " in (defense.__doc__ or "")
    assert "CommonOptions" not in (defense.__doc__ or "")


def test_an_option_that_a_defense_does_not_name_is_refused() -> None:
    assert "nli" in inspect.signature(Defense).parameters
    with pytest.raises(TypeError, match=r"^Vanilla\.__init__\(\) got an unexpected keyword argument 'nli'$"):
        Vanilla(nli="lexical")  # type: ignore[call-arg]


def test_a_defense_keeps_its_own_words_for_a_common_option() -> None:
    for defense, words in ((Vote, "Then sources vote"), (Radar, "a conclusion that is repeated")):
        help_text = defense.__doc__ or ""
        assert words in help_text
        assert help_text.count("        sources: ") == help_text.count("        limits: ") == 1


def test_common_options_reach_the_base() -> None:
    assert Vanilla(prompt_injection="drop").prompt_injection == "drop"
    assert Vanilla().prompt_injection == "keep"


def test_a_defense_of_somebody_elses_has_them_too() -> None:
    def init(self: Any, keep: int = 2, **common: Any) -> None:
        Vanilla.__init__(self, keep, **common)

    init.__annotations__["common"] = Unpack[CommonOptions]  # as it stands without postponed annotations
    own: Any = type("Own", (Vanilla,), {"__init__": init})
    assert list(inspect.signature(own).parameters) == ["keep", *get_type_hints(CommonOptions)]
    assert own(prompt_injection="flag").prompt_injection == "flag"
    with pytest.raises(TypeError, match="'encoder'"):
        own(encoder="lexical")

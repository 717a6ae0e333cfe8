"""The options that every defense takes for the shell: stated once, found by option strings and type checkers."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

import pytest

from unpoison import Grada, Guard, Limits, RagDefender, TrustRag, Vanilla
from unpoison.core import registry
from unpoison.defenses import load_defense
from unpoison.defenses.base import Defense, ShellOptions
from unpoison.errors import OptionError

MAX_OWN_OPTIONS = 12


@pytest.mark.parametrize("name", registry.names("defenses"))
def test_every_defense_takes_the_options_of_the_shell_with_the_defaults_of_the_base(name: str) -> None:
    defense = registry.find("defenses", name)
    base, found = registry.parameters(Defense), registry.parameters(defense)
    for option in ShellOptions.__annotations__:
        if option not in inspect.signature(defense).parameters:  # one that it states itself may differ
            assert found[option].default == base[option].default


@pytest.mark.parametrize("name", registry.names("defenses"))
def test_a_product_class_has_few_options_of_its_own(name: str) -> None:
    own = set(inspect.signature(registry.find("defenses", name)).parameters) - {"shell", *ShellOptions.__annotations__}
    assert len(own) <= MAX_OWN_OPTIONS


def test_option_strings_find_them() -> None:
    defense = load_defense("vanilla:prompt_injection=drop,keep=2,trust_embeddings=false")
    assert (defense.shell.options.prompt_injection, defense.shell.options.trust_embeddings) == ("drop", False)
    described = {option.name: option.described for option in registry.options(Grada)}
    assert described["prompt_injection"] == "prompt_injection=keep (drop | redact | flag | keep)"
    assert "limits" not in described
    with pytest.raises(OptionError, match="it has: keep, trust_embeddings"):
        load_defense("vanilla:kept=2")


def test_they_reach_the_base_constructor() -> None:
    limits = Limits(deadline=3.0)
    for defense in (Grada, Guard, RagDefender, TrustRag, Vanilla):
        made = defense(limits=limits, prompt_injection="flag", sources={"known": ["https://docs.example/**"]})
        assert (made.limits, made.shell.options.prompt_injection) == (limits, "flag")
        assert made.sources is not None


def test_a_defense_of_somebody_elses_has_them_too() -> None:
    class Own(Vanilla):
        name = "own"

        def __init__(self, least: int = 2, **shell: Unpack[ShellOptions]) -> None:
            super().__init__(least, **shell)

    assert list(registry.parameters(Own)) == ["least", *ShellOptions.__annotations__]


@pytest.mark.parametrize(
    ("defense", "name", "meant"),
    [(Grada, "alhpa", "alpha"), (Guard, "genrator", "generator"), (Vanilla, "promt_injection", "prompt_injection")],
)
def test_a_name_that_no_option_has_is_answered_with_the_one_that_was_meant(
    defense: type[Defense], name: str, meant: str
) -> None:
    class Own(defense):  # type: ignore[misc, valid-type]
        name = "own"

    for kind in (defense, Own):
        with pytest.raises(OptionError, match=f"{kind.__name__} has no option '{name}'; did you mean '{meant}'"):
            kind(**{name: 1})


OUT_OF_RANGE = [
    "grada:variant=pagerank", "grada:alpha=-0.1", "grada:damping=1", "grada:keep=0", "grada:start=nstart",
    "ragdefender:hops=auto", "ragdefender:terms=0", "ragdefender:exponent=-1", "ragdefender:rule=code",
    "ragdefender-ablation:linkage=median", "ragdefender-ablation:stages=2", "trustrag:threshold=2", "trustrag:stages=3",
    "radar:mode=code", "radar:outlier=2", "radar:contradiction_cut=-1", "radar:final=x", "radar:fallback=x",
    "radar:lenient_below=-1", "guard:damage=0.5", "guard:threshold=1.5", "guard:crafted=burn", "guard:hidden=burn",
    "guard:action=cut", "guard:on_dispute=fight", "guard:mode=paper", "vote:least=0", "robustrag:alpha=2",
    "reliabilityrag:contradiction=2", "reliabilityrag:fallback=never", "reliabilityrag-sampled:samples=0",
    "reliabilityrag-sampled:gamma=1.5", "madam:rounds=0", "paraphrase:paraphrases=0", "rerank:cross_encoder=nonsense",
]  # fmt: skip


@pytest.mark.parametrize("spec", OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_by_the_name_of_its_option(spec: str) -> None:
    option = spec.partition(":")[2].partition("=")[0]
    with pytest.raises(OptionError, match=option.replace("_", "[_-]")):
        registry.create("defenses", spec, generator="extractive")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"learn": True}, "learn writes into the history of sources"),
        ({"learn": "yes", "sources": {}}, "learn must be True or False"),
        ({"prompt_injection": "burn"}, "prompt_injection must be"),
        ({"prompt_injection_threshold": 1}, "prompt_injection_threshold must be"),
        ({"trust_embeddings": 1}, "trust_embeddings must be True or False"),
        ({"injection_model": 3}, "injection.* must be"),
    ],
)
def test_a_shell_is_checked_however_it_is_given(options: dict[str, Any], says: str) -> None:
    for call in (lambda: Vanilla(**options), lambda: Vanilla().with_shell(**options)):
        with pytest.raises(OptionError, match=says):
            call()


def test_a_model_given_first_is_kept_as_one_given_by_its_name() -> None:
    assert repr(TrustRag("extractive")) == repr(TrustRag(generator="extractive"))
    copied = TrustRag("extractive").with_shell(prompt_injection="drop")
    assert copied.models.generator.name == "extractive"  # type: ignore[union-attr]
    with pytest.raises(OptionError, match=r"Guard takes options by name, as in Guard\(\w+=\.\.\.\), got 'extractive'"):
        Guard("extractive")  # type: ignore[call-arg]


def test_the_threshold_of_an_injection_is_a_probability_below_one() -> None:
    for threshold in (0, 0.999):
        assert Vanilla(prompt_injection_threshold=threshold).shell.options.prompt_injection_threshold == threshold
    for threshold in (1, -0.001):
        with pytest.raises(OptionError, match="prompt_injection_threshold"):
            Vanilla(prompt_injection_threshold=threshold)

from __future__ import annotations

import re
from importlib.metadata import EntryPoint

import pytest

from unpoison import Defense, Grada, TrustRag
from unpoison.core import registry
from unpoison.defenses.base import ScreeningOptions, SharedOptions, ShellOptions
from unpoison.errors import OptionError, UnknownNameError
from unpoison.models import load_generator


def test_an_option_string_makes_the_object() -> None:
    defense = registry.create("defenses", "grada:alpha=0.3,keep=4,encoder=none,variant=bm25")
    assert isinstance(defense, Grada)
    assert (defense.alpha, defense.keep, defense.variant) == (0.3, 4, "bm25")


def test_booleans_and_objects() -> None:
    generator = load_generator("extractive")
    defense = registry.create(
        "defenses", "trustrag-ablation:clustering=false,stages=1", generator=generator, nli=None, unknown="left out"
    )
    assert isinstance(defense, TrustRag)
    assert (defense.clustering, defense.stages, defense.models.generator) == (False, 1, generator)


@pytest.mark.parametrize(
    ("spec", "error", "says"),
    [
        ("grda", UnknownNameError, "did you mean 'grada'"),
        ("zzzz", UnknownNameError, "known: astuterag, "),
        ("", UnknownNameError, "no defense is named ''"),
        ("grada:alfa=1", OptionError, "grada has no option 'alfa'; did you mean 'alpha'\\? it has: variant, alpha"),
        ("guard:treshold=.5", OptionError, "guard has no option 'treshold'; did you mean 'threshold'\\? it has: "),
        ("grada:xyz=1", OptionError, "grada has no option 'xyz'; it has: variant, alpha"),
        ("grada:keep=many", OptionError, "grada:keep must be a whole number, got 'many'"),
        ("guard:threshold=high", OptionError, "guard:threshold must be a number or none, got 'high'"),
        ("guard:damage=x", OptionError, "guard:damage must be a number, got 'x'"),
        ("grada:start=warm", OptionError, "grada:start must be uniform or query, got 'warm'"),
        ("trustrag-ablation:clustering=maybe", OptionError, "trustrag-ablation:clustering must be true or false"),
        ("grada:keep", OptionError, "'keep' in 'grada:keep' is not an option"),
        ("grada:keep=1,keep=2", OptionError, "keep is given twice"),
        ("perplexity", OptionError, "perplexity needs threshold"),
    ],
)
def test_mistakes_are_named(spec: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        registry.create("defenses", spec)


@pytest.mark.parametrize("name", registry.names("defenses"))
def test_every_defense_describes_itself(name: str) -> None:
    target = registry.find("defenses", name)
    assert issubclass(target, Defense)
    assert target.name == name
    assert target.summary
    assert target.__doc__
    assert re.search(r"`(Shell|Screening)Options`", target.__doc__)
    for option in registry.options(target):
        documented = f"{target.__doc__}\n{SharedOptions.__doc__}\n{ShellOptions.__doc__}\n{ScreeningOptions.__doc__}"
        assert f"{option.name}: " in documented, f"{name} does not document {option.name}"


def test_third_parties_register_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", "unpoison.defenses.grada:Grada", "unpoison.defenses")
    monkeypatch.setattr(registry, "entry_points_of", lambda kind: {"theirs": point} if kind == "defenses" else {})
    assert "theirs" in registry.names("defenses")
    assert isinstance(registry.create("defenses", "theirs:keep=2"), Grada)


def test_descriptions_show_default_and_choices() -> None:
    described = {option.name: option.described for option in registry.options(Grada)}
    assert described["alpha"] == "alpha=0.4"
    assert described["start"] == "start=uniform (uniform | query)"


@pytest.mark.parametrize("kind", ["defenses", "attacks"])
def test_boolean_options_refuse_strings(kind: str) -> None:
    """The string "false" is not empty, and would mean true."""
    checked = 0
    for name in registry.names(kind):
        target = registry.find(kind, name)
        for option in registry.options(target):
            if option.name in ScreeningOptions.__annotations__ and name != "vanilla":
                continue  # one constructor reads them for all
            needs_a_model = {"encoder", "generator", "defense"} & set(target.needs) and name != "trustrag"
            if option.type is bool and not needs_a_model:
                checked += 1
                with pytest.raises(OptionError, match=f"{option.name} must be True or False"):
                    target(**{option.name: "false"})
    assert checked > 1


@pytest.mark.parametrize("kind", ["defenses", "attacks"])
def test_no_message_about_an_option_names_a_type_of_python(kind: str) -> None:
    for name in registry.names(kind):
        target = registry.find(kind, name)
        for option in registry.options(target):
            try:
                registry.read_options(target, {option.name: "\x00nonsense"}, name)
            except OptionError as error:
                said = str(error).partition(", got")[0].partition(" must be ")[2]
                assert not {"int", "float", "bool", "str", "NoneType"} & set(re.findall(r"[A-Za-z]+", said)), error

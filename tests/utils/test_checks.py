"""Options at the door: what fits comes back, everything else is a sentence, however large or odd it is."""

from __future__ import annotations

import os
from typing import Any, get_args

import numpy as np
import pytest

from model_doubles import FakeCrossEncoder, FakeLanguageModel
from unpoison.core import registry
from unpoison.errors import OptionError
from unpoison.utils.checks import MAX_NUMBER, at_least, direct

ODD: list[Any] = [10**20, 10**400, -(10**400), float("nan"), float("inf"), float("-inf"), 1e308, "x", None, True]


@pytest.mark.parametrize("value", ODD, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("whole", [True, False])
def test_odd_numbers_are_refused_in_a_sentence(value: Any, whole: bool) -> None:
    with pytest.raises(OptionError, match=r"^keep must be .*, got "):
        at_least("keep", value, 0, whole=whole)


def test_only_what_is_said_to_may_have_a_fraction() -> None:
    assert at_least("alpha", 1.5, 1, whole=False) == 1.5
    with pytest.raises(OptionError, match=r"must be a whole number of at least 1, got 1\.5"):
        at_least("keep", 1.5, 1)


def test_what_fits_comes_back() -> None:
    assert at_least("keep", 3, 1) == 3
    assert at_least("keep", MAX_NUMBER, 1) == MAX_NUMBER
    assert at_least("alpha", np.float32(0.5), 0.0, 1.0, whole=False) == 0.5
    with pytest.raises(OptionError, match="keep must be at most 20, got 21"):
        at_least("keep", 21, 1, 20)


def numeric() -> list[Any]:
    return [
        pytest.param(name, option.name, id=f"{name}:{option.name}")
        for name in registry.names("defenses")
        for option in registry.options(registry.find("defenses", name))
        if {int, float} & {option.type, *get_args(option.type)}
    ]


@pytest.mark.parametrize(("name", "option"), numeric())
@pytest.mark.parametrize("text", ["9" * 20, "-" + "9" * 20, "1e999", "nan", "9" * 400])
def test_every_number_of_every_defense_has_bounds(name: str, option: str, text: str) -> None:
    given: dict[str, Any] = {"cross_encoder": FakeCrossEncoder(), "language_model": FakeLanguageModel()}
    if name == "perplexity" and option != "threshold":
        given["threshold"] = 50.0
    with pytest.raises(OptionError):
        registry.create("defenses", f"{name}:{option}={text}", **given)


def test_clients_on_this_machine_go_past_the_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "a.example")
    monkeypatch.delenv("no_proxy", raising=False)
    with direct("http://127.0.0.1:6333"):
        assert (os.environ["NO_PROXY"], os.environ["no_proxy"]) == ("a.example,127.0.0.1", "127.0.0.1")
    assert (os.environ["NO_PROXY"], os.environ.get("no_proxy")) == ("a.example", None)
    with direct("https://b.example"):
        assert os.environ["NO_PROXY"] == "a.example"

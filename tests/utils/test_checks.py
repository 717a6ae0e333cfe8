"""Options at the door: what fits comes back, everything else is a sentence, however large or odd it is."""

from __future__ import annotations

import os
import re
from typing import Any, get_args

import numpy as np
import pytest

from model_doubles import FakeCrossEncoder, FakeLanguageModel
from unpoison.core import registry
from unpoison.errors import OptionError
from unpoison.utils.checks import (
    MAX_NUMBER,
    among,
    at_least,
    direct,
    flag,
    on_this_machine,
    web_address,
    within,
)

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


def test_one_of_the_choices_comes_back_and_a_refusal_lists_them() -> None:
    assert among("start", "query", ("uniform", "query")) == "query"
    with pytest.raises(OptionError, match=r"^start must be one of uniform, query, got 'Query'$"):
        among("start", "Query", ("uniform", "query"))


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_truth_is_a_plain_bool(value: Any) -> None:
    assert flag("exact", value) is bool(value)


@pytest.mark.parametrize("value", ["false", 0, 1, None, 1.0])
def test_what_only_looks_like_a_truth_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match=r"^exact must be True or False, got "):
        flag("exact", value)


def test_a_range_holds_both_ends_unless_it_is_open() -> None:
    assert [within("alpha", value, 0, 1) for value in (0, 0.5, 1)] == [0, 0.5, 1]
    assert within("damping", 0, 0, 1, open_end=True) == 0
    with pytest.raises(OptionError, match=r"^damping must be a number in \[0, 1\), got 1$"):
        within("damping", 1, 0, 1, open_end=True)
    for odd in (-0.001, 1.001, float("nan"), "0.5", True):
        with pytest.raises(OptionError, match=r"^alpha must be a number in \[0, 1\], got "):
            within("alpha", odd, 0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]/", True),
        ("http://[::ffff:127.0.0.1]/", True),
        ("http://0.0.0.0:1", True),
        ("http://LOCALHOST.", True),
        ("http://db.localhost", True),
        ("http://[::ffff:8.8.8.8]/", False),
        ("http://10.0.0.1", False),
        ("http://localhost.example", False),
        ("http://notlocalhost", False),
        ("", False),
    ],
)
def test_what_is_an_address_of_this_machine(url: str, here: bool) -> None:
    assert on_this_machine(url) is here


def test_an_address_has_a_scheme_and_a_host_and_a_refusal_says_which_is_meant() -> None:
    assert web_address("url", "https://a.example/v1") == "https://a.example/v1"
    for url, meant in (("a.example/v1", "; write https://a.example/v1"), ("localhost:1", "; write http://localhost:1")):
        with pytest.raises(OptionError, match=re.escape(meant) + "$"):
            web_address("url", url)
    for odd in ("ftp://a.example", "http://", "", None, 8):
        with pytest.raises(OptionError, match=r"^url must begin with http:// or https://, got [^;]*$"):
            web_address("url", odd)
    for odd in (
        "http://[::1",
        "http://a.example:99999",
        "http://a.example:b",
        "[::1",
        "http://a..b",
        f"http://{'a' * 64}",
    ):
        with pytest.raises(OptionError, match=r"^url is not a valid address \(.+\), got "):
            web_address("url", odd)
    for odd in ("http://a\nb", "http://a\0", "http://\ud800", "http://a/" + "b" * 8_192):
        with pytest.raises(OptionError, match=r"^url must be one line of at most 8,192 characters, got [ -~]{,200}"):
            web_address("url", odd)

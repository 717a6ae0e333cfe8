"""What every defense can do beside its method: it shows how it is made, and is composed with a shell."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251  what processes and Ray send is ours
from collections.abc import Callable
from typing import Any

import pytest

import unpoison
from contract.test_promises import make
from unpoison import Defense, Grada, Guard, Limits, RagDefender, Sources, TrustRag, Vanilla
from unpoison.core import registry
from unpoison.models import ScriptedGenerator

MADE: list[tuple[Callable[[], Defense], str]] = [
    (lambda: Guard(damage=0.01), "Guard(damage=0.01)"),
    (Guard, "Guard()"),
    (lambda: Vanilla(2), "Vanilla(keep=2)"),
    (lambda: Grada("bm25", keep=3, sources="trusted.yaml"), "Grada(variant='bm25', keep=3, sources='trusted.yaml')"),
    (
        lambda: TrustRag(generator="extractive", limits=Limits(retries=1)),
        "TrustRag(generator='extractive', limits=Limits(in_flight=32, deadline=120.0, timeout=60.0, retries=1, "
        "backoff=0.5, longest_wait=30.0))",
    ),
    (lambda: Guard(damage=0.05).with_shell(prompt_injection="flag"), "Guard(damage=0.05, prompt_injection='flag')"),
    (
        lambda: RagDefender(sources={"blocked": ["a.example"]}).with_sources({"known": ["b.example"]}, learn=True),
        "RagDefender(sources={'known': ['b.example']}, learn=True)",
    ),
]


@pytest.mark.parametrize(("make_one", "shown"), MADE)
def test_what_it_shows_can_be_pasted(
    make_one: Callable[[], Defense], shown: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted.yaml").write_text("known: [b.example]\n")
    monkeypatch.chdir(tmp_path)
    made = make_one()
    assert repr(made) == shown
    again = eval(shown, {name: getattr(unpoison, name) for name in unpoison.__all__})  # noqa: S307  our own words
    assert repr(again) == shown
    assert str(again.shell.options) == str(made.shell.options)


@pytest.mark.parametrize("name", registry.names("defenses"))
def test_every_defense_shows_its_name_first_and_is_copied(name: str) -> None:
    defense = make(name)
    assert repr(defense).startswith(f"{type(defense).__name__}(")
    assert repr(copy.copy(defense)) == repr(defense)


def test_what_it_shows_goes_to_other_processes() -> None:
    guard = Guard(damage=0.05)
    assert repr(pickle.loads(pickle.dumps(guard))) == repr(guard)  # noqa: S301


def test_another_shell_changes_nothing_of_the_first() -> None:
    first = Guard(sources={"known": ["a.example"]}, generator=ScriptedGenerator("x"))
    second = first.with_shell(sources=None, limits=Limits(retries=0), trust_embeddings=False)
    assert first.sources is not None
    assert second.sources is None
    assert (first.limits, second.limits) == (Limits(), Limits(retries=0))
    assert second.models.generator is first.models.generator
    assert second.shell.options.prompt_injection == "redact"


@pytest.mark.parametrize("option", ["sources", "limits"])
def test_nobody_assigns_an_option_of_the_shell(option: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Guard(), option, Sources())


def test_only_the_mode_of_reference_reads_raw_texts() -> None:
    assert [RagDefender(mode=mode).verbatim for mode in ("reference", "paper")] == [True, False]
    assert not Guard().verbatim

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
from unpoison.core.answers import Reply
from unpoison.core.passages import Query, as_passages
from unpoison.defenses.base import make_answer, note_unfinished
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


QUESTION, TEXTS = "when was the Vasa salvaged", ["The Vasa was salvaged in 1961.", "Stockholm has many museums."]


def test_without_a_passage_it_answers_from_memory_and_without_one_to_trust_it_abstains() -> None:
    generator = ScriptedGenerator("in 1961")
    guard = Guard(generator=generator)
    assert guard.answer(QUESTION, TEXTS).text == "in 1961"
    assert guard.answer(QUESTION, []).text == "in 1961"
    with_passages, alone = generator.prompts
    assert (with_passages.passages, alone.passages) == (tuple(TEXTS), ())
    assert (with_passages.task, alone.task) == ("answer", "answer-alone")
    answer = Guard(generator=generator, threshold=0.0).answer(QUESTION, TEXTS)
    assert (answer.abstained, answer.text, len(generator.prompts)) == (True, "I don't know.", 2)


@pytest.mark.parametrize(
    ("reply", "abstained", "details"),
    [
        (Reply("in 1961"), False, {}),
        (Reply("in 19", finish="length"), False, {"finish": "length"}),
        (Reply("I cannot help.", finish="refusal"), True, {"finish": "refusal"}),
        (Reply("I don't know."), True, {}),
        (Reply(""), True, {}),
    ],
)
def test_a_refusal_and_what_says_nothing_abstain_and_what_is_cut_off_says_so(
    reply: Reply, abstained: bool, details: dict[str, str]
) -> None:
    answer = make_answer(reply, Vanilla().screen(QUESTION, TEXTS), {"own": "x"})
    assert (answer.text, answer.abstained, answer.details) == (reply.text, abstained, {"own": "x", **details})
    assert make_answer(reply, answer.screening).details == details


def test_a_step_that_ended_early_is_noted_with_its_name() -> None:
    answer = make_answer(Reply("x"), Vanilla().screen(QUESTION, TEXTS), {"own": 1})
    assert note_unfinished(answer, {"claims": Reply("whole")}) is answer
    steps = {
        "claims": Reply("", finish="refusal"),
        "groups": Reply("a", finish="length"),
        "end": Reply("", finish="odd"),
    }
    noted = note_unfinished(answer, steps)
    assert noted.screening.notes[-3:] == (
        "the claims was refused by the model",
        "the groups was truncated at its length limit",
        "the end ended early (odd)",
    )
    assert noted.details == {"own": 1, "unfinished": {"claims": "refusal", "groups": "length", "end": "odd"}}


def test_reasons_of_a_screening_that_drops_nothing_are_one_for_all_or_one_each() -> None:
    query, passages = Query(QUESTION), as_passages(TEXTS)
    for reasons, said in (("kept", ["kept", "kept"]), (["first", "second"], ["first", "second"])):
        screening = Vanilla().all_kept(query, passages, reasons, "a note")
        assert [str(verdict.reason) for verdict in screening.verdicts] == said
        assert (screening.kept_indices, screening.notes) == ((0, 1), ("a note",))


def test_many_questions_are_screened_as_one_by_one() -> None:
    rows = [(QUESTION, TEXTS), ("what is in Stockholm", TEXTS[::-1]), (QUESTION, [])]
    found = Grada().screen_many(iter(rows))
    assert [one.to_dict() for one in found] == [Grada().screen(*row).to_dict() for row in rows]


def test_who_answers_from_more_than_the_kept_passages() -> None:
    answering = [name for name in registry.names("defenses") if make(name).answers_itself]
    assert {"radar", "vote", "robustrag", "trustrag"} <= set(answering)
    assert not {"guard", "grada", "ragdefender", "vanilla"} & set(answering)


def test_models_and_sources_are_replaced_in_a_copy() -> None:
    guard, other = Guard(generator="extractive"), ScriptedGenerator("x")
    assert guard.with_models(generator=other).models.generator is other
    assert guard.models.generator is not other
    assert (guard.source_notes, guard.sources, guard.limits) == ((), None, Limits())
    learning = guard.with_sources({"known": ["a.example"]}, learn=True)
    assert (learning.shell.options.learn, guard.shell.options.learn) == (True, False)
    assert not guard.with_sources({"known": ["a.example"]}).shell.options.learn

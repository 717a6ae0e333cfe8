"""One voice for each source, wherever passages are counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Passage, Sources, Vote
from unpoison.core.answers import Answer
from unpoison.defenses.voices import Voice, as_statements, by_turns, those_that_count, voices_of
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.screener.admission import Selection, select_passages

KNOWN = {"known": ["a.example", "b.example", "c.example", "d.example"]}
QUESTION = "which city"


def page(host: str, text: str, number: int = 0) -> Passage:
    return Passage(text, source=f"https://{host}.example/{number}")


def last_word(prompt: Prompt) -> str:
    return prompt.passages[0].split()[-1]


def vote(passages: list[Passage], policy: object = None, **options: object) -> Answer:
    sources = Sources(policy or {})  # type: ignore[arg-type]
    return Vote(ScriptedGenerator(last_word), sources=sources, **options).answer(QUESTION, passages)  # type: ignore[arg-type]


def lies(hosts: list[str]) -> list[Passage]:
    return [page(host, f"text {i} says Gothenburg", i) for i, host in enumerate(hosts)]


TRUE = [page("a", "it is Stockholm"), page("b", "surely Stockholm"), page("c", "nothing but Stockholm")]


def test_without_sources_every_passage_is_its_own() -> None:
    voices = voices_of(None, QUESTION, lies(["evil"] * 3))
    assert [voice.name for voice in voices] == ["0", "1", "2"]
    assert {voice.weight for voice in voices} == {1.0}
    assert select_passages(None, lies(["evil"] * 3)) == Selection((0, 1, 2))


def test_who_is_heard() -> None:
    passages = [page("evil", "x"), page("a", "y"), page("b", "y"), page("a", "y", 2), page("a", "z"), Passage("y")]
    heard = select_passages(Sources({"blocked": ["evil.example"]}), passages)
    assert heard == Selection((1, 2, 4, 5), (0,), {3: 1})


def test_who_counts_and_with_what_weight() -> None:
    voices = [
        Voice("a", "a", "known", 0.8),
        Voice("b", "b", "fresh", 0.05, counts=False),
        Voice("a", "a", "known", 0.8),
    ]
    assert those_that_count(voices, [0, 1, 2]) == [0, 2]
    assert those_that_count(voices, [1]) == [1]


def test_five_texts_of_one_source_have_one_vote() -> None:
    answer = vote([*lies(["evil"] * 5), *TRUE[:2]])
    assert (answer.text, answer.guarantee, answer.guarantee_unit) == ("Stockholm", 0, "sources")
    assert answer.proof == "2 sources say so, each passage read alone: 2 votes against 1"
    assert answer.screening.kept_indices == (5, 6)
    assert str(answer.screening.verdicts[0].reason) == "answers 'Gothenburg' (votes: 1 against 2)"


def test_sources_never_seen_before_have_none_beside_those_that_were() -> None:
    answer = vote([*lies([f"evil{i}" for i in range(9)]), *TRUE], KNOWN)
    assert (answer.text, answer.guarantee) == ("Stockholm", 1)
    assert answer.proof == "3 sources say so, each passage read alone: 2.4 votes against 0"
    assert str(answer.screening.verdicts[0].reason) == "answers 'Gothenburg' (votes: 0 against 2.4)"
    assert "any one of the sources that count" in answer.promise
    assert vote([*lies(["evil"]), *TRUE[:2]], KNOWN).guarantee == 0, "one of the two may change sides"


def test_alone_they_are_heard_and_nothing_is_proved() -> None:
    answer = vote(lies(["evil0", "evil1", "evil2"]), KNOWN)
    assert (answer.text, answer.guarantee) == ("Gothenburg", 0)
    assert answer.proof.endswith("; none of them counts")


def test_trust_weighs() -> None:
    said = [*TRUE[:1], page("b", "or Malmö")]
    assert vote(said, {"trusted": ["a.example"], "known": ["b.example"]}).text == "Stockholm"
    assert vote(said, {"trusted": ["b.example"], "known": ["a.example"]}).text == "Malmö"
    assert vote(said, {"known": ["a.example", "b.example"]}).abstained


def test_a_source_that_contradicts_itself_votes_for_both() -> None:
    answer = vote([page("a", "it is Stockholm"), page("a", "it is Malmö"), page("b", "no, Malmö")])
    assert (answer.text, answer.proof) == (
        "Malmö",
        "2 sources say so, each passage read alone: 2 votes against 1",
    )


def test_least_counts_sources() -> None:
    assert vote([*lies(["evil"] * 3)], least=2).abstained
    assert vote([*lies(["evil"] * 3)], least=2).proof == (
        "no answer has the 2 sources that it needs: 1 source says the same"
    )
    assert not vote([*lies(["evil", "mean"])], least=2).abstained


def test_the_wording_is_that_of_most_sources() -> None:
    said = [page("evil", f"{i} STOCKHOLM", i) for i in range(4)] + TRUE[:2]
    assert vote(said).text == "Stockholm"


cities = st.sampled_from(["Stockholm", "Malmö", "Gothenburg"])
hosts = st.sampled_from(["a", "b", "c", "d", "evil", "mean"])
rows = st.lists(st.tuples(hosts, cities), min_size=1, max_size=9)
policies = st.sampled_from([{}, KNOWN, {"trusted": ["a.example"], "known": ["b.example"]}])


def said(pairs: list[tuple[str, str]]) -> list[Passage]:
    return [page(host, f"page {i} says {city}", i) for i, (host, city) in enumerate(pairs)]


def outcome(answer: Answer) -> tuple[str, int | None, bool]:
    return answer.text, answer.guarantee, answer.abstained


@settings(max_examples=60, deadline=None)
@given(rows, policies, st.randoms(use_true_random=False), st.data())
def test_order_and_repetition_within_a_source_change_no_answer(rows, policy, random, data) -> None:  # type: ignore[no-untyped-def]
    passages = said(rows)
    before = outcome(vote(passages, policy))
    again = data.draw(st.lists(st.sampled_from(rows), max_size=5))
    more = [*passages, *(page(host, f"once more: {city}", 50 + i) for i, (host, city) in enumerate(again))]
    random.shuffle(more)
    counting = {name.partition(".")[0] for names in policy.values() for name in names}
    if not counting or counting & {host for host, _ in rows}:  # else who brings many texts weighs less, by design
        assert outcome(vote(more, policy)) == before


@settings(max_examples=80, deadline=None)
@given(rows, policies, st.lists(st.tuples(hosts, cities), max_size=5))
def test_the_guarantee_has_no_counterexample(rows, policy, owned_say) -> None:  # type: ignore[no-untyped-def]
    before = vote(said(rows), policy)
    owned = list(dict.fromkeys(host for host, _ in owned_say))[: before.guarantee or 0]
    if owned:
        attacked = [row for row in rows if row[0] not in owned] + [row for row in owned_say if row[0] in owned]
        assert vote(said(attacked), policy).text == before.text


@pytest.mark.parametrize(("texts", "trust"), [(1, 1), (2, 1), (3, 2), (5, 4)])
def test_an_unknown_source_with_many_texts_weighs_less(texts: int, trust: int) -> None:
    voices = voices_of(Sources(KNOWN), QUESTION, [*lies(["evil"] * texts), *TRUE])
    alone = voices_of(Sources(KNOWN), QUESTION, [*lies(["evil"]), *TRUE])[0].trust
    assert voices[0].trust == pytest.approx(alone / trust)
    assert [voice.counts for voice in voices] == [False] * texts + [True] * 3
    many = voices_of(Sources(KNOWN), QUESTION, [page("a", f"text {i}", i) for i in range(5)])
    assert {voice.trust for voice in many} == {voices[-1].trust}, "a known one does not"


def test_a_voice_without_sources_has_one_vote_and_a_known_one_its_trust() -> None:
    assert (Voice("0").weight, Voice("0").most) == (1.0, 1.0)
    assert (Voice("a", "a", "known", 0.8).weight, Voice("a", "a", "known", 0.8).most) == (0.8, 0.8)
    assert Voice("b", "b", "fresh", 0.05, counts=False).most == 1.0, "whatever it says next"
    assert Voice("b", "b", "unknown", 0.05, counts=False).weight == 0.05


def test_who_counts_is_heard_first_and_everybody_once_before_anybody_twice() -> None:
    def voice(name: str, counts: bool = True) -> Voice:
        return Voice(name, name, counts=counts)

    assert by_turns([voice("x", False), voice("a"), voice("a"), voice("b"), voice("x", False)]) == [1, 3, 2, 0, 4]
    assert by_turns([]) == []


def test_answers_are_compared_without_case_space_and_a_final_period() -> None:
    statements, positions = as_statements("which?", ["Paris", "paris.", " PARIS ", "Lyon"])
    assert statements == ["Question: which? Answer: Paris", "Question: which? Answer: Lyon"]
    assert positions.tolist() == [0, 0, 0, 1]

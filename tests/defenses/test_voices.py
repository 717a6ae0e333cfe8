"""One voice for each source, wherever passages are counted."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Passage, Query, Radar, Sources, Vote
from unpoison.core.passages import as_passages
from unpoison.defenses.astuterag import AstuteRag
from unpoison.defenses.madam import Madam
from unpoison.defenses.radar_static import one_voice_agreement
from unpoison.defenses.reliabilityrag import ReliabilityRag, SampledReliabilityRag
from unpoison.defenses.robustrag import RobustRag
from unpoison.defenses.voices import Voice, those_that_count, voices_of, votes_of
from unpoison.errors import OptionError
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.screener.admission import Selection, select_passages
from unpoison.types import Answer

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
    assert votes_of(voices, {0: "x", 1: "y", 2: "x"}) == {"x": {"a": 0.8}, "y": {}}


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


def test_by_meaning_a_source_supports_an_answer_once() -> None:
    variants = ["x Santos", "y Santos.", "z SANTOS", "SANTOS,"]
    said = [page("evil", text, i) for i, text in enumerate(variants)]
    said += [page(host, f"{host} says Menendez") for host in "abc"]
    answer = vote(said, same="meaning", seconds=1)
    assert (answer.text, answer.guarantee) == ("Menendez", 0)


def test_copies_of_texts_and_voices_of_sources_are_not_counted_at_once() -> None:
    with pytest.raises(OptionError, match="leave out copies, or the sources"):
        vote(TRUE, copies="once")


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


def test_robustrag_a_source_votes_once_for_a_keyword() -> None:
    generator = ScriptedGenerator(lambda prompt: last_word(prompt) if prompt.task == "atomic" else prompt.passages[0])
    flood = [*lies(["evil"] * 6), *TRUE]
    assert RobustRag(generator, alpha=0.5, beta=100).answer(QUESTION, flood).details["keywords"] == ["Gothenburg"]
    answer = RobustRag(generator, alpha=0.5, beta=100, sources=Sources()).answer(QUESTION, flood)
    assert (answer.details["keywords"], answer.guarantee_unit) == (["Stockholm"], "sources")
    assert str(answer.screening.verdicts[0].reason) == "answers 'Gothenburg' (votes: 1.00)"
    strangers = [*lies([f"evil{i}" for i in range(6)]), *TRUE]
    known = RobustRag(generator, sources=Sources(KNOWN)).answer(QUESTION, strangers)
    assert known.details["keywords"] == ["Stockholm"]
    assert str(known.screening.verdicts[0].reason) == "answers 'Gothenburg', and does not count beside known sources"
    with pytest.raises(OptionError, match="leave out the sources"):
        RobustRag(generator, sources=Sources()).certify(QUESTION, flood)


@settings(max_examples=40, deadline=None)
@given(rows, policies, st.lists(st.tuples(hosts, cities), max_size=4))
def test_robustrags_guarantee_in_sources_has_no_counterexample(rows, policy, owned_say) -> None:  # type: ignore[no-untyped-def]
    def final(prompt: Prompt) -> str:
        return last_word(prompt) if prompt.task == "atomic" else " and ".join(sorted(prompt.passages)) or "none"

    defense = RobustRag(ScriptedGenerator(final), doubtful=3, sources=Sources(policy))
    before = defense.answer(QUESTION, said(rows))
    owned = list(dict.fromkeys(host for host, _ in owned_say))[: before.guarantee or 0]
    if owned:
        attacked = [row for row in rows if row[0] not in owned] + [row for row in owned_say if row[0] in owned]
        assert defense.answer(QUESTION, said(attacked)).text == before.text


def differ(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Answers agree where their last words are equal, else they contradict each other."""
    return (0.9, 0.05, 0.05) if premise.split()[-1] == hypothesis.split()[-1] else (0.05, 0.05, 0.9)


def test_reliabilityrags_largest_set_is_that_of_the_most_sources() -> None:
    generator = ScriptedGenerator(lambda prompt: " ".join(prompt.passages[0].split()[-3:]))
    flood = [*lies(["evil"] * 4), *TRUE, page("c", "not far from Stockholm", 1)]
    plain = ReliabilityRag(generator, FakeNLI(differ)).screen(QUESTION, flood)
    assert plain.kept_indices == (0, 1, 2, 3), "equal numbers: the better rank wins"
    told = ReliabilityRag(generator, FakeNLI(differ), sources=Sources()).screen(QUESTION, flood)
    assert told.kept_indices == (4, 5, 6, 7)
    strangers = [*lies([f"evil{i}" for i in range(6)]), *TRUE, page("new", "yes, Stockholm")]
    known = ReliabilityRag(generator, FakeNLI(differ), sources=Sources(KNOWN)).screen(QUESTION, strangers)
    assert known.kept_indices == (6, 7, 8, 9), "who agrees with them stays, whoever he is"


def test_samples_are_drawn_by_source_and_trust() -> None:
    generator = ScriptedGenerator(lambda prompt: prompt.passages[0].split()[-1])
    flood = [*lies(["evil"] * 4), *TRUE[:1]]
    defense = SampledReliabilityRag(generator, FakeNLI(differ), gamma=1.0, sources=Sources())
    shares = defense._shares(Query(QUESTION), as_passages(flood))
    assert shares == pytest.approx([0.125] * 4 + [0.5])
    defense.sources = Sources(KNOWN)
    shares = defense._shares(Query(QUESTION), as_passages([*lies(["evil"] * 2), *TRUE[:1]]))
    assert shares[2] == pytest.approx(0.8 / 0.85)


@pytest.mark.parametrize("mode", ["paper", "reference"])
def test_radar_a_source_supports_itself_never_and_another_once(mode: Literal["paper", "reference"]) -> None:
    generator = ScriptedGenerator(lambda prompt: prompt.passages[0] if prompt.task == "atomic" else "final")
    flood = [*lies(["evil"] * 5), *TRUE]
    plain = Radar(generator, FakeNLI(differ), mode=mode).screen(QUESTION, flood)
    assert 0 in plain.kept_indices
    told = Radar(generator, FakeNLI(differ), mode=mode, sources=Sources()).screen(QUESTION, flood)
    assert told.kept_indices == (5, 6, 7)
    assert "as passage 0 of its source" in str(told.verdicts[3].reason)
    assert len(told.evidence["answering"]) == 4
    strangers = [*lies([f"evil{i}" for i in range(5)]), *TRUE, page("new", "sure: Stockholm")]
    known = Radar(generator, FakeNLI(differ), mode=mode, sources=Sources(KNOWN)).screen(QUESTION, strangers)
    assert set(known.kept_indices) >= {5, 6, 7}
    assert not set(known.kept_indices) & {0, 1, 2, 3, 4}


def test_radar_of_two_sources_only_the_answers_agree_that_agree_most() -> None:
    a, b = Voice("a", "a", "seen", 1.0), Voice("b", "b", "seen", 0.25)
    agreement = np.array([[1.0, 0.6, 0.9], [0.6, 1.0, 0.8], [0.9, 0.8, 1.0]])
    once = one_voice_agreement(agreement, [a, a, b])
    np.testing.assert_allclose(once, [[1.0, 0, 0.45], [0, 1.0, 0], [0.45, 0, 0.25]])
    fresh = Voice("c", "c", "fresh", 0.05, counts=False)
    np.testing.assert_allclose(one_voice_agreement(agreement, [a, fresh, b])[1], 0)
    np.testing.assert_array_equal(one_voice_agreement(agreement, [Voice(name) for name in "xyz"]), agreement)


def test_madam_has_one_agent_for_each_source_and_debates_with_those_that_count() -> None:
    def reply(prompt: Prompt) -> str:
        if prompt.task == "atomic":
            return f"Answer: {last_word(prompt)} Explanation: so it says"
        return f"All Correct Answers: {', '.join(sorted({text.split()[1] for text in prompt.passages}))}"

    generator = ScriptedGenerator(reply)
    answer = Madam(generator, sources=Sources(KNOWN)).answer(QUESTION, [*lies(["evil"] * 5), *TRUE])
    assert answer.text == "Stockholm"
    assert "does not count beside known sources" in str(answer.screening.verdicts[0].reason)
    assert str(answer.screening.verdicts[5].reason) == "its agent answers 'Stockholm'"
    first = [prompt for prompt in generator.prompts if prompt.task == "atomic"][:4]
    assert first[0].passages[0] == "\n\n".join(p.text for p in lies(["evil"] * 5))
    apart = Madam(generator, sources=Sources()).answer(QUESTION, [*lies(["evil"] * 5), *TRUE])
    assert apart.text == "Gothenburg, Stockholm"
    silent = Madam(generator, sources=Sources(KNOWN)).answer(QUESTION, [page("a", "unknown"), *lies(["evil"])])
    assert "does not count" not in str(silent.screening.verdicts[1].reason)


def test_astuterag_is_shown_one_document_for_each_source() -> None:
    generator = ScriptedGenerator(lambda prompt: "Stockholm")
    AstuteRag(generator, sources=Sources()).answer(QUESTION, [*lies(["evil"] * 3), *TRUE])
    assert len(generator.prompts[-1].passages) == 4

"""RADAR with a memory: Algorithm 1, the store around it, and the released code's differences."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Radar
from unpoison.beliefs import Belief, MemoryBeliefs, belief_key
from unpoison.defenses.radar import posterior
from unpoison.errors import InputError, StoreError
from unpoison.models import FakeEncoder, FakeNLI, ScriptedGenerator

QUESTION = "Who is the mayor?"
KEY = belief_key(QUESTION)


def reader(**options):
    """Reads a passage as its first letter; synthesizes by majority; answers from documents with their first letter."""

    def reply(prompt):
        if prompt.task == "atomic":
            return prompt.passages[0][0].replace("-", "I don't know")
        letters = [text[0] for text in prompt.passages] or ["from memory"]
        return max(dict.fromkeys(letters), key=letters.count)

    return ScriptedGenerator(reply, **options)


def judge(same=0.9, other=0.05, conflict=0.8):
    """Equal letters agree; different ones contradict."""

    def judged(premise, hypothesis):
        equal = premise[-1] == hypothesis[-1]
        return (same, 1 - same, 0.0) if equal else (other, 1 - other - conflict, conflict)

    return FakeNLI(judged)


def encoder():
    return FakeEncoder(dict(zip("ABCX", np.eye(4).tolist(), strict=True)))


def make(store=None, **options):
    store = MemoryBeliefs() if store is None else store
    return Radar(reader(), judge(), store, **{"encoder": encoder(), **options})


class TestBayes:
    def test_the_worked_values(self):
        assert posterior(0.8, 0.9) == pytest.approx(0.972973, abs=1e-6)
        assert posterior(1.0, 0.3) == pytest.approx(0.976974, abs=1e-6)
        assert posterior(0.0, 0.7) == pytest.approx(posterior(0.01, 0.7))

    @given(st.floats(0, 1), st.floats(0, 1))
    def test_it_stays_a_probability_and_one_half_says_nothing(self, prior, likelihood):
        assert 0 <= posterior(prior, likelihood) <= 1
        assert posterior(prior, 0.5) == pytest.approx(min(max(prior, 0.01), 0.99))

    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_more_support_never_lowers_it(self, prior, one, two):
        low, high = sorted((one, two))
        assert posterior(prior, low) <= posterior(prior, high) + 1e-12
        assert posterior(low, prior) <= posterior(high, prior) + 1e-12

    @given(st.floats(0.02, 0.98), st.floats(0.02, 0.98))
    def test_support_and_its_complement_mirror_each_other(self, prior, likelihood):
        assert posterior(prior, likelihood) == pytest.approx(1 - posterior(1 - prior, 1 - likelihood), abs=1e-9)


class TestSteps:
    def test_the_first_step_answers_from_documents_and_remembers(self):
        store = MemoryBeliefs()
        radar = make(store)
        answer = radar.answer(QUESTION, ["A one", "A two", "B"])
        assert radar.models.generator.prompts[-1].passages == ("A one", "A two")
        assert answer.text == "A"
        assert answer.belief.previous is None
        assert answer.belief.prior is answer.belief.posterior is answer.belief.kept is None
        # Eq. 11 and 12: agreement 1, 1, 0.05 and conflict 0, 0, 0.8 with the three atomic answers.
        assert store.get(KEY).answer == "A"
        assert store.get(KEY).weights == pytest.approx((2.05 / 3, 0.8 / 3))
        assert answer.belief.saved

    def test_the_second_step_puts_the_previous_answer_into_the_cut(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.8, 0.1))
        radar = make(store)
        answer = radar.answer(QUESTION, ["A one", "A two", "B"])
        belief_told = answer.belief
        assert belief_told.prior == (0.8, 0.1)
        assert belief_told.likelihood == pytest.approx((2.05 / 3, 0.8 / 3))
        assert belief_told.posterior == pytest.approx((posterior(0.8, 2.05 / 3), posterior(0.1, 0.8 / 3)))
        assert belief_told.kept
        assert radar.models.generator.prompts[-1].task == "synthesize"
        assert radar.models.generator.prompts[-1].passages == ("A", "A", "A")  # two passages and the memory
        assert answer.screening.kept_indices == (0, 1)
        assert answer.screening.evidence["memory"] == pytest.approx(belief_told.posterior)
        assert answer.screening.evidence["ties"] == pytest.approx([1.0, 1.0, 0.05])

    def test_the_reason_says_what_decided_on_the_previous_answer(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.8, 0.1))
        answer = make(store).answer(QUESTION, ["A one", "A two", "B"])
        likely = posterior(0.8, 2.05 / 3), posterior(0.1, 0.8 / 3)
        assert answer.belief.reason == f"support {likely[0]:.2f} against {likely[1]:.2f}"
        sides = [verdict.reason.code for verdict in answer.screening.verdicts]
        assert sides == ["radar.trusted"] * 2 + ["radar.contradicted"]

    def test_an_unlikely_previous_answer_may_be_held_by_those_that_agree_and_may_then_be_an_outlier(self):
        passages = ["A one", "A two"]
        for options, kept, why in (
            ({"outlier": -1.0}, True, "but trusted passages agree with it"),
            ({}, False, "it is unlike the other trusted answers, with support 0.23 against 0.77"),
        ):
            store = MemoryBeliefs()
            store.put(KEY, Belief("B", 0.2, 0.8))
            radar = Radar(reader(), judge(other=0.55, conflict=0.45), store, encoder=encoder(), **options)
            belief_told = radar.answer(QUESTION, passages).belief
            assert belief_told.posterior == pytest.approx((0.2340, 0.7660), abs=1e-4)
            assert belief_told.kept is kept
            assert why in belief_told.reason

    def test_documents_do_not_depend_on_memory_in_paper_mode(self):
        store, passages = MemoryBeliefs(), ["A one", "A two", "B", "-"]
        store.put(KEY, Belief("B", 0.9, 0.05))
        with_memory = make(store).answer(QUESTION, passages).screening.evidence
        without = make().screen(QUESTION, passages).evidence
        for name in ("source", "sink", "centrality", "agreement"):
            assert with_memory[name] == pytest.approx(without[name])

    def test_a_single_poison_does_not_move_a_remembered_answer(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.95, 0.02))
        answer = make(store).answer(QUESTION, ["X", "A"])
        assert answer.text == "A"
        assert answer.belief.kept

    def test_a_genuine_change_is_followed(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.95, 0.02))
        answer = make(store).answer(QUESTION, ["B one", "B two", "B three", "A"])
        assert answer.text == "B"
        assert answer.belief.kept is False
        assert store.get(KEY).answer == "B"

    def test_without_evidence_the_previous_answer_stays_and_no_model_is_asked_again(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.9, 0.05))
        version = store.get(KEY).version
        for passages in (["-"], []):
            radar = make(store)
            answer = radar.answer(QUESTION, passages)
            assert (answer.text, answer.abstained) == ("A", False)
            assert "no evidence against it" in answer.belief.reason
            assert len(radar.models.generator.prompts) == len(passages)
        assert store.get(KEY).version == version

    def test_nothing_trusted_leaves_the_belief(self):
        for fallback, text in (("abstain", "I don't know."), ("previous", "A")):
            store = MemoryBeliefs()
            store.put(KEY, Belief("A", 0.05, 0.95))
            answer = make(store, fallback=fallback).answer(QUESTION, ["-"])
            assert answer.text == text
            assert answer.belief.kept is False
            assert store.get(KEY) == Belief("A", 0.05, 0.95)

    def test_at_the_first_step_nothing_trusted_remembers_nothing(self):
        store = MemoryBeliefs()
        answer = make(store).answer(QUESTION, ["-"])
        assert answer.abstained
        assert answer.belief.belief is None
        assert not answer.belief.saved
        assert store.get(KEY) is None

    def test_of_two_that_are_unlike_the_stronger_stays(self):
        for weights, text in (((0.99, 0.01), "A"), ((0.02, 0.01), "B")):
            store = MemoryBeliefs()
            store.put(KEY, Belief("A", *weights))
            radar = Radar(reader(), FakeNLI(lambda *_: (0.1, 0.9, 0.0)), store, encoder=encoder())
            assert radar.answer(QUESTION, ["B"]).text == text

    def test_algorithm_1_over_a_stream(self):
        radar = make()
        belief_told = [
            radar.answer(QUESTION, list(letters)).text for letters in ("AAB", "AXA", "AAX", "BBA", "BBB", "BXB")
        ]
        assert belief_told == ["A", "A", "A", "B", "B", "B"]

    def test_two_runs_give_identical_bytes(self):
        def run():
            radar = make()
            return [json.dumps(radar.answer(QUESTION, list(s)).belief.to_dict()) for s in ("AAB", "AXA", "BBB")]

        assert run() == run()

    def test_priors_come_from_the_whole_answer(self):
        """Only what is remembered is cut; three equal answers of any length fully support each other."""
        store, long = MemoryBeliefs(), "The mayor is A. " + "She was elected in a close vote. " * 35
        radar = Radar(ScriptedGenerator(long), beliefs=store)
        answer = radar.answer(QUESTION, ["one", "two", "three"])
        assert answer.text == long
        assert answer.belief.belief.weights == (1.0, 0.0)
        assert store.get(KEY).answer.endswith("\u2026")
        again = Radar(ScriptedGenerator("I don't know"), beliefs=store).answer(QUESTION, ["one"])
        assert again.text == store.get(KEY).answer
        assert "truncated when it was stored" in " ".join(again.screening.evidence.notes)

    def test_screen_neither_reads_nor_writes(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("B", 0.99, 0.01))
        assert make(store).screen(QUESTION, ["A", "A", "X"]).kept_indices == (0, 1)
        assert store.get(KEY) == Belief("B", 0.99, 0.01)

    def test_without_beliefs_nothing_changes(self):
        answer = Radar(reader(), judge(), encoder=encoder()).answer(QUESTION, ["A", "A", "X"])
        assert answer.belief is None
        assert "belief" not in answer.to_dict()

    def test_keys_can_be_given(self):
        store = MemoryBeliefs()
        make(store).answer("  WHO is\tthe mayor ", ["A", "A"])
        make(store).answer(QUESTION, ["B", "B"], key="tenant-7")
        assert [store.get(key).answer for key in (KEY, "tenant-7")] == ["A", "B"]
        with pytest.raises(InputError, match="key"):
            make(store).answer(QUESTION, ["B"], key="white space")


class TestReferenceMode:
    def test_atomic_answers_at_every_step(self):
        radar = make(mode="reference")
        for _ in range(2):
            radar.answer(QUESTION, ["A one", "A two", "B", "B"])
            assert radar.models.generator.prompts[-1].task == "synthesize"

    def test_nothing_selected_synthesizes_from_the_passages_and_remembers_it(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.99, 0.01))
        radar = Radar(reader(), FakeNLI(lambda *_: (0.1, 0.9, 0.0)), store, mode="reference", encoder=encoder())
        answer = radar.answer(QUESTION, ["B one", "-"])
        final = radar.models.generator.prompts[-1]
        assert (answer.screening.kept, answer.text) == ((), "B")
        assert (final.task, final.passages) == ("synthesize", ("B one", "Previous reliable conclusion: A"))
        assert (store.get(KEY).answer, answer.belief.saved) == ("B", True)
        assert store.get(KEY).weights == pytest.approx((0.1, 0.0))

    def test_no_informative_passage_answers_from_all_and_keeps_the_priors(self):
        store = MemoryBeliefs()
        radar = make(store, mode="reference")
        answer = radar.answer(QUESTION, ["-", "- two"])
        assert (radar.models.generator.prompts[-1].task, answer.text) == ("answer", "-")
        assert store.get(KEY) == Belief("-", 1.0, 0.0)

    def test_alone_it_answers_as_the_released_code_where_nothing_is_selected(self):
        for passages, task, shown in ((["-", "-"], "answer", 2), (["A", "A", "A"], "answer-alone", 0)):
            radar = Radar(reader(), judge(), mode="reference", encoder=encoder())
            assert radar.answer(QUESTION, passages).screening.kept == ()
            final = radar.models.generator.prompts[-1]
            assert (final.task, len(final.passages)) == (task, shown)

    def test_the_previous_answer_takes_part_in_its_successors_priors(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.9, 0.05))
        answer = make(store, mode="reference", contradiction_cut=1.0).answer(QUESTION, ["A", "A", "B"])
        assert answer.text == "A"
        assert store.get(KEY).support == pytest.approx((0.9 + 0.9 + 0.05 + 0.9) / 4)  # equal answers are judged too

    def test_no_evidence_counts_as_full_support(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("A", 0.5, 0.5))
        belief_told = make(store, mode="reference").answer(QUESTION, ["-"]).belief
        assert (belief_told.likelihood, belief_told.posterior) == ((1.0, 0.0), (1.0, 0.0))

    def test_the_memory_takes_part_in_centrality(self):
        store = MemoryBeliefs()
        store.put(KEY, Belief("B", 0.9, 0.05))
        passages = ["A one", "B two"]
        with_memory = make(store, mode="reference").answer(QUESTION, passages).screening.evidence["centrality"]
        assert with_memory[1] > with_memory[0]


class Failing(MemoryBeliefs):
    """A store that is down for some operations, or whose beliefs others change in between."""

    def __init__(self, *operations, rivals=0):
        super().__init__()
        self.operations, self.rivals = operations, rivals

    def get(self, key):
        if "get" in self.operations:
            raise StoreError("the server is gone")
        return super().get(key)

    def put(self, key, belief, **options):
        if "put" in self.operations:
            raise StoreError("the server is gone")
        if self.rivals:
            self.rivals -= 1
            super().put(key, Belief("A", 0.7, 0.1))
        return super().put(key, belief, **options)


class TestStore:
    @pytest.mark.parametrize("operation", ["get", "put"])
    def test_a_store_that_is_down_is_an_error(self, operation):
        with pytest.raises(StoreError, match="gone"):
            make(Failing(operation)).answer(QUESTION, ["A", "A"])

    def test_a_rival_makes_it_conclude_again_without_reading_again(self):
        store = Failing(rivals=2)
        radar = make(store)
        answer = radar.answer(QUESTION, ["A one", "A two", "X"])
        assert answer.belief.previous == "A"
        assert answer.belief.prior == (0.7, 0.1)
        assert [prompt.task for prompt in radar.models.generator.prompts].count("atomic") == 3
        assert sum((call.kind, call.purpose) == ("generate", "atomic answer") for call in answer.calls) == 3
        assert sum(call.purpose == "final answer" for call in answer.calls) == 3

    def test_rivals_without_end_are_an_error(self):
        with pytest.raises(StoreError, match="at each of 5 attempts"):
            make(Failing(rivals=99)).answer(QUESTION, ["A", "A"])

    def test_asynchronously_the_same(self):
        passages = [list("AAB"), list("AXA"), list("BBB")]
        sync, other = make(), make()
        one = [sync.answer(QUESTION, given) for given in passages]

        async def ask():
            return [await other.aanswer(QUESTION, given) for given in passages]

        two = asyncio.run(ask())
        assert [a.text for a in one] == [a.text for a in two]
        assert [a.belief.to_dict() for a in one] == [a.belief.to_dict() for a in two]

    def test_a_store_can_be_named(self):
        assert repr(make("memory").beliefs).startswith("MemoryBeliefs")

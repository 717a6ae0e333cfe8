"""Questions over time: readers, adaptations, and what is counted."""

from __future__ import annotations

import asyncio
import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from unpoison import Radar, TrustRag, Vanilla
from unpoison.beliefs import MemoryBeliefs
from unpoison.bench.evaluation.adaptations import (
    CumulativeSnapshot,
    EachStep,
    LightweightHistory,
    Remembering,
    _Reminded,
)
from unpoison.bench.evaluation.examples import FieldError
from unpoison.bench.evaluation.streams import StepRecord, StreamResult, run_stream
from unpoison.bench.evaluation.timelines import (
    add_time,
    craft_steps,
    load_timelines,
    moment_of,
    step_context,
    stream_rows,
)
from unpoison.errors import InputError, OptionError
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import AsyncGenerator, BatchGenerator, TokenByToken


@pytest.fixture(scope="module")
def sample():
    return load_timelines("timeline")


class TestSample:
    def test_it_is_as_large_as_promised(self, sample):
        assert len(sample) >= 30
        assert all(len(timeline) == 4 for timeline in sample)
        assert all(timeline.times == ("2021", "2022", "2023", "2024") for timeline in sample)

    def test_answers_change_stay_and_change_back(self, sample):
        kinds = {"stays": 0, "changes": 0, "returns": 0}
        for timeline in sample:
            answers = [step.correct_answers[0] for step in timeline.steps]
            runs = [a for i, a in enumerate(answers) if i == 0 or a != answers[i - 1]]
            kinds["stays" if len(runs) == 1 else "changes" if len(set(runs)) == len(runs) else "returns"] += 1
        assert min(kinds.values()) >= 5

    def test_every_step_has_passages_with_the_answer_a_poison_and_an_injection(self, sample):
        for timeline in sample:
            for step in timeline.steps:
                clean = [entry.passage.text for entry in step.passages_by_label("clean")]
                assert 6 <= len(clean) <= 8
                assert sum(step.correct_answers[0] in text for text in clean) >= 1
                assert not any(step.incorrect_answers[0] in text for text in clean)
                for attack in ("radar-incorrect-context", "pia"):
                    assert all(step.incorrect_answers[0] in poison.text for poison in step.poisons(attack))
                    assert step.poisons(attack)

    def test_the_attacker_never_wants_what_is_ever_right(self, sample):
        for timeline in sample:
            right = {answer for step in timeline.steps for answer in step.correct_answers}
            assert not right & {answer for step in timeline.steps for answer in step.incorrect_answers}


def test_situatedqa_gives_one_step_a_year_with_stale_answers(tmp_path):
    row = {
        "id": "s1",
        "dataset": "situatedqa-temporal",
        "question": "who is it",
        "correct_answers": ["B"],
        "incorrect_answers": ["A"],
        "passages": [],
        "timeline": [{"year": 2019, "answers": ["B", "B"]}, {"year": 1999, "answers": ["Ada"]}],
    }
    path = tmp_path / "situated.jsonl"
    path.write_text(json.dumps(row))
    (timeline,) = load_timelines(path)
    assert timeline.times == ("1999", "2019")
    assert [step.correct_answers for step in timeline.steps] == [("Ada",), ("B",)]
    assert [step.incorrect_answers for step in timeline.steps] == [("B",), ("Ada",)]
    assert timeline.is_change(1)
    assert not timeline.is_change(0)


def test_timeqa_is_grouped_by_what_is_asked_of_whom(tmp_path):
    rows = [
        {"id": f"t{i}", "question": q, "entity": "E", "relation": relation, "passages": [], "correct_answers": ["a"]}
        for i, (q, relation) in enumerate(
            [("Who led E from 2001 to 2003?", "P1"), ("Who led E in 1999?", "P1"), ("Who owned E in 2000?", "P2")]
        )
    ]
    path = tmp_path / "timeqa.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    first, second = sorted(load_timelines(path), key=lambda entry: entry.id)
    assert (first.id, first.times, [step.id for step in first.steps]) == ("E/P1", ("1999", "2001"), ["t1", "t0"])
    assert second.times == ("2000",)


def test_rows_with_a_series_or_a_date_alone(tmp_path):
    rows = [
        {"id": "b", "question": "q", "date": "2022/09/09"},
        {"id": "a", "question": "q2", "date": "2022/09/02"},
        {"id": "x@2", "question": "x", "series": "x", "time": "2024-02"},
        {"id": "x@1", "question": "x", "series": "x", "time": "2024-01"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [(entry.id, entry.times) for entry in load_timelines(path)] == [
        ("x", ("2024-01", "2024-02")),
        ("a", ("2022-09-02",)),
        ("b", ("2022-09-09",)),
    ]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "steps"), [("situatedqa_timeline", 1000), ("timeqa", 450), ("realtimeqa_weekly", 150)]
)
def test_the_public_files_are_read_as_streams(shared_data, name, steps):
    timelines = load_timelines(shared_data / f"{name}.jsonl")
    assert sum(map(len, timelines)) >= steps
    assert all(list(timeline.times) == sorted(timeline.times) for timeline in timelines)
    assert sum(not timeline.times[0] for timeline in timelines) <= 5  # questions of TimeQA that name no year


def test_stream_rows():
    row = {
        "id": "r",
        "question": "Who?",
        "yearly_contexts": {
            "2020": {"docs": [{"title": "T", "content": "B"}], "answer": "B", "incorrect_context": ["X"]},
            "2018": {"docs": [{"content": "A"}], "answer": ["A"], "injection": ["say X"]},
        },
    }
    steps = stream_rows(row, 1, "file")
    assert [(step["time"], [p["text"] for p in step["passages"]]) for step in steps] == [
        ("2018", ["A"]),
        ("2020", ["B"]),
    ]
    assert stream_rows({"question": "q", "passages": [], "date": "2022/09/02"}, 1, "file")[0]["time"] == "2022-09-02"
    assert moment_of({"year": 0}) == "0"
    with pytest.raises(FieldError, match="time is missing"):
        stream_rows({"question": "q", "passages": []}, 1, "file")


def echo():
    """Answers with the passages' first words; abstains when it sees none."""
    return ScriptedGenerator(lambda prompt: " ".join(text.split()[0] for text in prompt.passages) or "I don't know")


class TestAdaptations:
    def test_each_step_alone(self):
        answerer = EachStep(Vanilla(generator=echo()))
        assert [answerer.answer("q", [word]).text for word in "ab"] == ["a", "b"]
        assert answerer.memory_bytes("any") == 0

    def test_new_passages_are_put_before_all_seen(self):
        answerer = CumulativeSnapshot(Vanilla(generator=echo()))
        told = [answerer.answer("q", list(words), key="k").text for words in ("ab", "c", "d")]
        assert told == ["a b", "c a b", "d c a b"]
        assert answerer.answer("other", ["z"]).text == "z"
        assert answerer.memory_bytes("k") == 4

    def test_history_adds_the_previous_answer_to_the_final_prompt_only(self):
        generator = echo()
        answerer = LightweightHistory(Vanilla(generator=generator))
        assert answerer.answer("q", ["a"], key="k").text == "a"
        answerer.answer("q", ["b"], key="k")
        assert generator.prompts[-1].passages == ("b", "The answer at an earlier time was: a")
        answerer.answer("q", ["c"], key="other")
        assert generator.prompts[-1].passages == ("c",)
        assert answerer.memory_bytes("other") == 1

    def test_history_forgets_nothing_when_a_step_abstains(self):
        generator = echo()
        answerer = LightweightHistory(Vanilla(generator=generator))
        answerer.answer("q", ["a"])
        generator_text = answerer.answer("q", []).text
        assert generator_text
        answerer.answer("q", ["b"])
        assert "a" in generator.prompts[-1].passages[-1]

    def test_history_reaches_a_decision_as_a_note(self):
        generator = ScriptedGenerator(lambda prompt: f"about {prompt.task}")
        answerer = LightweightHistory(TrustRag(generator))
        for _ in range(2):
            answerer.answer("q", ["a b c", "d e f", "g h i"])
        assert generator.prompts[-1].notes["Earlier answer"] == "The answer at an earlier time was: about decide"
        assert not any(
            "earlier time" in text for p in generator.prompts if p.task == "knowledge" for text in p.passages
        )

    def test_history_hides_nothing_that_a_generator_can_do(self):
        class Able(ScriptedGenerator):
            ends = frozenset({0})

            def generate_batch(self, prompts, /, *, timeout=None):
                return [self.generate(prompt) for prompt in prompts]

            async def agenerate(self, prompt, /, *, timeout=None):
                return self.generate(prompt)

            def next_token(self, prompts, tokens, /):
                self.prompts += prompts
                return np.zeros((len(prompts), 1))

            def tokens(self, text, /):
                return [len(text)]

            def text(self, tokens, /):
                return "text"

        generator = Able("a")
        prompt = answer_prompt("q", ["b"])
        reminded = _Reminded(generator, "a")
        assert isinstance(reminded, BatchGenerator) and isinstance(reminded, AsyncGenerator)
        assert isinstance(reminded, TokenByToken) and reminded.ends == {0} and reminded.tokens("abc") == [3]
        reminded.generate_batch([prompt])
        reminded.next_token([prompt], ())
        asyncio.run(reminded.agenerate(prompt))
        assert [p.passages[-1] for p in generator.prompts] == ["The answer at an earlier time was: a"] * 3
        assert not isinstance(_Reminded(echo(), "a"), BatchGenerator)
        copy(reminded)

    def test_remembering_needs_beliefs(self):
        with pytest.raises(OptionError, match="beliefs"):
            Remembering(Vanilla(generator=echo()))
        with pytest.raises(OptionError, match="beliefs"):
            Remembering(Radar(echo()))


def records(pattern: str, changed: str = "") -> list[StepRecord]:
    """`y` right, `n` wrong, `x` the attacker's; `changed` marks the steps with a new truth by their numbers."""
    return [StepRecord("t", i, str(i), "", c == "y", c == "x", str(i) in changed) for i, c in enumerate(pattern)]


class TestCounts:
    def test_accuracy_and_attack_success_by_step_and_over_all(self):
        result = StreamResult(tuple(records("yxny")))
        assert result.accuracy().value == 0.5
        assert result.attack_success().value == 0.25
        assert [result.accuracy(step).value for step in range(result.steps)] == [1, 0, 0, 1]
        assert result.attack_success(1).value == 1

    @pytest.mark.parametrize(
        ("pattern", "changed", "share"),
        [("yyyy", "", 0), ("yxyn", "", 1), ("yyny", "", 0.5), ("yn", "1", None), ("nn", "", None), ("ynyy", "1", 0)],
    )
    def test_unneeded_changes(self, pattern, changed, share):
        entry = StreamResult(tuple(records(pattern, changed))).spurious_changes().value
        assert entry == pytest.approx(share) if share is not None else entry != entry

    @pytest.mark.parametrize(
        ("pattern", "changed", "lags"),
        [("yyyy", "1", [0]), ("ynny", "1", [2]), ("ynnn", "1", [None]), ("ynyn", "13", [1, None]), ("yyyy", "", [])],
    )
    def test_lag_ends_with_the_next_change(self, pattern, changed, lags):
        result = StreamResult(tuple(records(pattern, changed)))
        assert result.lags() == lags
        followed = [lag for lag in lags if lag is not None]
        assert result.mean_lag() == (sum(followed) / len(followed) if followed else None)
        if lags:
            assert result.update_rate().value == len(followed) / len(lags)

    def test_intervals_resample_questions_not_steps(self):
        """Six steps that always go together are one observation; counted as six, the coverage was one half."""
        rng, covered = np.random.default_rng(0), 0
        for _ in range(400):
            told = ["yyyyyy" if right else "nnnnnn" for right in rng.random(30) < 0.7]
            steps = [replace(one, timeline=str(i)) for i, pattern in enumerate(told) for one in records(pattern)]
            entry = StreamResult(tuple(steps)).accuracy()
            covered += entry.low <= 0.7 <= entry.high
            assert entry.count == 30
        assert covered >= 0.92 * 400


class TestRun:
    def test_poison_takes_its_place_in_every_step(self, sample):
        step = sample[0].steps[0]
        poison = craft_steps(sample[:1], "published:attack=pia")[0][step.id]
        assert [i for i in range(7) if i in step_context(step, poison, 3).poison] == [2]
        assert step_context(step, poison, None).poison == {len(step.passages_by_label("clean")) - 1}
        assert not step_context(step).poison

    def test_every_step_has_the_poison_of_its_own_time_as_often_as_asked(self, sample):
        texts, problems = craft_steps(sample[:2], "published:attack=radar-incorrect-context,repeat=10")
        assert not problems
        for step in (step for timeline in sample[:2] for step in timeline.steps):
            told, *_ = step.poisons("radar-incorrect-context")
            assert texts[step.id].text == "\n\n".join([told.text] * 10)

    def test_a_step_that_cannot_be_attacked_is_told(self, sample):
        assert set(craft_steps(sample[:2], "published:attack=garag")[1]) == {one.id for one in sample[:2]}
        with pytest.raises(InputError, match="has no texts"):
            run_stream(EachStep(Radar("extractive")), sample[:1], attack="published:attack=garag")

    def test_the_time_can_be_told(self, sample):
        context = add_time(step_context(sample[0].steps[0]), "2021")
        assert context.query == "Who is the mayor of Tarnford in 2021?"
        assert context.passages[0].title.startswith("[2021] ")

    def test_memory_is_kept_under_the_question_whether_or_not_the_time_is_told(self, sample):
        store = MemoryBeliefs()
        told = []
        run_stream(Remembering(Radar("extractive", beliefs=store)), sample[:2], with_date=True, progress=told.append)
        assert len(list(store.items())) == 2
        assert [record.kept is None for record in told] == [True, False, False, False] * 2

    def test_static_and_dynamic_over_the_sample(self, sample):
        """The memory keeps answers that nothing speaks against, and costs less than a kilobyte."""
        options = {"attack": "published:attack=radar-incorrect-context", "position": 1}
        static = run_stream(EachStep(Radar("extractive")), sample[:8], **options)
        dynamic = run_stream(Remembering(Radar("extractive", beliefs=MemoryBeliefs())), sample[:8], **options)
        assert dynamic.spurious_changes().value <= static.spurious_changes().value
        assert dynamic.accuracy().value >= static.accuracy().value
        assert 0 < max(dynamic.stored) <= 1024
        again = run_stream(Remembering(Radar("extractive", beliefs=MemoryBeliefs())), sample[:8], **options)
        assert again.records == dynamic.records

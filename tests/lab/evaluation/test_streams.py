"""Questions over time: readers, what methods carry, what is counted, RADAR's tables, and the report."""

from __future__ import annotations

import asyncio
import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from unpoison import Radar, TrustRag
from unpoison.beliefs import MemoryBeliefs
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import OptionError, UnknownNameError
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import AsyncGenerator, BatchGenerator, TokenByToken
from unpoison_lab.evaluation.adaptations import Answerer, Method, _Reminded, methods_of
from unpoison_lab.evaluation.presets import StreamPreset, load_stream_preset, stream_preset_names
from unpoison_lab.evaluation.streams import (
    ATTACKS,
    StepRecord,
    StreamResult,
    StreamStudy,
    craft_steps,
    load_timelines,
    run_study,
    step_context,
)
from unpoison_lab.report import over_time
from unpoison_lab.report.over_time import study_tables
from unpoison_lab.report.tables import SAME

HOSTILE = "</td><script>document.title='owned'</script><img src=x>"


@pytest.fixture(scope="module")
def sample():
    return load_timelines("timeline")


@pytest.fixture(scope="module")
def study() -> StreamStudy:
    return run_study("timeline", methods_of(["vanilla", "radar"]), limit=3)


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_the_sample_changes_stays_and_changes_back(sample):
    assert len(sample) >= 30
    assert all(timeline.times == ("2021", "2022", "2023", "2024") for timeline in sample)
    kinds = {"stays": 0, "changes": 0, "returns": 0}
    for timeline in sample:
        answers = [step.correct_answers[0] for step in timeline.steps]
        runs = [a for i, a in enumerate(answers) if i == 0 or a != answers[i - 1]]
        kinds["stays" if len(runs) == 1 else "changes" if len(set(runs)) == len(runs) else "returns"] += 1
    assert min(kinds.values()) >= 5


def echo():
    """Answers with the passages of its prompt."""
    return ScriptedGenerator(lambda prompt: " ".join(prompt.passages))


class TestAnswerer:
    def test_passages_are_kept_newest_first(self):
        answerer = Answerer(Vanilla(generator=echo()), "passages")
        assert answerer.answer("q", ["a"], key="k").text == "a"
        assert answerer.answer("q", ["b"], key="k").text == "b a"
        assert answerer.answer("q", ["z"], key="other").text == "z"

    def test_the_previous_answer_reaches_the_final_prompt_only(self):
        generator = echo()
        answerer = Answerer(Vanilla(generator=generator), "answer")
        answerer.answer("q", ["a"], key="k")
        answerer.answer("q", [], key="k")  # abstains, and forgets nothing
        answerer.answer("q", ["b"], key="k")
        assert generator.prompts[-1].passages[-1].startswith("The answer at an earlier time was: ")
        answerer.answer("q", ["c"], key="other")
        assert generator.prompts[-1].passages == ("c",)
        deciding = ScriptedGenerator(lambda prompt: f"about {prompt.task}")
        answerer = Answerer(TrustRag(deciding), "answer")
        for _ in range(2):
            answerer.answer("q", ["a b c", "d e f", "g h i"])
        assert deciding.prompts[-1].notes["Earlier answer"] == "The answer at an earlier time was: about decide"

    def test_a_reminded_generator_can_do_all_it_could(self):
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

        generator, prompt = Able("a"), answer_prompt("q", ["b"])
        reminded = _Reminded(generator, "a")
        assert isinstance(reminded, BatchGenerator) and isinstance(reminded, AsyncGenerator)
        assert isinstance(reminded, TokenByToken) and reminded.tokens("abc") == [3]
        reminded.generate_batch([prompt])
        reminded.next_token([prompt], ())
        asyncio.run(reminded.agenerate(prompt))
        assert [p.passages[-1] for p in generator.prompts] == ["The answer at an earlier time was: a"] * 3
        assert not isinstance(_Reminded(echo(), "a"), BatchGenerator)
        copy(reminded)

    def test_only_radar_has_beliefs(self):
        for defense, carries in (
            (Vanilla(generator=echo()), "beliefs"),
            (Radar(echo()), "beliefs"),
            (Radar(echo(), beliefs=MemoryBeliefs()), "passages"),
        ):
            with pytest.raises(OptionError, match="belief"):
                Answerer(defense, carries)


def records(pattern: str) -> list[StepRecord]:
    """`y` right, `n` wrong, `x` the attacker's."""
    return [StepRecord("t", i, c == "y", c == "x") for i, c in enumerate(pattern)]


class TestCounts:
    def test_accuracy_and_attack_success_by_step_and_over_all(self):
        result = StreamResult(tuple(records("yxny")))
        assert (result.accuracy().value, result.attack_success().value) == (0.5, 0.25)
        assert [result.accuracy(step).value for step in range(result.steps)] == [1, 0, 0, 1]

    def test_intervals_resample_questions_not_steps(self):
        """Six steps that always go together are one observation; counted as six, the coverage was one half."""
        rng, covered = np.random.default_rng(0), 0
        for _ in range(200):
            told = ["yyyyyy" if right else "nnnnnn" for right in rng.random(30) < 0.7]
            steps = [replace(one, timeline=str(i)) for i, pattern in enumerate(told) for one in records(pattern)]
            entry = StreamResult(tuple(steps)).accuracy()
            covered += entry.low <= 0.7 <= entry.high
            assert entry.count == 30
        assert covered >= 0.9 * 200


class TestRun:
    def test_poison_takes_its_place_in_every_step_or_stands_behind_the_last(self, sample):
        step = sample[0].steps[0]
        poison = craft_steps(sample[:1], "published:attack=pia")[0][step.id]
        assert step_context(step, poison, 3).poison == {2}
        assert step_context(step, poison, None).poison == {len(step.passages_by_label("clean")) - 1}
        short = step_context(step, poison, 50)
        assert short.poison == {len(short) - 1}
        assert not step_context(step).poison

    def test_a_step_that_cannot_be_attacked_is_told(self, sample):
        assert set(craft_steps(sample[:2], "published:attack=garag")[1]) == {one.id for one in sample[:2]}

    def test_every_method_meets_every_attack_at_every_step(self, study):
        assert list(study.results) == list(ATTACKS)
        for results in study.results.values():
            assert list(results) == list(study.methods)
            assert all(len(result.records) == study.steps == 12 for result in results.values())
        poisoned = study.results["poison, first"]
        assert poisoned["vanilla, static"].attack_success().value > poisoned["radar, dynamic"].attack_success().value

    def test_a_question_that_cannot_be_attacked_is_asked_under_no_attack_only(self, tmp_path):
        rows = [
            {
                "id": f"{name}@{step}",
                "series": name,
                "time": f"={step}{HOSTILE}",
                "question": f"who leads {name}? {HOSTILE}",
                "correct_answers": ["Ada"],
                "incorrect_answers": wrong,
                "passages": [{"text": f"Ada leads {name}. {HOSTILE}", "label": "clean"}],
            }
            for name, wrong in (("a", ["Bea"]), ("b", []))
            for step in range(2)
        ]
        attacks = {"none": (None, None), "PIA": ("pia:repeat=2", 1)}
        study = run_study(write(tmp_path / "rows.jsonl", rows), {HOSTILE: Method("radar", "nothing")}, attacks=attacks)
        asked = {name: {r.timeline for r in result[HOSTILE].records} for name, result in study.results.items()}
        assert asked == {"none": {"a", "b"}, "PIA": {"a"}}
        assert study.left_out[0].startswith("pia:repeat=2: 1 of 2 questions; the first: target 'b@0'")
        for text_of in over_time.WRITERS.values():
            text = text_of(study, None)
            assert text_of is over_time.as_json or ("<script" not in text and "<img" not in text)


def preset(name: str, generator: str = "extractive") -> StreamPreset:
    return load_stream_preset(name, generator=generator, nli="lexical")


class TestPresets:
    @pytest.mark.parametrize("name", stream_preset_names())
    def test_every_number_is_a_share_of_a_method_and_an_attack_that_exist(self, name):
        table = preset(name, "openai:deepseek-chat")
        assert table.source.startswith(f"RADAR, Table {name.rpartition('-')[2]} ")
        measured = {one.method: table.variants_of(one.method) for one in table.published}
        assert sorted(name for names in measured.values() for name in names) == sorted(table.methods)
        for method, names in measured.items():
            variants = [f"{method} (paper)", f"{method} (reference)"] if method.startswith("RADAR") else [method]
            assert names == variants
        assert {one.attack for one in table.published} == set(table.attacks)
        assert all(0 < one.value < 1 for one in table.published)
        assert not table.lacking

    def test_published_numbers_over_time_are_the_papers(self):
        """Spot checks by hand against the paper's tables."""
        numbers = {
            (name, one.method, one.attack, one.measure): one.value
            for name in stream_preset_names()
            for one in preset(name).published
        }
        assert numbers["radar-table-3", "Vanilla RAG", "PIA, position 1", "attack_success"] == 0.8701
        assert numbers["radar-table-3", "RADAR", "Poison, position 50", "accuracy"] == 0.7037
        assert numbers["radar-table-4", "InstructRAG", "benign", "accuracy"] == 0.8310
        assert numbers["radar-table-15", "RobustRAG", "PIA, position 25", "attack_success"] == 0.2649
        assert numbers["radar-table-16", "AstuteRAG", "benign", "accuracy"] == 0.2527
        assert numbers["radar-table-17", "RADAR (Static)", "PIA, position 50", "attack_success"] == 0.1279

    def test_baselines_carry_what_the_table_says_and_a_reader_does_not_write(self):
        by_table = {name: preset(name, "openai:gpt-4o").methods for name in ("radar-table-3", "radar-table-4")}
        assert {one.carries for one in by_table["radar-table-3"].values()} == {"passages", "beliefs"}
        assert {one.carries for one in by_table["radar-table-4"].values()} == {"answer", "beliefs"}
        assert set(preset("radar-table-3").lacking) == {"AstuteRAG", "InstructRAG"}
        with pytest.raises(UnknownNameError, match="radar-table-17"):
            preset("radar-table-71")

    def test_the_year_can_be_told_as_the_released_code_tells_it(self):
        plain, dated = load_timelines("timeline"), load_timelines("dated:timeline")
        assert dated[0].steps[0].question == f"{plain[0].steps[0].question} in {plain[0].times[0]}"
        assert [one.id for one in dated] == [one.id for one in plain]

    def test_how_often_answers_change_stands_beside_table_18(self):
        study = run_study(
            "timeline", {"vanilla": Method("vanilla", "nothing")}, attacks={"none": (None, None)}, limit=4
        )
        table = study_tables(study)[-1]
        changing = sum(any(one.is_change(step) for step in range(len(one))) for one in study.timelines)
        assert table.rows[0] == ("a change", "77.8", f"{25 * changing:.1f}")

    def test_measured_numbers_stand_beside_the_published_ones(self):
        table = preset("radar-table-17")
        study = run_study("timeline", table.methods, attacks=table.attacks, limit=2)
        accuracy, attacks, *_ = study_tables(study, table)
        assert accuracy.columns == ("", "benign", "PIA, position 1", "PIA, position 25", "PIA, position 50", SAME)
        assert attacks.columns == ("", "PIA, position 1", "PIA, position 25", "PIA, position 50", SAME)
        shown = 100 * study.results["benign"]["RADAR (Dynamic) (paper)"].accuracy().value
        assert accuracy.rows[2][:2] == ("RADAR (Dynamic) (paper)", f"74.02 \u2192 {shown:.1f}")
        assert accuracy.rows[-1][1:4] == ("yes", "injection", "injection position")
        assert "variant" in accuracy.rows[3][-1] and "variant" in accuracy.rows[2][-1]
        assert "published \u2192 measured" in over_time.as_markdown(study, table)
        assert len(json.loads(over_time.as_json(study, table))["preset"]["published"]) == 14


def test_page_and_json_have_every_figure(study):
    page = over_time.page(study)
    assert "radar, dynamic" in page
    assert "<script" not in page
    document = json.loads(over_time.as_json(study))
    one = next(one for one in document["results"] if (one["attack"], one["method"]) == ("none", "radar, dynamic"))
    result = study.results["none"]["radar, dynamic"]
    assert one["accuracy"]["value"] == result.accuracy().value
    assert [step["value"] for step in one["by_step"]["accuracy"]] == [result.accuracy(i).value for i in range(4)]

import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from unpoison.core import registry
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Verdict
from unpoison.defenses.base import Defense
from unpoison.errors import InputError, ModelError, OptionError
from unpoison.io.output import read_rows
from unpoison.models.doubles import FakeEncoder, FakeNLI, ScriptedGenerator
from unpoison_lab.evaluation.poisoning import craft_all
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import lock_folder, open_run
from unpoison_lab.evaluation.scenarios import Scenario, make_attack
from unpoison_lab.evaluation.summary import summarise
from unpoison_lab.evaluation.workbench import NoisyNLI

TIMES = {"screening_median", "screening_p95", "seconds_median", "seconds_p95"}

SCENARIOS = [
    Scenario("sample", attack=attack, poisons=poisons, defense=defense, limit=6)
    for attack, poisons in (("none", 0), ("poisonedrag", 2))
    for defense in ("vanilla", "grada", "trustrag")
]


def figures(run):
    """Everything but the times, which are measured afresh."""
    return [
        {name: repr(figure) for name, figure in summary.figures.items() if name not in TIMES}
        | {"ranks": summary.poison_ranks, "done": summary.done, "problems": summary.problems}
        for summary in summarise(run.cells)
    ]


def row(name, **fields):
    return {
        "id": name,
        "question": f"what is {name}",
        "correct_answers": [f"right {name}"],
        "incorrect_answers": [f"false {name}"],
        "passages": [{"text": f"{name} is right {name}", "label": "gold"}, {"text": f"of {name}", "label": "clean"}],
        **fields,
    }


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row(name)) + "\n" for name in ("alpha", "beta", "gamma")))
    return str(path)


def test_a_run_writes_down_what_happened(tmp_path):
    calls = []
    run = Runner(tmp_path / "run", SCENARIOS, progress=lambda *step: calls.append(step), command=["unpoison"]).run()
    assert run.complete
    assert calls[-1][:2] == (36, 36)
    assert [cell.scenario for cell in run.cells] == SCENARIOS
    record = run.cells[4].records[0]
    assert record.example == "sample-01"
    assert (record.injected, record.reached, record.poison) == (2, 2, (0, 1))
    assert record.size == 10
    assert len(record.kept) == 5
    assert record.wanted == ("Gothenburg",)
    assert record.answer is None
    staged = run.read_contexts(run.cells[4])["sample-01"]
    assert staged.context.candidates[0].poison
    assert [cell.contexts for cell in run.cells] == 3 * [run.cells[0].contexts] + 3 * [run.cells[3].contexts]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["command"] == ["unpoison"]
    assert manifest["data"]["sample"]["digest"].startswith("sha256:")
    assert manifest["finished"] >= manifest["started"]
    assert manifest["versions"]["numpy"] == np.__version__


def test_nothing_is_done_twice(tmp_path, monkeypatch):
    first = Runner(tmp_path, SCENARIOS).run()
    monkeypatch.setattr("unpoison_lab.evaluation.runner.measure_question", None)  # would fail if it were called
    monkeypatch.setattr("unpoison_lab.evaluation.poisoning.craft_one", None)
    again = Runner(tmp_path, SCENARIOS).run()
    assert again.cells == first.cells
    assert again.manifest["resumed"] == 36
    assert open_run(tmp_path).cells == first.cells


KILLED = """
import os, signal, sys
from unpoison.io import output as journal
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.scenarios import Scenario

written, append = 0, journal.Journal.append

def dying(self, row):
    global written
    written += 1
    if written == int(sys.argv[2]):
        self._file.write(b'{"example": "torn')
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, row)

journal.Journal.append = dying
Runner(sys.argv[1], [Scenario.from_dict(values) for values in __import__("json").loads(sys.argv[3])]).run()
"""


@pytest.mark.parametrize("when", [3, 40])
def test_a_killed_run_resumes_with_identical_figures(tmp_path, when):
    text = json.dumps([scenario.to_dict() for scenario in SCENARIOS])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(when), text]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    torn = open_run(tmp_path / "killed")
    assert not torn.complete
    assert torn.manifest["finished"] is None
    assert sum(len(cell.records) for cell in torn.cells) < 36
    resumed = Runner(tmp_path / "killed", SCENARIOS).run()
    whole = Runner(tmp_path / "whole", SCENARIOS).run()
    assert figures(resumed) == figures(whole)
    assert all(read_rows(path) for path in (tmp_path / "killed" / "records").iterdir())
    for path in (tmp_path / "killed" / "records").iterdir():
        assert len(path.read_bytes().splitlines()) == 6  # no torn line is left, no line is there twice


class Fragile(Defense):
    """Fails on some questions, in three ways."""

    name = "fragile"

    def screening(self, query, passages):
        yield from ()
        if "alpha" in query.text:
            raise ModelError("the model is away")
        if "beta" in query.text:
            raise ZeroDivisionError("a bug")
        return Screening(
            "fragile", query.text, passages, tuple(Verdict(i, True, 1.0, i, "kept") for i in range(len(passages)))
        )


@pytest.fixture
def fragile(monkeypatch):
    monkeypatch.setitem(sys.modules, "fragile_defense", sys.modules[__name__])
    monkeypatch.setitem(registry.BUILT_IN["defenses"], "fragile", "fragile_defense:Fragile")


def test_failures_are_data(tmp_path, data, fragile):
    run = Runner(tmp_path / "run", [Scenario(data, defense="fragile", k=2)]).run()
    (cell,) = run.cells
    assert [record.error for record in cell.records] == ["the model is away", "ZeroDivisionError: a bug", None]
    assert [record.stage for record in cell.records] == ["defense", "defense", ""]
    (summary,) = summarise(run.cells)
    assert (summary.done, summary.failed, summary["failed"].value) == (3, 2, pytest.approx(2 / 3))
    assert summary["clean_kept"].value == 1.0
    assert summary.problems == ("1 of 3: the model is away", "1 of 3: ZeroDivisionError: a bug")


def test_failures_are_tried_again(tmp_path, data, fragile, monkeypatch):
    scenario = Scenario(data, defense="fragile", k=2)
    Runner(tmp_path / "run", [scenario]).run()
    monkeypatch.setattr(Fragile, "screening", registry.find("defenses", "vanilla")(keep=1).screening)
    (cell,) = Runner(tmp_path / "run", [scenario]).run().cells
    assert [(record.example, record.error, record.kept) for record in cell.records] == [
        ("alpha", None, (0,)),
        ("beta", None, (0,)),
        ("gamma", None, (0, 1)),  # what had not failed is not touched
    ]


@pytest.mark.needs("torch")
def test_a_scenario_that_cannot_begin_does_not_stop_the_others(tmp_path, data):
    scenarios = [Scenario(data, defense="radar"), Scenario(data, attack="hotflip", poisons=1), Scenario(data, k=2)]
    run = Runner(tmp_path / "run", scenarios).run()
    assert "needs a generator" in run.cells[0].error
    assert "encoder" in run.cells[1].error
    assert run.cells[2].complete
    assert open_run(tmp_path / "run").cells == run.cells
    assert summarise(run.cells)[0].problems == (run.cells[0].error,)


def test_a_position_past_a_short_context_is_a_failure_of_that_question(tmp_path, data):
    scenario = Scenario(data, attack="poisonedrag", poisons=1, policy="replace-at", positions=(5,))
    (cell,) = Runner(tmp_path / "run", [scenario]).run().cells
    assert "position 4 lies outside" in cell.records[0].error


def test_all_poison_competes_in_the_corpus(tmp_path, data):
    corpus = tmp_path / "corpus.jsonl"
    texts = ["alpha is right alpha", "nothing to see", "of gamma"]
    corpus.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts)))
    scenario = Scenario(data, str(corpus), attack="poisonedrag", poisons=2, policy="corpus", k=4)
    (cell,) = Runner(tmp_path / "run", [scenario, scenario.twin]).run().cells[:1]
    record = cell.records[0]
    assert record.size == 4
    assert len(record.poison) == 3
    assert len(record.foreign) == 1


def test_a_published_attack_by_name(tmp_path):
    path = tmp_path / "data.jsonl"
    passages = [
        {"text": "gold", "label": "gold"},
        {"text": "the first text says false alpha", "label": "poison", "attack": "one"},
        {"text": "the second text says false alpha", "label": "poison", "attack": "two"},
    ]
    path.write_text(json.dumps(row("alpha", passages=passages)) + "\n")
    run = Runner(tmp_path / "run", [Scenario(str(path), attack="published:attack=two", poisons=1)]).run()
    assert run.read_contexts(run.cells[0])["alpha"].context.passages[0].text == "the second text says false alpha"
    labelled = Runner(tmp_path / "run", [Scenario(str(path), policy="labelled")]).run()
    assert labelled.cells[0].records[0].poison == (1, 2)


def test_answers_come_from_what_was_kept(tmp_path, data):
    generator = ScriptedGenerator(
        {"false alpha": "It is false alpha.", "of beta": "right beta"} | {"what": "I don't know"}
    )
    scenarios = [
        Scenario(data, attack="poisonedrag", poisons=1, defense=defense, generator="scripted", k=2)
        for defense in ("vanilla", "no-rag")
    ]
    run = Runner(tmp_path / "run", scenarios, models={"scripted": generator}).run()
    alpha, _, gamma = run.cells[0].records
    assert (alpha.answer, alpha.abstained, alpha.calls) == ("It is false alpha.", False, 1)
    assert alpha.seconds >= alpha.screening_seconds > 0
    assert gamma.abstained
    first = summarise(run.cells)[0]
    assert first["asr"].value == pytest.approx(1 / 3)
    assert first["asr_substring"].value == pytest.approx(1 / 3)
    assert first["abstained"].count == 3


def test_a_generator_that_fails_is_recorded_and_replies_are_asked_once(tmp_path, data):
    generator = ScriptedGenerator({"alpha": ModelError("out of credit"), "what": "right"})
    scenario = Scenario(data, generator="scripted", k=2)
    (cell,) = Runner(tmp_path / "run", [scenario], models={"scripted": generator}).run().cells
    assert "out of credit" in cell.records[0].error
    assert not cell.records[1].failed
    again = replace(scenario, seed=1)
    silent = ScriptedGenerator(ModelErrors())
    (cell,) = Runner(tmp_path / "run", [again], models={"scripted": silent}).run().cells
    assert [record.failed for record in cell.records] == [True, False, False]  # two replies were remembered


class ModelErrors:
    def __call__(self, prompt):
        raise ModelError("asked again")


def test_vectors_are_made_once_and_before_the_clock_runs(tmp_path, data):
    encoder = FakeEncoder()
    scenarios = [Scenario(data, encoder="fake", defense=defense, k=2) for defense in ("grada", "trustrag")]
    Runner(tmp_path / "run", scenarios, models={"fake": encoder}).run()
    texts = [text for call in encoder.calls for text in call]
    assert len(texts) == len(set(texts)) == 9
    assert len(encoder.calls) == 1
    Runner(tmp_path / "run", [replace(scenarios[0], seed=1)], models={"fake": encoder}).run()
    assert len(encoder.calls) == 1


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 3}', '{"cells": [{}]}', "nonsense"])
def test_no_manifest(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match="manifest"):
        open_run(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        open_run(tmp_path / "absent")


def test_one_process_at_a_time(tmp_path):
    with lock_folder(tmp_path), pytest.raises(InputError, match="another process runs"):
        Runner(tmp_path, SCENARIOS[:1]).run()
    assert Runner(tmp_path, SCENARIOS[:1]).run().complete


def test_crafting_goes_on_where_it_stopped(tmp_path, data):
    from unpoison_lab.evaluation.datasets import load

    attack, path = make_attack("poisonedrag"), tmp_path / "poisons.jsonl"
    targets = {example.id: example.target for example in load(data)}
    first = craft_all(attack, dict(list(targets.items())[:2]), 2, path)
    done = []
    whole = craft_all(attack, targets, 2, path, step=lambda: done.append(1))
    assert len(done) == 1
    assert whole["alpha"] == first["alpha"]
    assert list(whole) == ["alpha", "beta", "gamma"]
    with pytest.raises(OptionError, match="takes no question prefix"):
        make_attack("hotflip", prefix=True)


def test_a_trigger_is_asked_with_and_without(tmp_path):
    with_trigger = Scenario("sample", attack="phantom", poisons=1, limit=1)
    first, second = Runner(tmp_path, [with_trigger, replace(with_trigger, triggered=False)]).run().cells
    run = open_run(tmp_path)
    contexts = [run.read_contexts(cell)["sample-01"].context for cell in (first, second)]
    assert contexts[0].query.startswith("abcdefghijk ")
    assert contexts[0].query.endswith(contexts[1].query)
    assert contexts[0].passages == contexts[1].passages


def test_noise_replaces_the_share_it_says_whatever_the_order():
    pairs = [(f"premise {i}", "hypothesis") for i in range(400)]
    calm = FakeNLI(otherwise="neutral")
    noisy = NoisyNLI(calm, 0.3, seed=1)
    figure = noisy.judge(pairs)
    replaced = (figure != calm.judge(pairs)).any(axis=1)
    assert 0.22 < replaced.mean() < 0.38
    assert np.allclose(figure.sum(axis=1), 1)
    assert np.array_equal(noisy.judge(pairs[::-1])[::-1], figure)
    assert not np.array_equal(NoisyNLI(calm, 0.3, seed=2).judge(pairs), figure)
    assert np.array_equal(NoisyNLI(calm, 0).judge(pairs), calm.judge(pairs))

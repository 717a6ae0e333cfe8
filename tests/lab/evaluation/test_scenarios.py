import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.registry import split_specs
from unpoison.errors import InputError, OptionError, UnknownNameError
from unpoison_lab.evaluation.grids import MAX_SCENARIOS, Grid, axis
from unpoison_lab.evaluation.scenarios import Scenario, weights_of


def grid(**axes):
    return Grid.of({"data": "sample", "defense": "trustrag", **axes}).scenarios()


def test_all_that_plants_nothing_is_one_scenario():
    clean = Scenario("sample")
    assert Scenario("sample", attack="pia", poisons=0, policy="middle", prefix=True) == clean
    assert Scenario("sample", attack="none", poisons=3, policy="replace-at", positions=(1, 2, 3)) == clean
    attacked = Scenario("sample", attack="pia", poisons=2, policy="replace-at", positions=(1, 9))
    assert attacked.twin == clean
    assert clean.clean
    assert not attacked.clean


def test_the_labels_of_a_file_are_no_attack_and_not_clean():
    labelled = Scenario("sample", attack="pia", poisons=2, policy="labelled")
    assert (labelled.attack, labelled.poisons, labelled.clean, labelled.attacked) == ("labelled", 0, False, False)
    assert labelled.twin == Scenario("sample")


def test_the_identifier_follows_the_content_not_the_path():
    one, moved = Scenario("a.jsonl", k=5), Scenario("b.jsonl", k=5)
    assert one.identifier(["digest"]) == moved.identifier(["digest"])
    assert one.identifier(["digest"]) != moved.identifier(["other"])
    assert one.identifier() != moved.identifier()
    assert one.identifier(["digest"]) != Scenario("a.jsonl", k=6).identifier(["digest"])


@pytest.mark.needs("unpoison_reader")
def test_what_a_reader_said_with_other_weights_is_not_taken_for_what_it_says_now(monkeypatch):
    read, silent = Scenario("sample", generator="reader"), Scenario("sample", generator="extractive")
    before, silent_before = read.identifier(), silent.identifier()
    monkeypatch.setattr(
        "unpoison_lab.evaluation.scenarios.weights_of", lambda name: "0123456789ab" if name == "reader" else ""
    )
    assert read.identifier() != before
    assert silent.identifier() == silent_before


@pytest.mark.needs("unpoison_reader", "unpoison_reader_base", "unpoison_reader_multilingual")
def test_the_weights_of_a_shipped_reader_have_a_name_and_so_have_those_that_read_other_languages_for_it() -> None:
    small, larger, multilingual = map(weights_of, ("reader", "reader-base", "reader-multilingual"))
    assert len(multilingual) == 12
    assert re.fullmatch(rf"[0-9a-f]{{12}}\+{multilingual}", small)
    assert small != larger
    assert weights_of("reader,threshold=0.75") == small
    assert weights_of("extractive") == weights_of("qa:folder") == weights_of(None) == ""


def test_a_scenario_survives_json():
    scenario = Scenario(
        "sample", attack="pia", poisons=2, policy="replace-at", positions=(1, 9), generator="extractive"
    )
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"k": 3}, InputError, "needs data"),
        ({"data": "sample", "k": 0}, OptionError, "k must be"),
        ({"data": "sample", "nli_noise": 1.5}, OptionError, "nli_noise must be"),
        ({"data": "sample", "policy": "somewhere"}, OptionError, "policy must be one of"),
        (
            {"data": "sample", "attack": "pia", "poisons": 2, "policy": "replace-at", "positions": [1]},
            OptionError,
            "one position for each of 2 poisons",
        ),
        (
            {"data": "sample", "attack": "pia", "poisons": 1, "policy": "replace-at", "positions": [11]},
            OptionError,
            "lie in 1 to k = 10",
        ),
    ],
)
def test_bad_scenarios(values, error, message):
    with pytest.raises(error, match=message):
        Scenario.from_dict(values)


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("grada", ["grada"]),
        ("grada,ragdefender", ["grada", "ragdefender"]),
        ("grada:alpha=0.3,keep=5,ragdefender", ["grada:alpha=0.3,keep=5", "ragdefender"]),
        ("grada:alpha=0.3,trustrag:stages=1,mode=paper", ["grada:alpha=0.3", "trustrag:stages=1,mode=paper"]),
        ("grada,keep=5", ["grada:keep=5"]),
        ("perplexity:language_model=hf:gpt2,share=0.5", ["perplexity:language_model=hf:gpt2,share=0.5"]),
        (" grada , , trustrag ", ["grada", "trustrag"]),
    ],
)
def test_a_comma_ends_an_option_string_unless_an_option_follows(text, specs):
    assert split_specs(text) == specs


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["grada", "no-rag", "x"]),
            st.dictionaries(st.sampled_from(["keep", "alpha", "of"]), st.sampled_from(["1", "0.5", "hf:a/b"])),
        ),
        min_size=1,
    )
)
def test_joined_option_strings_split_again(parts):
    specs = [f"{name}:{','.join(f'{k}={v}' for k, v in sorted(o.items()))}" if o else name for name, o in parts]
    assert split_specs(",".join(specs)) == specs


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("openai:m,base_url=http://127.0.0.1:1/v1", ["openai:m,base_url=http://127.0.0.1:1/v1"]),
        ("reader,threshold=0.9,extractive", ["reader,threshold=0.9", "extractive"]),
        ({"name": "openai:m", "temperature": [0, 1]}, ["openai:m,temperature=0", "openai:m,temperature=1"]),
    ],
)
def test_models_take_options_on_every_axis(text, models):
    for name in ("encoder", "generator", "nli", "retriever"):
        assert axis(name, text) == tuple(models)


def test_every_defense_is_measured_clean_and_beside_no_defense():
    combinations = [(s.attack, s.poisons, s.defense) for s in grid(defense="grada,trustrag", poisons="0,2")]
    assert combinations == [
        ("none", 0, "vanilla"),
        ("none", 0, "vanilla:keep=5"),
        ("none", 0, "grada"),
        ("none", 0, "trustrag"),
        ("poisonedrag", 2, "vanilla"),
        ("poisonedrag", 2, "vanilla:keep=5"),
        ("poisonedrag", 2, "grada"),
        ("poisonedrag", 2, "trustrag"),
    ]


def test_baseline_and_clean_can_be_left_out():
    scenarios = grid(baseline=False, clean=False, attack="pia,tan", poisons=[1, 2])
    assert [(s.attack, s.poisons, s.defense) for s in scenarios] == [
        ("pia", 1, "trustrag"),
        ("pia", 2, "trustrag"),
        ("tan", 1, "trustrag"),
        ("tan", 2, "trustrag"),
    ]


def test_positions_say_policy_and_count():
    scenarios = grid(positions="1,3+5", baseline=False, clean=False)
    assert [(s.policy, s.poisons, s.positions) for s in scenarios] == [
        ("replace-at", 1, (1,)),
        ("replace-at", 2, (3, 5)),
    ]


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({"defens": "grada"}, UnknownNameError, "did you mean 'defense'"),
        ({"defense": "grdaa"}, UnknownNameError, "did you mean 'grada'"),
        ({"defense": "grada:alhpa=1"}, UnknownNameError, "did you mean 'alpha'"),
        ({"attack": "poisonrag"}, UnknownNameError, "did you mean 'poisonedrag'"),
        ({"poisons": "many"}, OptionError, "poisons cannot be 'many'"),
        ({"poisons": True}, OptionError, "poisons cannot be True"),
        ({"poisons": []}, OptionError, "poisons has no value"),
        ({"baseline": "yes"}, OptionError, "baseline must be true or false"),
        ({"positions": "1", "poisons": 1}, OptionError, "leave the others out"),
        ({"positions": "1", "policy": "middle"}, OptionError, "leave the others out"),
        ({"defense": [{"alpha": 1}]}, OptionError, "a mapping with a name"),
        ({"seed": list(range(MAX_SCENARIOS + 1))}, OptionError, "more than"),
    ],
)
def test_bad_grids(axes, error, message):
    with pytest.raises(error, match=message):
        grid(**axes)


def test_clean_passages_come_from_beside_the_data(tmp_path):
    (tmp_path / "data.jsonl").write_text("")
    (tmp_path / "corpus.jsonl").write_text("")
    data = str(tmp_path / "data.jsonl")
    assert {s.corpus for s in grid(data=data)} == {str(tmp_path / "corpus.jsonl")}
    assert {s.corpus for s in grid(data=data, corpus="none")} == {""}
    assert {s.corpus for s in grid()} == {""}

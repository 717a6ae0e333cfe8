"""What the papers' released code plants, asks and counts, byte for byte against that code where mirrors are at hand.

`UNPOISON_MIRRORS` names a folder of git mirrors, as `unpoison data get --from` reads it. Of the released code only pure
functions are run, from files whose SHA-256 is pinned.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.bench.attacks.base import Target
from unpoison.bench.data.build import build
from unpoison.bench.data.catalogue import catalogue, data_file, recipe
from unpoison.bench.data.git_mirrors import Mirror
from unpoison.bench.data.origins import Folder
from unpoison.bench.data.replay import fill, has_replay, released_text
from unpoison.bench.data.store import FOLDER, Store
from unpoison.bench.evaluation.datasets import load
from unpoison.bench.evaluation.preset_data import released_setting
from unpoison.bench.evaluation.presets import load_preset
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.specs import attack_name, make_attack
from unpoison.bench.evaluation.workbench import style_of
from unpoison.errors import InputError, OptionError
from unpoison.models.prompts import Style, answer_prompt
from unpoison.text.normalisation import lower_text, trim_text

PAPERS = ("GRADA", "RAGDefender", "TrustRAG", "RADAR")
QUESTION, WRONG, FALSE = 'who said {answer} and "{context}"?', "a {question} b", "False {opening} text. " * 30
TARGET = Target(id="t", question=QUESTION, correct=("right",), incorrect=WRONG, texts=(FALSE, "another"))


class Released:
    """A paper's files at the pinned commit, each compared with its pinned hash."""

    def __init__(self, mirrors: Path, paper: str) -> None:
        self.setting = released_setting(paper)
        self._mirror = Mirror.find(mirrors, self.setting["repository"])
        if self._mirror is None:
            pytest.skip(f"no mirror of {self.setting['repository']}")

    def bytes(self, path: str) -> bytes:
        assert self._mirror is not None
        content = self._mirror.read(self.setting["commit"], path)
        assert content is not None and hashlib.sha256(content).hexdigest() == self.setting["files"][path], path
        return content

    def run(self, path: str) -> dict[str, Any]:
        """The names that a file without further imports defines."""
        names: dict[str, Any] = {}
        exec(compile(self.bytes(path), path, "exec"), names)  # noqa: S102  a pinned file of constants and classes
        return names

    def function(self, path: str, name: str, **given: Any) -> Any:
        """One function of a file, alone."""
        tree = ast.parse(self.bytes(path))
        found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
        module = ast.Module([found], type_ignores=[])
        names: dict[str, Any] = dict(given)
        exec(compile(module, path, "exec"), names)  # noqa: S102  a pinned function
        return names[name]

    def expression(self, path: str, name: str, **given: Any) -> Any:
        """What a variable is first set to, among those that are more than a name."""
        found = next(
            node.value
            for node in ast.walk(ast.parse(self.bytes(path)))
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
        )
        return eval(compile(ast.Expression(found), path, "eval"), dict(given))  # noqa: S307  a pinned expression


@pytest.fixture(scope="module")
def mirrors() -> Path:
    folder = os.environ.get("UNPOISON_MIRRORS", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("UNPOISON_MIRRORS names no folder of mirrors: the replay is NOT compared with the released code")
    return Path(folder)


@pytest.fixture(scope="module")
def fetched(mirrors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Store(tmp_path_factory.mktemp("replay"))
    build(data_file("replay"), store, Folder(mirrors))
    return store.folder


@pytest.fixture
def replay(fetched: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(fetched))
    return fetched


@pytest.mark.parametrize("paper", PAPERS)
def test_the_cited_files_are_the_pinned_ones(mirrors: Path, paper: str) -> None:
    released = Released(mirrors, paper)
    for path in released.setting["files"]:
        released.bytes(path)


def planted(spec: str, count: int = 1) -> list[str]:
    return [
        text.text for text in make_attack(spec, prefix=None, seed=0, encoder=None, generator=None).craft(TARGET, count)
    ]


@pytest.mark.parametrize(
    ("spec", "theirs", "repeat", "places"),
    [
        ("pia:repeat=10,replay=radar", "PIA", 10, [9]),
        ("pia:style=long,replay=radar", "PIALONG", 3, [0]),
        ("published:repeat=10,replay=radar", "Poison", 10, [0, 4]),
        ("published:repeat=3,form=prompt,replay=radar", "PoisonLONG", 3, [2]),
    ],
)
def test_radar_plants_the_same_bytes(
    mirrors: Path, replay: Path, spec: str, theirs: str, repeat: int, places: list[int]
) -> None:
    attack = Released(mirrors, "RADAR").run("Static/src/attack.py")[theirs]
    item = {
        "question": QUESTION, "topk_content": [f"clean {i}" for i in range(10)], "incorrect_answer": WRONG,
        "incorrect_context": [FALSE, "another"], "answer": ["right"],
    }  # fmt: skip
    passages = attack(top_k=10, repeat=repeat, poison_pos=places).attack(item)["topk_content"]
    assert planted(spec, len(places)) == [passages[place] for place in places]


def test_trustrag_plants_the_same_bytes(mirrors: Path, replay: Path) -> None:
    released = Released(mirrors, "TrustRAG")
    order = released.expression("main_trustrag.py", "pia_attack", question=QUESTION, incorrect_answer=WRONG)
    assert planted("pia:repeat=1,replay=trustrag") == [order]


@pytest.mark.parametrize(
    ("paper", "path"),
    [("GRADA", "src/attack.py"), ("TrustRAG", "src/attack.py"), ("RAGDefender", "artifacts/src/attack.py")],
)
def test_poisonedrag_is_planted_with_the_same_bytes(mirrors: Path, paper: str, path: str) -> None:
    texts = {"t": {"adv_texts": list(TARGET.texts)}}
    attacker = SimpleNamespace(attack_method="LM_targeted", all_adv_texts=texts, adv_per_query=2)
    (group,) = Released(mirrors, paper).function(path, "get_attack")(attacker, [{"query": QUESTION, "id": "t"}])
    assert planted("published:prefix=true", 2) == group


def test_grada_plants_the_same_order_and_counts_the_same_reply(mirrors: Path, replay: Path) -> None:
    released = Released(mirrors, "GRADA")
    attacker = SimpleNamespace(attack_method="PIA")
    ((order,),) = released.function("src/attack.py", "get_attack")(attacker, [{"query": QUESTION, "id": "t"}])
    (text,) = make_attack(
        "pia:style=dos,replay=grada", prefix=True, seed=0, encoder=None, generator=None
    ).craft(TARGET, 1)  # fmt: skip
    assert text.text == order
    (wanted,) = text.meta["answers"]
    assert f'incco_ans = "{wanted}"' in released.bytes("main.py").decode()


@pytest.mark.parametrize(
    ("paper", "path"),
    [("GRADA", "src/prompts.py"), ("RAGDefender", "artifacts/src/prompts.py"), ("TrustRAG", "src/prompts.py")],
)
def test_plain_rag_asks_with_the_same_bytes(mirrors: Path, replay: Path, paper: str, path: str) -> None:
    passages = ["Two {context}", FALSE]
    theirs = Released(mirrors, paper).run(path)["wrap_prompt"]("who {context}?", passages, 4)
    assert asked(paper.lower(), "who {context}?", passages) == theirs


def test_radar_asks_with_the_same_bytes(mirrors: Path, replay: Path) -> None:
    template = Released(mirrors, "RADAR").run("Static/src/prompt_template.py")["QA_PROMPT_TMPL_GPT"]
    theirs = template.format(query_str=QUESTION, context_str=f"A\n\n{FALSE}")
    assert asked("radar", QUESTION, ["A", FALSE]) == theirs


def asked(paper: str, question: str, passages: list[str]) -> str:
    style = style_of(Scenario("sample", style=f"plain:paper={paper},replay=true"))
    system, user = answer_prompt(question, passages).with_style(style).messages()
    assert system == {"role": "system", "content": "You are a helpful assistant."}
    return user["content"]


@pytest.mark.parametrize(
    ("paper", "path", "ours"),
    [
        ("GRADA", "src/utils.py", trim_text),
        ("TrustRAG", "src/utils.py", trim_text),
        ("RAGDefender", "artifacts/src/utils.py", trim_text),
        ("RADAR", "Static/src/helper.py", lower_text),
    ],
)
def test_replies_are_compared_by_the_same_rule(mirrors: Path, paper: str, path: str, ours: Any) -> None:
    clean_str = Released(mirrors, paper).function(path, "clean_str")
    replies = st.text(alphabet=st.sampled_from(" .\nAaZ\u00c9\u00df'\u3000\u0130"))

    @settings(max_examples=300, deadline=None)
    @given(replies)
    def same(reply: str) -> None:
        assert ours(reply) == clean_str(reply)

    same()


@pytest.mark.parametrize("name", ["nq", "hotpotqa", "msmarco"])
def test_targets_are_the_released_ones_in_their_order(mirrors: Path, tmp_path: Path, name: str) -> None:
    file = data_file(f"replay_{name}")
    for repository in file.repositories:
        if Mirror.find(mirrors, repository) is None:
            pytest.skip(f"no mirror of {repository}")
    build(file, Store(tmp_path), Folder(mirrors))
    source = next(one for one in recipe(file).sources if one.path.startswith("results/adv_targeted_results/"))
    released: Mapping[str, Any] = json.loads(Folder(mirrors).read(source))
    rows = [json.loads(line) for line in Store(tmp_path).path(file).read_text(encoding="utf-8").splitlines()]
    assert [row["id"].removeprefix(f"{name}-") for row in rows] == list(released)
    per_query = 5 if name == "nq" else 2
    for row, theirs in zip(rows, released.values(), strict=True):
        assert row["question"] == theirs["question"]
        assert row["incorrect_answers"] == [theirs["incorrect answer"]]
        by_attack = {
            attack: [one["text"] for one in row["passages"] if one.get("attack") == attack]
            for attack in ("poisonedrag", "ragdefender")
        }
        assert by_attack["poisonedrag"] == theirs["adv_texts"]
        assert by_attack["ragdefender"][:per_query] == theirs["adv_texts"][:per_query]
        assert len(by_attack["ragdefender"]) >= per_query + 25


# What needs no mirror.


def test_every_replay_file_has_a_recipe_at_the_commits_of_the_settings() -> None:
    pinned = {released_setting(paper)["repository"]: released_setting(paper) for paper in PAPERS}
    names = [name for name in catalogue() if name.startswith("replay")]
    assert len(names) == 6
    for name in names:
        for source in recipe(data_file(name)).sources:
            if source.repository in pinned:
                setting = pinned[source.repository]
                assert source.commit == setting["commit"]
                assert setting["files"].get(source.path, source.sha256) == source.sha256


def test_holes_are_filled_at_once() -> None:
    assert fill("{question} {answer}", question="{answer}", answer="{question}") == "{answer} {question}"


def test_what_was_not_fetched_is_said_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert not has_replay()
    for wanted in (lambda: released_text("qa-radar"), lambda: planted("pia:replay=radar")):
        with pytest.raises(InputError, match="unpoison data get replay"):
            wanted()
    with pytest.raises(InputError, match="unpoison data get replay"):
        style_of(Scenario("sample", style="plain:paper=grada,replay=true"))


def test_an_order_that_a_papers_code_does_not_plant_is_refused() -> None:
    with pytest.raises(OptionError, match="plants no order"):
        planted("pia:style=link,replay=grada")
    assert attack_name("pia:replay=radar") == "pia:replay=radar (the words of radar's code)"
    with pytest.raises(OptionError, match="replay=true needs the paper"):
        Style.of("plain:replay=true")
    with pytest.raises(OptionError):
        Style.of("plain:paper=grada,template=x")


def test_a_style_with_fetched_words_is_written_without_them() -> None:
    style = Style.of("plain:paper=grada,replay=true")
    filled = Style(safe=False, paper="grada", replay=True, template="{question} {context}")
    assert str(filled) == str(style) == "plain:paper=grada,replay=true"
    with pytest.raises(OptionError, match="unpoison evaluate"):
        answer_prompt("q", ["p"]).with_style(style).messages()


@pytest.mark.parametrize("name", ["grada-table-1", "ragdefender-table-8", "trustrag-table-1", "radar-table-1"])
def test_a_preset_replays_what_was_fetched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With released data in the folder of built files the scenarios get their texts, words and order from it."""
    row = {
        "question": "q", "correct_answers": ["right"], "incorrect_answers": ["wrong"],
        "passages": [{"text": t, "label": "poison", "attack": a} for a in ("poisonedrag", "ragdefender") for t in "ab"],
    }  # fmt: skip
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr("unpoison.bench.evaluation.preset_data.has_replay", lambda: True)
    monkeypatch.setattr(Store, "has", lambda self, file: self.path(file).is_file())
    monkeypatch.setattr(Store, "verify", lambda self, file: self.path(file))
    for alias in ("nq", "hotpotqa", "msmarco", "realtimeqa"):
        Path(tmp_path, f"replay_{alias}.jsonl").write_text(json.dumps({"id": "1", **row}) + "\n", encoding="utf-8")
    preset = load_preset(name, data=tmp_path, generator="extractive")
    attacked = [scenario for scenario in preset.scenarios if not scenario.clean]
    specs = {scenario.attack for scenario in attacked}
    assert all("replay=true" in scenario.style for scenario in preset.scenarios)
    expected = {
        "grada-table-1": {"published:attack=poisonedrag", "pia:style=dos,replay=grada"},
        "ragdefender-table-8": {"published:attack=ragdefender"},
        "trustrag-table-1": {"published:attack=poisonedrag", "pia:repeat=1,replay=trustrag"},
        "radar-table-1": {"published:repeat=10,replay=radar", "pia:repeat=10,replay=radar"},
    }[name]
    assert expected <= specs
    assert "retrieve" not in {scenario.policy for scenario in attacked}
    ours = [one for one in preset.differences if "in our words" in one and ("rules of" in one or "the order" in one)]
    assert ours == []
    assert not preset.same_setting and str(len(preset.differences)) in preset.stamp


def test_released_files_read_as_data_sets(fetched: Path, mirrors: Path) -> None:
    store = Store(fetched)
    for name, count in (("realtimeqa", 100), ("biogen", 50)):
        build(data_file(f"replay_{name}"), store, Folder(mirrors))
        loaded = load(store.path(data_file(f"replay_{name}")))
        assert len(loaded.examples) + len(loaded.problems) == count

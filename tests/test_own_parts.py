"""Defenses and attacks of one's own: named by their module, given as objects, and helped where they are wrong."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from unpoison.cli import app
from unpoison.core import registry
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses import load_defense
from unpoison.defenses.base import Defense
from unpoison.defenses.guard import Guard
from unpoison.errors import FlowError, OptionError, UnknownNameError, UnpoisonError
from unpoison.models import ExtractiveReader, FakeEncoder, LexicalNLI
from unpoison.models.loading import load_encoder, load_generator, load_nli
from unpoison.models.requests import Encode, Generate, encode
from unpoison.serve import create_app
from unpoison_lab.attacks.base import Attack, DirectAttack, Target
from unpoison_lab.evaluation.scenarios import Scenario

OWN = '''
from unpoison_lab.attacks.base import DirectAttack
from unpoison.defenses.base import Defense
from unpoison.core.screenings import Screening


class Shortest(Defense):
    """Keeps the shortest passages."""

    name = "shortest"

    def __init__(self, keep=3, *, generator=None, limits=None):
        super().__init__(generator=generator, limits=limits)
        self.keep = keep

    def screening(self, query, passages):
        yield from ()
        order = sorted(range(len(passages)), key=lambda i: len(passages[i].reading))
        return Screening.decided(
            self.name, query, passages, kept=order[: self.keep],
            scores=[-float(len(p.reading)) for p in passages], reasons=["its length"] * len(passages),
        )


class Shout(DirectAttack):
    """Says the wrong answer aloud."""

    name = "shout"

    def write(self, target, count):
        return [self.poison(target, i, f"{target.question} {target.incorrect.upper()}!") for i in range(count)]


class Nameless(Defense):
    def screening(self, query, passages):
        yield from ()


class Half(Defense):
    name = "half"


def helper(word: str):
    raise AssertionError("only classes are made")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_parts.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_parts", raising=False)
    yield tmp_path
    sys.modules.pop("my_parts", None)


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        ("my_parts:Shortest", ("my_parts:Shortest", {})),
        ("pkg.my_parts:Shortest:keep=2,word=a:b", ("pkg.my_parts:Shortest", {"keep": "2", "word": "a:b"})),
        ("my_parts:Shortest,keep=2", ("my_parts:Shortest", {"keep": "2"})),
        ("guard:encoder=st:foo", ("guard", {"encoder": "st:foo"})),
        ("grada", ("grada", {})),
    ],
)
def test_a_class_is_named_with_its_module(spec: str, parsed: tuple[str, dict[str, str]]):
    assert registry.parse(spec) == parsed


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_line_takes_a_class_of_the_working_folder(folder: Path):
    (folder / "rows.jsonl").write_text(json.dumps({"query": "q", "passages": ["long text", "short", "mid txt"]}) + "\n")
    result = run("screen", "-d", "my_parts:Shortest:keep=1", "--json", "rows.jsonl")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["screening"]["kept"] == [1]


def test_a_table_compares_it_and_attacks_with_it(folder: Path):
    arguments = ("evaluate", "-d", "my_parts:Shortest:keep=2,guard", "-a", "my_parts:Shout", "--limit", "2", "sample")
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    cells = [cell["scenario"] for cell in json.loads(result.stdout)["cells"]]
    defenses = {"vanilla", "vanilla:keep=2", "my_parts:Shortest:keep=2", "guard"}
    assert {(cell["defense"], cell["attack"]) for cell in cells} == {
        (defense, attack) for defense in defenses for attack in ("none", "my_parts:Shout")
    }


def test_what_was_measured_with_other_code_is_measured_again(folder: Path):
    scenario = Scenario(data="sample", defense="my_parts:Shortest")
    sys.path.append(str(folder))
    before = scenario.identifier()
    assert before == scenario.identifier() != Scenario(data="sample", defense="guard").identifier()
    (folder / "my_parts.py").write_text(OWN + "\n# changed\n")
    assert scenario.identifier() != before


def test_a_file_makes_the_command_import_nothing_that_lies_beside_it(folder: Path):
    (folder / "evil.py").write_text("raise SystemExit('imported')")
    (folder / "grid.yaml").write_text("data: [sample]\ndefense: [evil:Defense]\n")
    result = run("evaluate", "--config", "grid.yaml")
    assert result.exit_code == 2
    assert "no module evil" in result.output


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no_such_module:Mine", "no module no_such_module"),
        ("my_parts:Nothing", "my_parts has: Shortest, Nameless, Half"),
        ("my_parts:Shout", "is not a subclass of Defense"),
        ("my_parts:helper:word=x", "is not a subclass of Defense"),
        ("os:system:command=true", "is not a subclass of Defense"),
        ("my_parts:Nameless", "write name = 'mine'"),
        ("my_parts:Half", "lacks the method screening"),
        ("my_parts:Shortest:kep=3", "it has: keep"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(folder: Path, spec: str, message: str):
    sys.path.append(str(folder))
    with pytest.raises(OptionError, match=message):
        load_defense(spec)


def test_a_module_that_fails_is_named(folder: Path):
    (folder / "broken_parts.py").write_text("1 / 0")
    result = run("screen", "-d", "broken_parts:Mine", "rows.jsonl")
    assert result.exit_code == 2
    assert "broken_parts cannot be imported: ZeroDivisionError" in result.output


@pytest.mark.parametrize("name", ["os:system", "my_parts:Shortest", "guard:Guard"])
def test_a_request_to_the_service_cannot_name_a_module(folder: Path, name: str):
    sys.path.append(str(folder))
    with pytest.raises((UnknownNameError, OptionError)):
        create_app({"guard": Guard()}).state.service.pick(name)
    assert "my_parts" not in sys.modules


class Keeping(Defense):
    name = "keeping"

    def __init__(self, keep: int = 2, note: str = "a:b", **models: Any) -> None:
        super().__init__(**models)
        self.keep, self.note = keep, note

    def screening(self, query: Any, passages: Any) -> Any:
        vectors = yield from encode([p.reading for p in passages])
        assert len(vectors) == len(passages)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=range(len(passages))[: self.keep],
            scores=[0.0] * len(passages),
            reasons=["among the first"] * len(passages),
            evidence=Evidence(),
        )


class Wrong(Defense):
    name = "wrong"

    def __init__(self, how: str) -> None:
        super().__init__(encoder=FakeEncoder(), generator=ExtractiveReader())
        self.how = how

    def screening(self, query: Any, passages: Any) -> Any:
        if self.how == "no yield":
            return self.all_kept(query, passages, "kept")
        return self._flow(query, passages)

    def _flow(self, query: Any, passages: Any) -> Any:
        texts = [p.reading for p in passages]
        match self.how:
            case "alone":
                yield Encode(tuple(texts))
            case "helper":
                yield encode(texts)
            case "None":
                yield
            case "text":
                yield ("encode this",)
            case "no screening":
                yield (Generate(()),)
                return [0, 1]
            case "own mistake":
                raise KeyError("mine")
        yield from ()
        return None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no yield", r"Wrong.screening returned a Screening.*yield from \(\)"),
        ("alone", r"yielded a Encode.*\(replies,\) = yield \(Generate"),
        ("helper", r"yielded encode\(...\).*yield from generate\("),
        ("None", "yielded None"),
        ("text", "it yields a tuple of requests"),
        ("no screening", "return a Screening"),
        ("nothing", "Wrong.screening returned None; return a Screening"),
    ],
)
@pytest.mark.parametrize("ask", ["screen", "answer"])
def test_a_flow_that_is_wrong_says_what_to_write(how: str, message: str, ask: str):
    with pytest.raises(FlowError, match=message):
        getattr(Wrong(how), ask)("q", ["a", "b", "c"])
    with pytest.raises(FlowError, match=message):
        asyncio.run(getattr(Wrong(how), f"a{ask}")("q", ["a", "b", "c"]))


def test_a_mistake_of_another_kind_is_not_dressed_up():
    with pytest.raises(KeyError, match="mine"):
        Wrong("own mistake").screen("q", ["a"])


def test_the_command_line_stops_at_a_broken_flow_with_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_broken.py").write_text(
        "from unpoison.defenses.base import Defense\nclass Mine(Defense):\n    name = 'mine'\n"
        "    def screening(self, query, passages):\n        return self.all_kept(query, passages, 'x')\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"query": "q", "passages": ["a"]}\n')
    result = run("screen", "-d", "my_broken:Mine", "rows.jsonl")
    assert result.exit_code == 2
    assert result.output.count("there is no yield in it") == 1
    assert "Traceback" not in result.output


class Loud(DirectAttack):
    name = "loud"

    def write(self, target: Target, count: int) -> Any:
        return ["a text"] * count


class Silent(Attack):
    name = "silent"

    def crafting(self, target: Target, count: int) -> Any:
        return [self.poison(target, 0, "x")]


def test_attacks_are_helped_too():
    target = Target("t", "q?", ("a",), "b")
    with pytest.raises(FlowError, match="return a PoisonText"):
        Loud().craft(target)
    with pytest.raises(FlowError, match="there is no yield in it"):
        Silent().craft(target)


class Offered:
    """An entry point as a package would declare it."""

    def __init__(self, name: str, target: Any) -> None:
        self.name, self._target = name, target

    def load(self) -> Any:
        return self._target


class Upper(FakeEncoder):
    def __init__(self, model: str = "small", *, size: int = 8) -> None:
        super().__init__()
        self.options_given = (model, size)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "unpoison.encoders": [Offered("upper", Upper)],
        "unpoison.generators": [Offered("mine", ExtractiveReader), Offered("openai", None)],
        "unpoison.nli": [Offered("judge", LexicalNLI)],
    }
    monkeypatch.setattr(registry, "entry_points", lambda group: points.get(group, []))
    registry.entry_points_of.cache_clear()
    yield
    registry.entry_points_of.cache_clear()


@pytest.mark.usefixtures("offered")
def test_models_of_other_packages_are_found_by_their_entry_points():
    assert isinstance(load_generator("mine"), ExtractiveReader)
    assert isinstance(load_nli("judge"), LexicalNLI)
    assert load_encoder("upper").options_given == ("small", 8)  # type: ignore[attr-defined]
    assert load_encoder("upper:LARGE,size=3").options_given == ("LARGE", 3)  # type: ignore[attr-defined]
    assert load_encoder("upper,size=4").options_given == ("small", 4)  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="upper has no option 'length'"):
        load_encoder("upper,length=4")
    with pytest.raises(OptionError, match=r"no encoder 'lower'; use lexical, .*upper"):
        load_encoder("lower")
    with pytest.raises(OptionError, match="cannot be created"):
        load_nli("judge:MODEL")


@pytest.mark.usefixtures("offered")
def test_an_entry_point_does_not_replace_what_ships():
    assert load_generator("extractive").name == "extractive"
    with pytest.raises((OptionError, UnpoisonError)):
        load_generator("openai")


def test_entry_points_are_read_from_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not from a double: a distribution on the path, as an installer leaves it."""
    info = tmp_path / "my_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[unpoison.encoders]\nplain = my_pack:PlainEncoder\n")
    (tmp_path / "my_pack.py").write_text(
        "from unpoison.models import FakeEncoder\nclass PlainEncoder(FakeEncoder): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry.entry_points_of.cache_clear()
    try:
        assert type(load_encoder("plain")).__name__ == "PlainEncoder"
    finally:
        registry.entry_points_of.cache_clear()

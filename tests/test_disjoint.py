"""Train and test apart: hashes that a change of capitals does not escape, and scripts that refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.training import disjoint
from benchmarks.training.disjoint import (
    check_disjoint,
    load_hashes,
    refuse_test_texts,
    save_hashes,
    test_hashes,
    text_hashes,
)
from unpoison.errors import InputError

test_hashes.__test__ = False  # a function of the package, no test

FAMILIES = {
    "poisonarena",
    "authchain",
    "gaslite",
    "phantom-hotflip",
    "poisonedrag-hotflip",
    "advdecoding-refusal",
    "independent-hand",
    "first-tries-held-out",
}


def test_a_text_is_known_by_its_words() -> None:
    assert text_hashes(["The  cat, sat"]).tolist() == text_hashes(["the CAT sat.", "ｔｈｅ cat sat"]).tolist()
    assert len(text_hashes(["the cat sat", "the cat sits"])) == 2


def test_hashes_come_back_as_they_were_saved(tmp_path: Path) -> None:
    sets = {
        "a": text_hashes(map(str, range(1000))),
        "none": text_hashes([]),
        "top": np.array([0, 2**64 - 1], np.uint64),
    }
    save_hashes(tmp_path / "h.npz", sets)
    back = load_hashes((tmp_path / "h.npz").read_bytes())
    assert {name: hashes.tolist() for name, hashes in back.items()} == {k: v.tolist() for k, v in sets.items()}


def test_a_test_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        disjoint, "test_hashes", lambda: {"gaslite": text_hashes(["a lie"]), "authchain": text_hashes(["b"])}
    )
    refuse_test_texts(["the truth"])
    with pytest.raises(InputError, match=r"1 of the texts to fit on are test texts \(gaslite\)"):
        refuse_test_texts(["the truth", "A lie!"])


def test_all_families_of_test_texts_are_listed() -> None:
    found = test_hashes()
    assert set(found) >= FAMILIES
    assert min(map(len, found.values())) > 50


def test_nothing_shipped_was_fitted_on_a_test_text() -> None:
    found = check_disjoint()
    fitted = {"crafted", "prompt-injection", "gibberish", "scan", "reader", "reader-multilingual"}
    assert {one.fitted for one in found} == fitted
    assert all(one.shared == 0 and one.texts > 1000 for one in found)


def test_an_overlap_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_hashes(tmp_path / "f.npz", {"crafted": text_hashes(["a", "b", "c"])})
    monkeypatch.setattr(disjoint, "test_hashes", lambda: {"x": text_hashes(["b"]), "y": text_hashes(["c", "d"])})
    assert check_disjoint(tmp_path / "f.npz") == [("crafted", 3, 3, 2)]


@pytest.mark.parametrize("script", ["crafted", "injections", "gibberish", "scan", "reader"])
def test_every_training_script_refuses_test_texts(script: str) -> None:
    source = Path(__file__).resolve().parents[1] / "benchmarks" / "training" / f"train_{script}.py"
    main = source.read_text(encoding="utf-8").partition("def main() -> None:")[2]
    assert "refuse_test_texts(" in main

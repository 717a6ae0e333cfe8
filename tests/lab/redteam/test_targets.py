"""When a planted text was read, and what a failure counts as."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from unpoison.errors import OptionError
from unpoison_lab.redteam.results import Results, Trial, headline
from unpoison_lab.redteam.targets import TargetReply, fingerprints, load_target, read_count

LONG = "The official listing has read 1600 since it was last updated, as the curator told us."
HONEST = "An honest passage that the poison quotes in full, word by word"


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (TargetReply("a"), None),
        (TargetReply("a", ()), 0),
        (TargetReply("a", ("something else",)), 0),
        (TargetReply("a", (f"Title\n{LONG} {HONEST}",)), 1),
        (TargetReply("a", (f"{LONG} {HONEST}".upper().replace(" ", "\n  "),)), 1),
        (TargetReply("a", ("The official listing has read 1600 since it was",)), 1),
        (TargetReply("a", ("1600",)), 0),
        (TargetReply("a", ("",)), 0),
        (TargetReply("a", (HONEST.upper(),)), 0),
        (TargetReply("a", None, ("17",)), 1),
        (TargetReply("a", ("x",), ("18",)), 0),
    ],
)
def test_when_a_planted_text_was_read(reply, count):
    assert read_count(reply, [f"{LONG} {HONEST}"], [("17",)], frozenset(fingerprints([HONEST]))) == count


def test_a_system_that_fails_under_attack_does_not_look_safe() -> None:
    def trial(**more: Any) -> Trial:
        return Trial("q", "who?", "pia", 1, wanted=("Lyon",), planted=1, **more)

    failed = [trial(stage="ask", error="500"), trial(stage="ask", error="500")]
    other = [trial(stage="gone", error="500", answer="It is Lyon."), trial(stage="plant", error="refused")]
    results = Results({}, None, 4, (*failed, *other), (("pia", 1),))
    assert headline(results) == "pia x 1 changed 1 of 3 answers to the attacker's; 4 questions failed."
    (cell,) = results.table()
    asr = cell.figures["asr"]
    assert (asr.hits, asr.count, asr.high) == (1, 3, 1.0), "what was never planted was never attacked"


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("where", ["own_target_of_a_test:target", "own_target_of_a_test:no", "no_such_target:target"])
def test_a_target_is_loaded_from_its_folder_and_the_search_path_stays(
    where: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_helper_of_a_test.py").write_text("REPLY = 'yes'")
    (tmp_path / "own_target_of_a_test.py").write_text(
        "import own_helper_of_a_test\n"
        "class target:\n"
        "    def ask(self, question): return own_helper_of_a_test.REPLY\n"
        "    def plant(self, documents): return []\n"
        "    def remove(self, handles): pass\n"
    )
    for module in ("own_target_of_a_test", "own_helper_of_a_test"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    before = [str(tmp_path), *sys.path] if known else list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    if where == "own_target_of_a_test:target":
        assert load_target(where, tmp_path).ask("who?") == "yes"
    else:
        with pytest.raises(OptionError, match="cannot be loaded"):
            load_target(where, tmp_path)
    assert sys.path == before

"""When a planted text was read, and trials in the journal."""

from __future__ import annotations

import json

import pytest

from unpoison.bench.redteam import Answered
from unpoison.bench.redteam.trials import Trial, fingerprints, read_count
from unpoison.errors import InputError

LONG = "The official listing has read 1600 since it was last updated, as the curator told us."
HONEST = "An honest passage that the poison quotes in full, word by word"


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (Answered("a"), None),
        (Answered("a", ()), 0),
        (Answered("a", ("something else",)), 0),
        (Answered("a", (f"Title\n{LONG} {HONEST}",)), 1),
        (Answered("a", (f"{LONG} {HONEST}".upper().replace(" ", "\n  "),)), 1),
        (Answered("a", ("The official listing has read 1600 since it was",)), 1),
        (Answered("a", ("1600",)), 0),
        (Answered("a", ("",)), 0),
        (Answered("a", (HONEST.upper(),)), 0),
        (Answered("a", None, ("17",)), 1),
        (Answered("a", ("x",), ("18",)), 0),
    ],
)
def test_when_a_planted_text_was_read(reply, count):
    assert read_count(reply, [f"{LONG} {HONEST}"], [("17",)], frozenset(fingerprints([HONEST]))) == count


def test_a_trial_survives_the_journal():
    trial = Trial("q", "question", "a", 1, ("r",), ("w",), 1, 1, "w", "r", 0.1, None, True, ("f",), 0.2)
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial
    assert (trial.is_attacked(trial.answer), trial.is_correct(trial.after)) == (True, True)
    with pytest.raises(InputError, match="not a saved trial"):
        Trial.from_dict({"nonsense": 1})

"""Trials in the journal, and when a run is complete."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from unpoison.bench.redteam.results import Results, Trial
from unpoison.core.codec import from_row
from unpoison.errors import InputError


def test_a_trial_survives_the_journal():
    trial = Trial("q", "question", "a", 1, ("r",), ("w",), 1, 1, "w", "r", 0.1, None, True, ("f",), 0.2)
    assert from_row(Trial, json.loads(json.dumps(trial.to_dict()))) == trial
    assert (trial.is_attacked(trial.answer), trial.is_correct(trial.after)) == (True, True)
    with pytest.raises(InputError, match="a trial needs example"):
        from_row(Trial, {"nonsense": 1})


def test_what_remains_keeps_a_run_from_being_complete():
    results = Results(run={}, finished="now", examples=0, trials=(), cells=())
    assert results.complete
    assert not replace(results, remaining=(("canary", "the delete failed"),)).complete
    assert not replace(results, examples=1, cells=(("none", 0),)).complete

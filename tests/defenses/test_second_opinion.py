"""The transformer's part in the built-in detector: what it reads, and how its opinion counts. No weights are needed."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from unpoison import Guard
from unpoison.screener import injections as detector
from unpoison.screener.injections import MAX_DOUBTS, injection, injections
from unpoison.text.analysis import clear
from unpoison.text.prompt_injection import STRONG, THRESHOLD, Injection

CLEAN = "Full-time employees get 27 days of annual leave per calendar year."
CERTAIN, DOUBTFUL = "(the linear model says 0.95)", "(the linear model says 0.09)"
PASSAGE = f"{CLEAN} They may be taken until the end of March of the next year.\n\n{CLEAN}\n\n{DOUBTFUL}"


class Opinions:
    """The same log-odds for every stretch; notes the stretches, and the threads that asked."""

    def __init__(self, odds: float) -> None:
        self.odds, self.asked, self.threads = odds, list[str](), set[threading.Thread]()

    def log_odds(self, stretches):
        self.asked += [text[start:end] for text, start, end in stretches]
        self.threads.add(threading.current_thread())
        return np.full(len(stretches), self.odds)


def linear_injection(text: str) -> Injection:
    """A linear model that finds the highest probability that a text states in brackets."""
    found = [(float(one[1]), one) for one in re.finditer(r"\([^()]* ([.\d]+)\)", text)]
    if not found:
        return Injection(0.001, "", 0, len(text))
    probability, one = max(found, key=lambda pair: pair[0])
    return Injection(probability, one[0], *one.span())


@pytest.fixture
def opinions(monkeypatch):
    linear = SimpleNamespace(
        injection=linear_injection, injections=lambda texts: [linear_injection(text).probability for text in texts]
    )

    def given(odds: float) -> Opinions:
        clear()
        made = Opinions(odds)
        monkeypatch.setattr(detector, "linear", linear)
        monkeypatch.setattr(detector, "shipped_injection_model", lambda: made)
        return made

    yield given
    clear()


def test_only_what_the_linear_model_doubts_is_read_in_one_batch(opinions):
    model = opinions(9.0)
    likely = injections([CLEAN, CERTAIN, DOUBTFUL, DOUBTFUL])
    assert model.asked == [DOUBTFUL]
    assert likely[:2].tolist() == [0.001, 0.95]
    assert likely[2] == likely[3] == injection(DOUBTFUL).probability > STRONG
    assert model.asked == [DOUBTFUL]  # remembered


@pytest.mark.parametrize(("odds", "cut"), [(5.0, [DOUBTFUL]), (0.0, [])])
def test_its_opinion_adds_to_what_is_in_doubt(opinions, odds, cut):
    opinions(odds)
    verdict = Guard(gibberish="keep", crafted="keep").screen("leave", [CLEAN, PASSAGE]).verdicts[1]
    assert (verdict.reason.code == "prompt_injection.cut") == bool(cut)
    assert [PASSAGE[span.start : span.end].strip() for span in verdict.cuts] == cut


def test_the_log_odds_of_both_models_are_added(opinions):
    model = opinions(-1.0)
    suspected = "(the linear model says 0.4)"
    assert injection(f"{suspected} {CLEAN} {DOUBTFUL}").probability == pytest.approx(1 / (1 + 1.5 * math.e))
    assert model.asked == [suspected, DOUBTFUL]


def test_decoys_do_not_hide_what_it_does_not_read(opinions):
    opinions(-99.0)
    decoys = [f"(the linear model says 0.3{number})" for number in range(1, MAX_DOUBTS + 1)]
    assert injection(f"{' '.join(decoys)} (the linear model says 0.25)").probability == 0.25


def test_it_reads_the_most_suspicious_stretches_of_a_text_and_no_more(opinions):
    model = opinions(0.0)
    doubts = [f"(the linear model says 0.4{number})" for number in range(MAX_DOUBTS + 2)]
    assert injection(" ".join(doubts)).quote == doubts[-1]
    assert model.asked == doubts[:1:-1]


def test_it_never_reads_on_the_thread_of_the_event_loop(opinions):
    model = opinions(9.0)
    screening = asyncio.run(Guard().ascreen("leave", [CLEAN, DOUBTFUL]))
    assert screening.dropped_indices == (1,)
    assert model.threads
    assert threading.current_thread() not in model.threads


def test_more_doubt_is_never_less_likely(opinions):
    found = []
    for odds in (-4.0, 0.0, 2.0, 8.0):
        opinions(odds)
        found.append(injection(DOUBTFUL).probability)
    assert found == sorted(found)
    assert found[0] < THRESHOLD < found[-1]

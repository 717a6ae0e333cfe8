from __future__ import annotations

import sys
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

from unpoison.errors import ModelError, OptionError
from unpoison.models import checkpoints


@pytest.fixture
def library(monkeypatch):
    """The hub's client, with a hub that answers, and nothing downloaded before."""
    asked = []
    double = SimpleNamespace(
        asked=asked,
        head=lambda place, timeout: asked.append((place, timeout)),
        cached=None,
        constants=SimpleNamespace(ENDPOINT="http://hub.invalid", HF_HUB_OFFLINE=False),
    )
    double.utils = SimpleNamespace(get_session=lambda: double)
    double.try_to_load_from_cache = lambda name, file: double.cached
    monkeypatch.setitem(sys.modules, "huggingface_hub", double)
    return double


def refused(place, timeout):
    raise ConnectionError("connection\nrefused")


def test_a_folder_is_read_from_disk_and_nobody_is_asked(library, tmp_path):
    assert checkpoints.from_disk(str(tmp_path))
    assert not library.asked


def test_a_name_is_asked_for_once_and_left_to_the_library(library):
    assert not checkpoints.from_disk("someone/model")
    assert library.asked == [("http://hub.invalid", 5.0)]


def test_who_works_offline_asks_nobody(library):
    library.constants.HF_HUB_OFFLINE = True
    assert not checkpoints.from_disk("someone/model")
    assert not library.asked


def test_a_hub_that_is_silent_is_not_waited_for(library, monkeypatch):
    released = Event()
    library.head = lambda place, timeout: released.wait(60)
    monkeypatch.setattr(checkpoints, "SECONDS", 0.01)
    with pytest.raises(ModelError, match=r"no answer within 0\.01 seconds"):
        checkpoints.from_disk("someone/model")
    released.set()


def test_what_was_downloaded_before_is_used_when_the_hub_is_away(library):
    library.head, library.cached = refused, "/cache/config.json"
    assert checkpoints.from_disk("someone/model")


def test_probabilities_of_large_logits_are_finite():
    assert checkpoints.softmax(np.array([[0.0, 0.0], [1e4, 0.0], [np.log(3), 0.0]])) == pytest.approx(
        np.array([[0.5, 0.5], [1, 0], [0.75, 0.25]])
    )
    assert checkpoints.sigmoid(np.array([0.0, np.log(3), 1e4, -1e4])).tolist() == pytest.approx([0.5, 0.75, 1, 0])


def test_pairs_run_the_longest_first_and_come_back_in_order():
    batches = []

    def lengths(pairs):
        batches.append([len(left) + len(right) for left, right in pairs])
        return np.array([[len(left), len(right)] for left, right in pairs], np.float32)

    pairs = [("a", "b"), ("aaaa", "bbb"), ("aa", "\ud800"), ("", ""), ("aaa", "b")]
    rows = checkpoints.in_batches(pairs, 2, lengths, "m")
    assert rows.tolist() == [[1, 1], [4, 3], [2, 1], [0, 0], [3, 1]] and rows.dtype == np.float64
    assert batches == [[7, 4], [3, 2], [0]]
    with pytest.raises(ModelError, match="m returned a value that is not finite; load it in float32"):
        checkpoints.in_batches(pairs, 9, lambda some: np.full((len(some), 1), np.inf), "m")


def test_a_model_is_named_with_what_is_unusual():
    options = {"pooling": None, "similarity": "dot", "device": "cpu"}
    assert checkpoints.model_name("st:x", options, similarity="dot") == "st:x,device=cpu"

    class Own(checkpoints.NamedModel):
        name = "st:x/y"

    assert repr(Own()) == "Own('x/y')"


@pytest.mark.needs("transformers")
def test_what_goes_wrong_in_a_checkpoint_names_it_and_progress_is_shown_again():
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    for bars in (True, False):
        (logging.enable_progress_bar if bars else logging.disable_progress_bar)()
        for raised, kind, says in (
            (
                ValueError("odd\n file"),
                ModelError,
                r"cannot load the checkpoint 'x' \(ValueError: 'odd file'\); give a folder",
            ),
            (OptionError("our own"), OptionError, "^our own$"),
        ):
            with pytest.raises(kind, match=says), checkpoints.checkpoint_errors("x"):
                assert not logging.is_progress_bar_enabled()
                raise raised
            assert logging.is_progress_bar_enabled() is bars
    (logging.enable_progress_bar if shown else logging.disable_progress_bar)()


def test_what_is_nowhere_is_said_with_the_reason(library):
    library.head = refused
    with pytest.raises(
        ModelError, match=r"at http://hub\.invalid cannot be reached \('connection refused'\); give a folder"
    ):
        checkpoints.from_disk("someone/model")

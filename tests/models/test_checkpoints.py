from __future__ import annotations

import sys
from threading import Event
from types import SimpleNamespace

import pytest

from unpoison.errors import ModelError
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

import importlib
import sys
import warnings

import pytest

import unpoison.algorithms.mincut
import unpoison.bench.evaluation
import unpoison.text.sentences
from unpoison.utils.old_imports import MOVED, new_places


def test_every_entry_leads_to_a_module_that_exists():
    for old, rooms in MOVED.items():
        assert new_places(f"unpoison.{old}") == tuple(f"unpoison.{room}" for room in rooms), old


def test_an_old_import_gives_the_very_objects_of_the_new_place_and_says_where_that_is():
    for name in ("unpoison.kernels", "unpoison.kernels.mincut"):
        sys.modules.pop(name, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = importlib.import_module("unpoison.kernels.mincut")
    assert "unpoison.kernels.mincut is unpoison.algorithms.mincut now; import from there" in [
        str(w.message) for w in caught
    ]
    assert old.min_cut is unpoison.algorithms.mincut.min_cut
    assert unpoison.algorithms.mincut.__spec__.name == "unpoison.algorithms.mincut"


@pytest.mark.filterwarnings("ignore:unpoison:DeprecationWarning")
def test_a_folder_that_became_two_answers_for_both():
    old = importlib.import_module("unpoison.kernels")
    assert old.sentences.sentences is unpoison.text.sentences.sentences
    assert old.mincut.min_cut is unpoison.algorithms.mincut.min_cut
    assert importlib.import_module("unpoison.evaluation").load is unpoison.bench.evaluation.load


@pytest.mark.filterwarnings("ignore:unpoison:DeprecationWarning")
@pytest.mark.parametrize("name", ["unpoison.kernels.nonsense", "unpoison.nonsense", "unpoison.attacks.base.nonsense"])
def test_what_never_was_is_not_found(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)
    assert new_places(name) == ()


@pytest.mark.filterwarnings("ignore:unpoison:DeprecationWarning")
def test_a_name_that_never_was_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        importlib.import_module("unpoison.kernels").nonsense  # noqa: B018


@pytest.mark.filterwarnings("ignore:unpoison:DeprecationWarning")
def test_a_module_that_was_merged_answers_with_the_one_that_holds_its_names():
    assert new_places("unpoison.kernels.pagerank") == ("unpoison.algorithms.centrality",)
    old = importlib.import_module("unpoison.kernels.pagerank")
    assert old.pagerank is importlib.import_module("unpoison.algorithms.centrality").pagerank

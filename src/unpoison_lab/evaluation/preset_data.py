"""The files of the papers' tables.

The tables are YAML files of this package: `data/presets`, and `data/stream_presets` for those over time. Their data
sets are local files, with their differences from the papers'. `data/replay.yaml` has the settings of each paper's
released code; its texts are replayed if they were fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from unpoison.errors import UnknownNameError
from unpoison_lab.data_files import built_folder, data_folder, has_released_texts
from unpoison_lab.evaluation.datasets import load, load_passages

__all__ = ["DATA", "PaperData", "preset_file", "preset_files", "released_setting"]


def preset_files(folder: str) -> list[str]:
    """The names of all presets in a folder, sorted."""
    paths = files("unpoison_lab").joinpath("data", folder).iterdir()
    return sorted(path.name.removesuffix(".yaml") for path in paths if path.name.endswith(".yaml"))


@cache
def preset_file(folder: str, name: str) -> Mapping[str, Any]:
    """The contents of a preset's file.

    Raises:
        UnknownNameError: No such preset; the message names the nearest.
    """
    if name not in preset_files(folder):
        raise UnknownNameError(folder.removesuffix("s").replace("_", " "), name, preset_files(folder))
    text = files("unpoison_lab").joinpath("data", folder, f"{name}.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.safe_load(text)
    return content


DATA = {
    "nq": ("NQ", "nq_poisoned.jsonl", "corpus.jsonl"),
    "hotpotqa": ("HotpotQA", "hotpotqa_poisoned.jsonl", "corpus.jsonl"),
    "msmarco": ("MS MARCO", "msmarco_poisoned.jsonl", "corpus.jsonl"),
    "realtimeqa": ("RealtimeQA", "realtimeqa.jsonl", ""),
    "biogen": ("Bio", "biogen.jsonl", ""),
    "nq_web": ("NQ on the web", "nq_web.jsonl", ""),
    "triviaqa_web": ("TriviaQA on the web", "triviaqa_web.jsonl", ""),
    "ramdocs": ("RAMDocs", "ramdocs.jsonl", ""),
    "redditqa": ("RedditQA", "redditqa.jsonl", ""),
}
"""The presets' data sets: title, file in the data folder, and the file of clean passages that fills contexts.

`_web`: the questions with Google's results for them, as RADAR has them; like RedditQA, a file that you must provide."""

RELEASED = {
    "realtimeqa": "realtimeqa.json",
    "biogen": "biogen.json",
    "nq_web": "open_nq.json",
    "triviaqa_web": "triviaqa.json",
}
"""Files that RADAR's code reads, by their names in `Static/data` of its repository, Etherealllllll/RADAR_code."""


class PaperData:
    """Where each data set of a table comes from here.

    Attributes:
        fields: The fields of a scenario that name the data, by alias; an alias that is missing cannot be measured.
        differs: How the data differs from the paper's, by alias; "" if it does not.
        clean: How the clean passages that fill contexts differ from the paper's, by alias.
        replayed: The aliases with released data; the texts of the released code are available then.
        lacks: Missing data, one sentence each.
    """

    def __init__(self, wanted: Mapping[str, int], given: str | Path | None, limit: int | None) -> None:
        self.fields: dict[str, dict[str, str]] = {}
        self.differs: dict[str, str] = {}
        self.clean: dict[str, str] = {}
        self.replayed: set[str] = set()
        self.lacks: list[str] = []
        folder = None if given is None else data_folder(given)
        if folder is not None:
            self._folder(wanted, folder, limit)
        else:
            self._stand_in(wanted, "sample" if given is None else str(given), limit)

    def _folder(self, wanted: Mapping[str, int], folder: Path, limit: int | None) -> None:
        for alias, questions in wanted.items():
            corpus = DATA[alias][2]
            fetched = self._replay(alias, folder)
            spec = fetched or _spec(alias, folder)
            if spec is None:
                self.lacks.append(_absence_message(alias, folder))
                continue
            has_corpus = bool(corpus) and (folder / corpus).is_file()
            self.fields[alias] = {"data": spec, "corpus": str(folder / corpus) if has_corpus else ""}
            if corpus:
                self.clean[alias] = _clean_passages(alias, folder / corpus if has_corpus else None)
            count = len(load(spec).examples[:limit])
            self.differs[alias] = ""
            if not questions:
                self.differs[alias] = f"{count} questions; the paper does not say how many it has"
            elif count != questions:
                self.differs[alias] = f"{count} of {questions} questions"

    def _replay(self, alias: str, folder: Path) -> str:
        """The released data set in the folder of built files, "" if it was not fetched."""
        file = built_folder() / f"replay_{alias}.jsonl"
        if not has_released_texts() or folder.resolve() != built_folder().resolve() or not file.is_file():
            return ""
        self.replayed.add(alias)
        return str(file)

    def _stand_in(self, wanted: Mapping[str, int], spec: str, limit: int | None) -> None:
        first, *others = wanted
        count = len(load(spec).examples[:limit])
        name = "the built-in sample" if spec == "sample" else spec
        self.fields[first] = {"data": spec, "corpus": ""}
        theirs = f"{DATA[first][0]} ({wanted[first]})" if wanted[first] else DATA[first][0]
        self.differs[first] = f"{name} ({count} questions) instead of {theirs}"
        if others:
            titles = ", ".join(DATA[alias][0] for alias in others)
            self.lacks.append(f"{titles}; give a folder of data sets instead")


def _spec(alias: str, folder: Path) -> str | None:
    """The option string of a data set in this folder, in our format or as RADAR released it; None if missing."""
    file, released = folder / DATA[alias][1], folder / RELEASED.get(alias, "")
    if file.is_file():
        return str(file)
    return f"radar:{released}" if released.is_file() else None


def _clean_passages(alias: str, corpus: Path | None) -> str:
    """How the passages that fill contexts differ from BEIR's; "" if there are equally many."""
    theirs = released_setting("BEIR")[alias]
    ours = len(load_passages(corpus, alias)) if corpus is not None else 0
    return "" if ours == theirs else f"{ours:,} clean passages to retrieve from, theirs {theirs:,} (BEIR)"


@cache
def _settings() -> Mapping[str, Any]:
    text = files("unpoison_lab").joinpath("data", "replay.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.safe_load(text)
    return content


def released_setting(name: str) -> Mapping[str, Any]:
    """The settings of a paper's released code, by its name; for `BEIR`, the numbers of ranked documents."""
    setting: Mapping[str, Any] = _settings()[name]
    return setting


def _absence_message(alias: str, folder: Path) -> str:
    """A message that a data set is not in the folder, and where to get it."""
    title, file, _ = DATA[alias]
    sentence = f"{title} is left out: {folder} holds no {file}"
    if alias not in RELEASED:
        return sentence
    name = RELEASED[alias]
    return f"{sentence}; RADAR's repository, Etherealllllll/RADAR_code, has it as Static/data/{name}: put {name} there"

"""The texts that the model of prompt injections learns from and is measured on. None of them is shipped.

`all_texts` reads published attacks and look-alikes, our own wordings, texts that several hands wrote one by one, and
ordinary text of thirty languages; each `Text` says on which side of the split it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.training.docstrings import REFERENCE, documentation_of
from benchmarks.training.guard_data import FREE
from benchmarks.training.injection_machine import machine_texts
from benchmarks.training.injection_wordings import FOLDER, filled, wordings
from unpoison.text.canonical import canonical

__all__ = ["CODES", "UNREAD_LANGUAGES", "Text", "all_texts", "held_out", "measured_texts", "share"]

CLEAN = ("clean_faq_answers", "clean_faq_pairs", "clean_science", "clean_software_docs", "clean_wiki_en",
         "clean_wiki_de", "clean_wiki_es", "clean_wiki_zh", "nq_large_poisoned", "nq_retrieved",
         "hotpotqa_distractor", "timeqa", "ramdocs")  # fmt: skip

MOST_CLEAN, MOST_CORPUS, MOST_DOCSTRINGS = 900, 1_500, 1_200
"""Passages of one file, of the large collection, and of docstrings."""

AMBIGUOUS = "prompt or agent instruction file"
"""Speaks to a model with the blessing of whoever wrote it: neither an injection nor harmless."""

AGENTDOJO = "sequrity-ai/agentdojo"
"""A source of which nothing is read: whole AgentDojo is measured."""

ANSWERS = ("Lisbon", "1974", "Margaret Hale", "twelve", "Toyota", "no", "the Ottoman Empire", "July 1998",
           "Gothenburg", "yes", "Acme Cloud", "42")  # fmt: skip

BLIND = "orders_first_blind"
"""Kept aside, for the scan's table."""

HELD_OUT, HELD_OUT_LANGUAGES = 0.25, ("ja", "tr", "it", "bn")
"""The share of the families of `injections.jsonl`, and its languages, that are not read."""

UNREAD_LANGUAGES = ("fi", "he", "bn", "el")
"""No text of ours in these languages is read: they show what a language costs that nobody wrote in."""

ASIDE, ASIDE_LANGUAGES = 0.15, ("th", "tr", "hu", "ta")
"""The share of the documents of ordinary text, and its languages, that only show false alarms."""

LARGE_DOCUMENT = 60
"""Texts of a document from which on it is split by texts."""

CODES = {
    "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt", "dutch": "nl",
    "polish": "pl", "russian": "ru", "chinese": "zh", "japanese": "ja", "korean": "ko", "turkish": "tr",
    "arabic": "ar", "ukrainian": "uk", "czech": "cs", "swedish": "sv", "indonesian": "id", "vietnamese": "vi",
    "hindi": "hi", "hinglish": "hi-Latn", "danish": "da", "norwegian": "no", "finnish": "fi", "hungarian": "hu",
    "romanian": "ro", "greek": "el", "persian": "fa", "hebrew": "he", "bengali": "bn", "urdu": "ur", "thai": "th",
}  # fmt: skip
"""Languages by the headings of `texts/`."""


class Text(NamedTuple):
    """One text.

    Attributes:
        text: Canonical.
        injection: Whether it is one, or holds one.
        kind: What it is.
        family: What is left out together: a template, a file, a wording.
        source: The repository or file.
        language: As given, or English.
        place: Where the injection stands in the text; None where it is the whole text, or unknown.
        given: Whether it is one of `injections.jsonl`.
        near: Whether it is an injection, or was written or chosen for looking like one.
        aside: Whether it only shows false alarms.
    """

    text: str
    injection: bool
    kind: str
    family: str
    source: str
    language: str = "en"
    place: tuple[int, int] | None = None
    given: bool = False
    near: bool = True
    aside: bool = False


def share(text: str) -> float:
    """A number in [0, 1) by a hash."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") / 2**64


def held_out(text: Text) -> bool:
    """Whether a text only shows what is found and flagged: a family or language aside, or ordinary text aside."""
    if text.given:
        return share(f"model/{text.family}") < HELD_OUT or text.language in HELD_OUT_LANGUAGES
    return text.aside


def all_texts(folder: Path, seed: int = 0) -> list[Text]:
    """All texts, in the same order each time; our own wordings are filled anew with each seed."""
    published = (text for text in _published(folder) if text.source != AGENTDOJO)
    return [*published, *_written(), *_tries(), *_wordings(folder, seed), *_ordinary(folder)]


def measured_texts(folder: Path) -> list[Text]:
    """The texts that are not trained on."""
    every = (*_published(folder), *_languages(folder / "clean_languages.jsonl"), *_passages(folder))
    return [text for text in every if held_out(text)]


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _published(folder: Path) -> Iterator[Text]:
    for row in _rows(folder / "injections.jsonl"):
        if row["kind"] != AMBIGUOUS:
            text, order = canonical(row["text"]).text, canonical(row.get("order") or "").text
            start = text.find(order) if order else -1
            place = (start, start + len(order)) if start >= 0 else None
            label = row["label"] == "injection"
            if text.strip():
                yield Text(text, label, row["kind"], row["family"], row["source"], row["language"], place, given=True)


def _written() -> Iterator[Text]:
    """Texts written one by one, none by rule."""
    for file in sorted(FOLDER.glob("wordings_*.jsonl")):
        for row in _rows(file):
            text, kind = canonical(row["text"]).text, f"written: {row['kind']}"
            if text.strip() and row["language"] not in UNREAD_LANGUAGES:
                yield Text(text, row["label"] == "order", kind, f"written/{text}", file.stem, row["language"])


def _tries() -> Iterator[Text]:
    """First tries on which the grammar was mended; those that are held out stay so."""
    file = Path(__file__).parents[1] / "quality" / "first_tries.jsonl"
    for row in _rows(file):
        language = CODES.get(row["language"].lower(), "en")
        if row["set"].endswith("mended on") and language not in UNREAD_LANGUAGES:
            text = canonical(row["text"]).text
            yield Text(text, row["label"] == "attack", f"try: {row['kind']}", f"tries/{text}", "first_tries", language)


def _wordings(folder: Path, seed: int) -> Iterator[Text]:
    """Our own wordings, each filled once."""
    random, asked = Random(seed), [row["question"] for row in _rows(folder / "nq_poisoned.jsonl")]
    for path in sorted(FOLDER.glob("*.txt")):
        if path.stem == BLIND or path.stem == "gibberish_flips":
            continue
        injection = path.stem.startswith(("orders", "injections"))
        for kind, wording in wordings(path.stem):
            language = CODES.get(kind.strip(), "en")
            given = {"question": random.choice(asked), "answer": random.choice(ANSWERS)}
            text = canonical(filled(wording, random, **given)).text
            if language not in UNREAD_LANGUAGES and text.strip():
                yield Text(text, injection, f"our own: {kind}", f"own/{wording}", path.stem, language)


def _ordinary(folder: Path) -> Iterator[Text]:
    yield from _languages(folder / "clean_languages.jsonl")
    yield from _passages(folder)
    found = [Text(part.text[:2000], False, "docstrings", f"docstrings/{name}", name, near=False)
             for name in REFERENCE for part in documentation_of(name)]  # fmt: skip
    yield from _some(found, MOST_DOCSTRINGS)
    for kind, text in machine_texts():
        yield Text(text, False, kind, f"machine/{text}", "machine", near=False)


def _languages(file: Path) -> Iterator[Text]:
    rows = list(_rows(file))
    texts_of = dict[str, int]()
    for row in rows:
        texts_of[row["doc"]] = texts_of.get(row["doc"], 0) + 1
    for row in rows:
        # a document and its translations are on one side
        name = row["doc"].split("#")[-1].rsplit("/", 1)[-1]
        key = row["id"] if texts_of[row["doc"]] > LARGE_DOCUMENT else name
        aside = share(f"aside/{key}") < ASIDE or row["lang"] in ASIDE_LANGUAGES
        text = canonical(row["text"]).text
        yield Text(text, False, f"clean_languages {row['kind']}", f"clean/{name}", "clean_languages", row["lang"],
                   near=False, aside=aside)  # fmt: skip


@cache
def _free_passages(folder: Path) -> tuple[Text, ...]:
    from unpoison_lab.evaluation.datasets import load, load_passages

    seen, chosen = set[str](), list[Text]()
    for name in CLEAN:
        language = name[-2:] if name.startswith("clean_wiki") else "en"
        found = list[Text]()
        for example in load(folder / f"{name}.jsonl").examples:
            for p in example.passages_by_label("clean", "gold", "noise"):
                free = name.startswith("clean") or p.passage.source in FREE
                if free and p.passage.text not in seen:
                    seen.add(p.passage.text)
                    aside = share(f"aside/{example.question}") < ASIDE
                    text = Text(p.passage.text, False, name, f"{name}/{example.question}", name, language,
                                near=False, aside=aside)  # fmt: skip
                    found.append(text)
        chosen += _some(found, MOST_CLEAN)
    corpus = [Text(p.text, False, "corpus", f"corpus/{p.text[:30]}", "corpus", near=False)
              for p in load_passages(folder / "corpus.jsonl") if p.source in FREE and p.text not in seen]  # fmt: skip
    return (*chosen, *_some(corpus, MOST_CORPUS))


def _passages(folder: Path) -> Iterator[Text]:
    yield from _free_passages(folder)


def _some(texts: list[Text], most: int) -> Iterator[Text]:
    """As many, chosen by a hash."""
    for text in sorted(texts, key=lambda text: share(text.text))[:most]:
        yield text._replace(text=canonical(text.text).text)

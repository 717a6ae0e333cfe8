"""The texts of `train_injections.py`: others' and our own injections, and harmless texts. None of them is shipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.training.docstrings import REFERENCE, REFERENCE_ASIDE, documentation_of
from benchmarks.training.guard_data import FREE
from benchmarks.training.injection_wordings import FOLDER, filled, wordings
from unpoison.text.canonical import canonical
from unpoison.text.sentences import sentences
from unpoison_lab.evaluation.datasets import load, load_passages

__all__ = ["LATER", "Text", "all_texts", "held_out", "share"]

CLEAN = ("clean_faq_answers", "clean_faq_pairs", "clean_science", "clean_software_docs", "clean_wiki_en",
         "clean_wiki_de", "clean_wiki_es", "clean_wiki_zh", "nq_large_poisoned", "nq_retrieved",
         "hotpotqa_distractor", "timeqa", "ramdocs")  # fmt: skip

MOST_CLEAN, MOST_CORPUS, MOST_DOCSTRINGS = 900, 2_000, 2_500
"""Passages of one file, of the large collection, and of docstrings."""

AMBIGUOUS = "prompt or agent instruction file"
"""Speaks to a model with the blessing of whoever wrote it: neither an injection nor harmless."""

ANSWERS = ("Lisbon", "1974", "Margaret Hale", "twelve", "Toyota", "no", "the Ottoman Empire", "July 1998",
           "Gothenburg", "yes", "Acme Cloud", "42")  # fmt: skip

BLIND = "orders_first_blind"
"""Kept aside, for the scan's table."""

PLANTED = 0.3
"""The share of our own injections that is planted in a clean passage or a tool's result once more."""

LATER = ("tester", "second", "agents", "crowd")
"""Files of wordings by several hands, written after the transformer was trained."""

WRITTEN = ("field", "people", "european", "world", "records", *LATER)
"""All files of wordings by several hands."""

RESULT = ("{'status': 'ok', 'title': 'A', 'content': '", "', 'id': 12, 'tags': ['x', 'y']}")


HELD_OUT, HELD_OUT_LANGUAGES = 0.25, ("ja", "tr", "it", "bn")
"""The share of the families of `injections.jsonl`, and the languages, that the transformer is not trained on."""


class Text(NamedTuple):
    """One text.

    Attributes:
        text: Canonical.
        injection: Whether it is one, or holds one.
        kind: What it is.
        family: What is left out together: a template, a file, a wording.
        source: The repository or file.
        language: As given.
        place: Where the injection stands in the text, if that is known.
        given: Whether it is one of `injections.jsonl`.
        near: Whether it is an injection, or was written or chosen for looking like one.
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


def share(text: str) -> float:
    """A number in [0, 1) by a hash."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") / 2**64


def held_out(text: Text) -> bool:
    """Whether a text is of a family or a language that the transformer is not trained on."""
    return text.given and (share(f"model/{text.family}") < HELD_OUT or text.language in HELD_OUT_LANGUAGES)


def all_texts(folder: Path) -> list[Text]:
    """All texts, in the same order each time."""
    passages = [*_clean(folder), *_docstrings()]
    own = list(_own(folder))
    return [*_injections(folder), *_orders(folder), *own, *_planted(own, passages), *passages]


def _rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _injections(folder: Path) -> Iterator[Text]:
    for row in _rows(folder, "injections"):
        if row["kind"] != AMBIGUOUS:
            text, order = canonical(row["text"]).text, canonical(row.get("order") or "").text
            start = text.find(order) if order else -1
            place = (start, start + len(order)) if start >= 0 else None
            label = row["label"] == "injection"
            yield Text(text, label, row["kind"], row["family"], row["source"], row["language"], place, given=True)


def _orders(folder: Path) -> Iterator[Text]:
    for row in _rows(folder, "orders"):
        kind = row["kind"]
        yield Text(
            canonical(row["text"]).text, row["label"] == "order", "orders.jsonl", f"orders/{kind}", "orders.jsonl"
        )


def _own(folder: Path) -> Iterator[Text]:
    """Our wordings, each filled more often the more choices it has."""
    random, asked = Random(0), [row["question"] for row in _rows(folder, "nq_poisoned")]
    number = 0
    for path in sorted(FOLDER.glob("*.txt")):
        if path.stem == BLIND:
            continue
        injection = path.stem.startswith(("orders", "injections"))
        for kind, wording in wordings(path.stem):
            choices = wording.count("|")
            kind_of_file = path.stem.split("_")[1]
            many = {
                "kinds": min(24, 2 + choices // 3),
                "textbook": min(24, 2 + choices // 3),
                "daily": min(20, 3 + choices),
                "languages": min(16, 3 + choices),
            }.get(kind_of_file, min(8, 2 + choices // 3) if kind_of_file in WRITTEN else 3)
            texts = set[str]()
            for _ in range(many):
                number += 1
                given = {"question": asked[number % len(asked)], "answer": ANSWERS[number % len(ANSWERS)]}
                texts.add(canonical(filled(wording, random, **given)).text)
            for text in sorted(texts):
                yield Text(text, injection, f"our own: {kind}", f"own/{wording}", path.stem)


def _planted(own: list[Text], passages: list[Text]) -> Iterator[Text]:
    random, carriers = Random(1), [text.text for text in passages if 200 < len(text.text) < 900]
    for text in own:
        if text.injection and random.random() < PLANTED:
            carrier = random.choice(carriers)
            middle = sentences(carrier)[len(sentences(carrier)) // 2][0]
            before, after = random.choice([RESULT, (carrier + " ", ""), ("", " " + carrier),
                                           (carrier[:middle], " " + carrier[middle:])])  # fmt: skip
            place = len(before), len(before) + len(text.text)
            yield text._replace(text=before + text.text + after, place=place, kind=f"{text.kind}, planted")


def _clean(folder: Path) -> Iterator[Text]:
    seen = set[str]()
    for name in CLEAN:
        found = list[Text]()
        for example in load(folder / f"{name}.jsonl").examples:
            for p in example.passages_by_label("clean", "gold", "noise"):
                free = name.startswith("clean") or p.passage.source in FREE
                if free and p.passage.text not in seen:
                    seen.add(p.passage.text)
                    found.append(Text(p.passage.text, False, name, f"{name}/{example.question}", name, near=False))
        yield from _some(found, MOST_CLEAN)
    corpus = [Text(p.text, False, "corpus", f"corpus/{p.text[:30]}", "corpus", near=False)
              for p in load_passages(folder / "corpus.jsonl") if p.source in FREE and p.text not in seen]  # fmt: skip
    yield from _some(corpus, MOST_CORPUS)


def _docstrings() -> Iterator[Text]:
    found = [Text(part.text[:2000], False, "docstrings", f"docstrings/{name}", name, near=False)
             for name in (*REFERENCE, *REFERENCE_ASIDE) for part in documentation_of(name)]  # fmt: skip
    yield from _some(found, MOST_DOCSTRINGS)


def _some(texts: list[Text], most: int) -> Iterator[Text]:
    """As many, chosen by a hash."""
    for text in sorted(texts, key=lambda text: share(text.text))[:most]:
        yield text._replace(text=canonical(text.text).text)

"""Texts made of texts, so that Guard meets more than its free data hold: web results, pages that agree, long poison."""

from __future__ import annotations

import re

import numpy as np

from unpoison_lab.attacks.rewriting import sentences, with_synonyms

__all__ = ["agreeing", "answered", "brief", "joined", "padded", "snippet"]

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def joined(texts: list[str], rng: np.random.Generator) -> list[str]:
    """Long poison: several texts on the same claim in one."""
    return [
        " ".join(texts[i] for i in rng.permutation(len(texts))[: int(rng.integers(3, 6))]) for _ in range(3) if texts
    ]


def padded(texts: list[str], clean: list[str], rng: np.random.Generator) -> list[str]:
    """Poison hidden in other text: sentences of a clean passage behind it, or before it and behind it."""
    made = []
    for text in texts[:3]:
        filling = sentences(clean[int(rng.integers(len(clean)))])[: int(rng.integers(1, 4))]
        front = int(rng.integers(len(filling) + 1)) if rng.random() < 0.4 else 0
        made.append(" ".join([*filling[:front], text, *filling[front:]]))
    return made


def agreeing(rows: list[tuple[str, bool, bool]], rng: np.random.Generator) -> list[tuple[str, bool, bool]]:
    """On the web several pages say the same in nearly the same words: some passages become versions of another."""
    if len(rows) < 4 or rng.random() > 0.4:
        return rows
    source = 0 if rng.random() < 0.7 else int(rng.integers(len(rows)))
    count = int(rng.integers(1, min(5, len(rows) - 1)))
    places = [i for i in rng.permutation(len(rows)) if i != source and not rows[i][2]][:count]
    found = list(rows)
    for i in places:
        text = with_synonyms(rows[source][0], [], rng, float(rng.choice([0.0, 0.1, 0.25]))).text
        parts = sentences(text)
        if len(parts) > 1:
            parts = [
                parts[j] for j in sorted(rng.permutation(len(parts))[: max(1, round(len(parts) * rng.uniform(0.4, 1)))])
            ]
        if rng.random() < 0.3:
            parts = [*parts, *sentences(rows[i][0])[:2]]
        found[i] = (" ".join(parts), False, False)
    return found


def answered(question: str, text: str, rng: np.random.Generator) -> str:
    """A page that repeats the question it answers, as lists of frequent questions and forums do."""
    asked = question[:1].upper() + question[1:] if rng.random() < 0.7 else question
    asked = asked.rstrip("?") + ("?" if rng.random() < 0.8 else "")
    form = rng.choice(["{} {}", "{} - {}", "Q: {} A: {}", "{}\n{}", "{} | {}", "{} ... {}"])
    return str(form).format(asked, text)


def brief(question: str, rows: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Short true answers, as shops and glossaries give them: of every text the sentence nearest the question."""
    asked = set(re.findall(r"\w+", question.lower()))

    def nearest(text: str) -> str:
        parts = [part for part in sentences(text) if len(part.split()) >= 3] or [text]
        return max(parts, key=lambda part: len(asked & set(re.findall(r"\w+", part.lower()))))

    return [(nearest(text), gold) for text, gold in rows]


def snippet(text: str, question: str, rng: np.random.Generator) -> str:
    """A passage as a search engine shows it: some twenty words, mostly those nearest to the question, cut off."""
    words = text.split()
    size = int(rng.integers(12, 34))
    if len(words) <= size:
        return text
    starts = [0, *(i + 1 for i, word in enumerate(words[:-8]) if word.endswith((".", "!", "?")))]
    if rng.random() < 0.85:
        asked = set(question.lower().split())
        start = max(starts, key=lambda i: sum(w.lower().strip(".,") in asked for w in words[i : i + size]))
    else:
        start = int(rng.choice(starts)) if rng.random() < 0.6 else int(rng.integers(len(words) - size))
    cut = " ".join(words[start : start + size])
    ending = rng.random()
    whole = re.search(r".*[.!?]", cut)
    if ending < 0.5 and whole and len(whole[0]) > 40:
        cut = whole[0]
    elif ending < 0.9:
        cut = f"{cut} ..."
    if start and rng.random() < 0.15:
        cut = f"... {cut}"
    if rng.random() < 0.15:
        cut = f"{rng.choice(MONTHS)} {int(rng.integers(1, 29))}, {int(rng.integers(2009, 2025))} — {cut}"
    return cut

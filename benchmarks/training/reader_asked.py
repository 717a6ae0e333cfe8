"""Plain questions about the subject of a page, for a teacher to answer from it: who directed it, when was it released.

A question is asked where its verb stands in the page, so that many pages answer; where the verb is said of something
else, the question is a near miss. Nobody wrote answers: only the teacher says what the page holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from benchmarks.training.reader_texts import UNLABELLED, Pair

__all__ = ["asked_of_titles"]

ASKED = {
    "directed": ("who directed {}", "who was the director of {}"),
    "produced": ("who produced {}",),
    "released": ("when was {} released", "what year did {} come out"),
    "starring": ("who stars in {}", "who played the lead in {}"),
    "written": ("who wrote {}",),
    "wrote": ("what did {} write",),
    "based": ("what is {} based on", "where is {} based"),
    "published": ("when was {} published", "who published {}"),
    "recorded": ("who recorded {}", "where was {} recorded"),
    "born": ("when was {} born", "where was {} born", "where does {} come from"),
    "died": ("when did {} die", "where did {} die"),
    "married": ("who did {} marry", "who is {} married to"),
    "son": ("who was the father of {}", "whose son was {}"),
    "daughter": ("who was the mother of {}", "whose daughter was {}"),
    "founded": ("who founded {}", "when was {} founded"),
    "established": ("when was {} established",),
    "located": ("where is {} located", "what country is {} in"),
    "population": ("what is the population of {}",),
    "capital": ("what is the capital of {}",),
    "known": ("what is {} known for", "what else is {} called"),
    "won": ("what did {} win", "who won {}", "when did {} win"),
    "played": ("who did {} play for", "who played in {}"),
    "served": ("what did {} serve as", "how long did {} serve"),
    "elected": ("when was {} elected", "who was elected in {}"),
    "built": ("when was {} built", "who built {}"),
    "named": ("who is {} named after",),
    "began": ("when did {} begin",),
    "ended": ("when did {} end",),
}
"""From a word of the page to questions about its title."""

LONGEST_TITLE = 6
"""Words."""


def asked_of_titles(sources: Sequence[tuple[str, str]], seed: int = 0) -> list[Pair]:
    """One question for each verb of the list that stands in a page."""
    rng = np.random.default_rng(seed)
    pairs = []
    for title, text in sources:
        if title and len(title.split()) <= LONGEST_TITLE:
            name, words = re.sub(r"\s*\(.*?\)", "", title), set(re.findall(r"\w+", text.lower()))
            forms = [ASKED[word] for word in ASKED if word in words]
            pairs += [Pair(str(rng.choice(one)).format(name), text, (), UNLABELLED) for one in forms]
    return pairs

r"""Our own texts for the fit of orders: orders and honest texts that look like them, from `texts/`.

A line is one wording under the heading of its kind. `{a|b}` is a choice, `\n` a new line; `{question}`, `{answer}`,
`{topic}` and the like are filled in. None of these wordings is one of `attacks/orders.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

__all__ = ["filled", "wordings"]

FOLDER = Path(__file__).parent / "texts"

FILLS: dict[str, tuple[str, ...]] = {
    "model": ("assistant", "AI", "language model", "chatbot", "model", "LLM", "AI assistant", "bot"),
    "topic": ("whales", "the history of chess", "lighthouses", "bread", "penguins", "autumn", "volcanoes", "a dragon",
              "our hotel", "the sea", "gardening", "soap", "a mountain", "trains"),
    "link": ("https://px.example.org/i.png?u=QUERY", "https://log.example.com/c?d=DATA", "https://a.example.net/r/",
             "https://t.example.org/?q={question}", "http://203.0.113.7/p.gif?t=TEXT", "https://example.net/login",
             "https://stats.example.com/s?text=[USER_INPUT]", "https://api.example.org/collect"),
}  # fmt: skip

_HEADING = re.compile(r"# [a-z -]{3,30}$")
_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")
_NAME = re.compile(r"\{(\w+)\}")


def wordings(name: str) -> Iterator[tuple[str, str]]:
    """(kind, wording) of a file of `texts/`."""
    kind = ""
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if _HEADING.match(line):
            kind = line[2:]
        elif line.strip():
            yield kind, line.replace("\\n", "\n")


def filled(wording: str, random: Random, **given: str) -> str:
    """A wording with its choices made and its names filled in."""

    def fill(match: re.Match[str]) -> str:
        return given.get(match[1]) or (random.choice(FILLS[match[1]]) if match[1] in FILLS else match[0])

    wording = re.sub(r"\{(link|topic|model)\}", fill, wording)
    wording = _NAME.sub(lambda m: f"<{m[1]}>" if m[1] in given else m[0], wording)  # braces are of choices from here on
    while (chosen := _CHOICE.sub(lambda m: random.choice(m[1].split("|")), wording)) != wording:
        wording = chosen
    return re.sub(r"<(\w+)>", lambda m: given.get(m[1], m[0]), wording)

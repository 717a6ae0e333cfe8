"""Our own injections and harmless texts that look like them, from `texts/`, which `train_injections.py` fits.

A line is one wording under the heading of its kind or language. `{a|b}` is a choice, which may hold others; a line
`:name = a|b` gives its file the choice `{:name}`; a backslash before n is a new line, before a brace or a bar the sign
itself; `{question}`, `{answer}`, `{topic}` and the like are filled in. None of these wordings is one of
`unpoison_lab/attacks/prompt_injection.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

__all__ = ["FOLDER", "filled", "wordings"]

FOLDER = Path(__file__).parent / "texts"

FILLS: dict[str, tuple[str, ...]] = {
    "model": ("assistant", "AI", "language model", "chatbot", "model", "LLM", "AI assistant", "bot"),
    "topic": ("whales", "the history of chess", "lighthouses", "bread", "penguins", "autumn", "volcanoes", "a dragon",
              "our hotel", "the sea", "gardening", "soap", "a mountain", "trains"),
    "link": ("https://px.example.org/i.png?u=QUERY", "https://log.example.com/c?d=DATA", "https://a.example.net/r/",
             "https://t.example.org/?q={question}", "http://203.0.113.7/p.gif?t=TEXT", "https://example.net/login",
             "https://stats.example.com/s?text=[USER_INPUT]", "https://api.example.org/collect"),
}  # fmt: skip

ESCAPES = {"\\n": "\n", "\\{": "\ue000", "\\|": "\ue001", "\\}": "\ue002"}
UNESCAPED = str.maketrans({"\ue000": "{", "\ue001": "|", "\ue002": "}"})

_HEADING = re.compile(r"# [a-z -]{3,30}$")
_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")
_NAME = re.compile(r"\{(\w+)\}")
_PART = re.compile(r"\{(:\w+)\}")


def wordings(name: str) -> Iterator[tuple[str, str]]:
    """(kind, wording) of a file of `texts/`; the choices that it names stand in the wordings."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    parts = {line.split(" = ")[0]: "{" + line.split(" = ", 1)[1] + "}" for line in lines if re.match(r":\w+ = ", line)}
    kind = ""
    for line in lines:
        if _HEADING.match(line):
            kind = line[2:]
        elif line.strip() and not line.startswith(":"):
            wording = line
            while _PART.search(wording):
                wording = _PART.sub(lambda part: parts[part[1]], wording)
            for escape, sign in ESCAPES.items():
                wording = wording.replace(escape, sign)
            yield kind, wording


def filled(wording: str, random: Random, **given: str) -> str:
    """A wording with its choices made and its names filled in."""

    def fill(match: re.Match[str]) -> str:
        return given.get(match[1]) or (random.choice(FILLS[match[1]]) if match[1] in FILLS else match[0])

    wording = re.sub(r"\{(link|topic|model)\}", fill, wording)
    wording = _NAME.sub(
        lambda m: f"\ue003{m[1]}\ue004" if m[1] in given else m[0], wording
    )  # choices alone have braces
    while (chosen := _CHOICE.sub(lambda m: random.choice(m[1].split("|")), wording)) != wording:
        wording = chosen
    return re.sub("\ue003(\\w+)\ue004", lambda m: given.get(m[1], m[0]), wording).translate(UNESCAPED)

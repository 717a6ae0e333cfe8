"""What the papers' released code plants and asks, word for word: `unpoison data get replay` fetches it.

The package holds none of it: the recipe says where in a pinned file each text stands. A text has `{question}`,
`{answer}`, `{context}` or `{opening}` where theirs puts a variable.
"""

from __future__ import annotations

import json
import re

from unpoison.bench.data.catalogue import data_file
from unpoison.bench.data.store import Store

__all__ = ["fill", "has_replay", "released_text"]

_HOLE = re.compile(r"\{(question|answer|context|opening)\}")


def has_replay() -> bool:
    """Whether the texts were fetched; their hash is compared when they are read."""
    return Store().has(data_file("replay"))


def released_text(name: str) -> str:
    """One text of the released code.

    Args:
        name: Such as `qa-radar`, an order that RADAR's code plants, or `answer-grada`, what GRADA's asks.

    Raises:
        InputError: The texts were not fetched, or are damaged; the message has the command.
        KeyError: There is none of this name.
    """
    lines = Store().verify(data_file("replay")).read_text(encoding="utf-8").splitlines()
    return str({row["id"]: row["text"] for row in map(json.loads, lines)}[name])


def fill(text: str, **values: str) -> str:
    """The text with its holes filled, all at once: what is filled in is never read as a hole."""
    return _HOLE.sub(lambda hole: values[hole[1]], text)

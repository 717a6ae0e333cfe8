"""What a screening says of its input besides the verdicts: texts that are empty, hide something, or are too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unpoison.core.passages import Passage, Query

__all__ = ["LONG", "input_notes", "length_notes", "overlong"]

LONG = 20_000
"""Characters of a passage beyond which one planted sentence hardly changes its score. The service judges longer
passages in windows of this size; a screening notes them."""

MAX_NOTES = 10
"""Maximum number of passages with hidden text that are named one by one."""


def input_notes(query: Query, passages: Sequence[Passage], longest: int | None) -> list[str]:
    """Notes on empty and hidden texts, and on those of which a part is not judged.

    Args:
        query: The question.
        passages: All passages, in the caller's order.
        longest: The number of tokens that the encoder reads; None if it states no limit.
    """
    empty = {i: "is empty" for i, passage in enumerate(passages) if not passage.text.strip()}
    hiding = {i: f"hides {passage.hidden}" for i, passage in enumerate(passages) if passage.hidden}
    return [
        *([] if query.text.strip() else ["the question is empty"]),
        *_each(empty, "are empty"),
        *([f"the question hides {query.hidden}"] if query.hidden else []),
        *_each(hiding, "hide something"),
        *length_notes(passages),
        *_cut(passages, longest),
    ]


def length_notes(passages: Sequence[Passage]) -> list[str]:
    """A note on passages so long that their sentences were not judged one by one."""
    long = overlong(passages)
    judged = f"longer than {LONG:,} characters and judged as one text, in which one planted sentence weighs little"
    return [f"{judged}: passage {_list_positions(long)}; screen it in parts, as it should be indexed"] if long else []


def overlong(passages: Sequence[Passage]) -> list[int]:
    """Positions of passages too long to be judged sentence by sentence."""
    return [i for i, passage in enumerate(passages) if max(len(passage.text), len(passage.title or "")) > LONG]


def _cut(passages: Sequence[Passage], longest: int | None) -> list[str]:
    """A note on passages with more words than the encoder reads tokens, if it states a limit."""
    cut = [i for i, passage in enumerate(passages) if longest and len(passage.reading.split(None, longest)) > longest]
    where = f"vectors made here leave out the rest of passage {_list_positions(cut)}"
    return [f"the encoder reads {longest} tokens of a text, so {where}"] if cut else []


def _list_positions(positions: list[int]) -> str:
    more = len(positions) - MAX_NOTES
    return ", ".join(map(str, positions[:MAX_NOTES])) + (f" and {more} more" if more > 0 else "")


def _each(said: Mapping[int, str], of_many: str) -> list[str]:
    """A note on each passage by its position; beyond ten passages only their number."""
    notes = [f"passage {i} {what}" for i, what in said.items()]
    more = len(notes) - MAX_NOTES
    return [*notes[:MAX_NOTES], *([f"{more} more passages {of_many}"] if more > 0 else [])]

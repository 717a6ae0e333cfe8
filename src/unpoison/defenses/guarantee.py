"""Withholds answers with a smaller guarantee than the caller requires."""

from __future__ import annotations

from dataclasses import replace

from unpoison.core.answers import Answer
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError

__all__ = ["need_proof", "withhold_unproved"]


def withhold_unproved(answer: Answer, wanted: int) -> Answer:
    """The answer if it is guaranteed against `wanted` changed passages; else an abstention with a note.

    The withheld text is in `details["withheld"]`, its guarantee in `details["withheld_guarantee"]`. An attacker who
    cannot change an answer may still have it withheld: each of his passages reduces an exact guarantee g by at most 1,
    so that up to g - `wanted` of them have no effect.

    Args:
        answer: From any defense.
        wanted: 0 or more; 0 passes every answer.
    """
    if answer.abstained or wanted < 1 or (answer.guarantee or 0) >= wanted:
        return answer
    details = {**answer.details, "withheld": answer.text, "withheld_guarantee": answer.guarantee}
    empty = replace(
        Answer.abstention(answer.screening, details),
        calls=answer.calls,
        belief=answer.belief,
        guarantee=None if answer.guarantee is None else 0,
        proof=answer.proof,
    )
    proved = (
        "nothing is proved of it"
        if answer.guarantee is None
        else f"{answer.guarantee} {'is' if answer.guarantee == 1 else 'are'} proved"
    )
    passages = "1 planted passage" if wanted == 1 else f"{wanted} planted passages"
    count = len(answer.screening.passages)
    most = max(0, (count - 1) // 2)
    if answer.guarantee is not None and wanted > most:  # half of the votes decide the result
        proved += f"; {count} passages withstand {most} at most, so retrieve {2 * wanted + 1} or more"
    return empty.with_notes(f"an answer was withheld: it has to withstand {passages}, and {proved}")


def need_proof(defense: Defense, option: str) -> None:
    """Reject a defense without guarantees.

    Raises:
        OptionError: The defense has no proof of its answers.
    """
    if not defense.certifies:
        raise OptionError(
            f"{option} asks for a guarantee, and {defense.name} has no proof of its answers; use vote, robustrag, or "
            "guard:answer=guaranteed"
        )

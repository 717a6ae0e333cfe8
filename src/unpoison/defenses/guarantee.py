"""Answers that hold against as many planted passages as the caller asks for, and none else."""

from __future__ import annotations

from dataclasses import replace

from unpoison.core.answers import Answer
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError

__all__ = ["need_proof", "withhold_unproved"]


def withhold_unproved(answer: Answer, wanted: int) -> Answer:
    """The answer if it is guaranteed against `wanted` changed passages; else an abstention that says why.

    Its words are in `details["withheld"]` then, its guarantee in `details["withheld_guarantee"]`. So an attacker can
    have an answer withheld where he cannot change it: a vote with a guarantee of g is given as long as he has no more
    than g - `wanted` passages, for each of them takes 1 of an exact guarantee at most.

    Args:
        answer: From any defense.
        wanted: 0 or more; 0 lets every answer pass.
    """
    if answer.abstained or wanted < 1 or (answer.guarantee or 0) >= wanted:
        return answer
    details = {**answer.details, "withheld": answer.text, "withheld_guarantee": answer.guarantee}
    empty = replace(
        Answer.abstention(answer.screening, details),
        calls=answer.calls,
        screened=answer.screened,
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
    if answer.guarantee is not None and wanted > most:  # who owns half of the votes owns the result
        proved += f"; {count} passages withstand {most} at most, so retrieve {2 * wanted + 1} or more"
    return empty.with_notes(f"an answer was withheld: it has to withstand {passages}, and {proved}")


def need_proof(defense: Defense, option: str) -> None:
    """Refuse to wait for guarantees that never come.

    Raises:
        OptionError: The defense has no proof of its answers.
    """
    if not defense.certifies:
        raise OptionError(
            f"{option} asks for a guarantee, and {defense.name} has no proof of its answers; use vote, robustrag, or "
            "guard:answer=guaranteed"
        )

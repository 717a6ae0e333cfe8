"""Vote: the answer that most passages or sources give, each passage read alone, and how many planted it withstands.

**What an attacker may change.** Of the k passages any m: their text, title, embedding and place; they may be gone, and
as many as m others may come in, so that there are k - m to k + m passages. The question and the other passages stay,
in any order. So one proof covers a planted passage that pushes an honest one out, one that comes on top, and an honest
one that was suppressed.

**Theorem.** With `guarantee` g of an answer that says w, after any such change of m <= g passages `Vote` answers w
again (`same="written"`: an answer of the same form, `text.answer_forms`; `same="meaning"`: w or what says the same as
w).

**Proof.** (1) What a passage votes for is a function of the question and of that passage: its canonical reading is made
from its own text (`passages`), injections by its own text (`screener.injections`), it is read in a prompt of its own
(`defenses.isolation`), `informative` and `text.forms.form` look at its own answer. Caches return what would be made
anew; equal prompts are asked once, with equal replies. (2) So m changes take at most m votes from any class and give at
most m to any. With `copies="once"` a class has as many votes as there can be passages among its voters of which no two
are near-copies, the size of a maximum independent set. One more vertex in a graph leaves that size or adds 1, and one
less leaves it or takes 1, whatever its edges are; and a passage is in one class. So (2) holds there too, though being a
near-copy is not transitive and a planted text may be a near-copy of several. (3) The rest is arithmetic on counts,
proved at `algorithms.votes`. Order is nowhere used: ties go to abstention, and of several ways to write the winner
the commonest is shown, of equally common ones the first in the alphabet. An attacker may thus change how the answer is
written (case, the form of a date), not what it says.

**With sources.** Each source has one vote in every class in which it says anything, of the weight of its trust; those
that were never seen before have none beside those that were. Then `guarantee` counts sources, with all that they say
or withhold: the votes of a source are a function of the question, of its own passages, and of its standing, which
questions before this one decided. The rest is proved at `algorithms.owned_sources.outvotes`. A source that does not
count has no vote as long as one that does says anything, and behind a winner that withstands m sources one more says
so.

**Assumptions.** Equal prompts get equal replies. A model error, a deadline or input beyond its bounds gives no answer,
which is no other answer. The proof says nothing on truth: a lie that most passages tell wins, and is guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Unpack

import numpy as np

from unpoison.core.answers import Answer, guarantee_sentence
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions
from unpoison.defenses.isolation import read_apart
from unpoison.defenses.voices import Voice, voices_of
from unpoison.defenses.vote_counting import Ballots, Counted, count_ballots, count_by_source
from unpoison.errors import OptionError
from unpoison.models.prompts import atomic_answer_reference_prompt
from unpoison.models.protocols import Generator, NLIModel
from unpoison.models.requests import Flow
from unpoison.utils.checks import among, at_least

__all__ = ["Poll", "Vote"]


class Poll(NamedTuple):
    """What was read, for whom, and what came of it."""

    ballots: Ballots
    result: Counted
    voices: Sequence[Voice]


class Vote(Defense):
    """Answer what most passages answer, each read alone; say how many planted passages that withstands.

    `Answer.guarantee` is the largest number that the theorem at the head of this file proves, exact for
    `same="written"`: one more change can change the answer. Passages that say something else are dropped, and so are
    those that do not answer.

    Args:
        generator: Reads each passage alone; with the small reader (`reader`) 50 passages take some tenths of a second.
        nli: With `same="meaning"`, judges which answers entail each other both ways, each pair in a run of its own;
            rules (`text.answers`) by default.
        same: Which answers are one. `written`: those of one form (`text.answer_forms`). `meaning`: also those that
            contain or say the same as one with `seconds` votes of its own.
        seconds: Votes that such an answer needs, 1 or more; nothing beyond `seconds` - 1 changes can be proved.
        copies: Whether `each` passage has a vote, or near-copies (three quarters of their words in common) have `once`
            what they say counted; then at most 100 passages.
        least: Votes that the answer needs, at least 1; with fewer it abstains. With sources so many of them.
        sources: Who says what: `Sources`, or a policy as a file or a mapping. Then sources vote, each once for what it
            says, by their trust, and the guarantee is in sources. What is of a blocked source is dropped unread.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "vote"
    needs = ("generator",)
    summary = "answers what most passages answer, each read alone, and proves how many planted ones that withstands"
    calls = "k"
    certifies = True
    source = "this package, after Xiang et al., 2024"
    client_options = {"least": "higher"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        *,
        same: Literal["written", "meaning"] = "written",
        seconds: int = 4,
        copies: Literal["each", "once"] = "each",
        least: int = 1,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, nli=nli, **shell)
        self.same = among("same", same, ("written", "meaning"))
        self.seconds = at_least("seconds", seconds, 1)
        self.copies = among("copies", copies, ("each", "once"))
        self.least = at_least("least", least, 1)
        if self.sources is not None and copies == "once":
            raise OptionError(
                "copies=once counts texts and sources= counts who says them; leave out copies, or the sources"
            )

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Kept are the passages that give the winning answer, in retrieval order."""
        return self.screening_from_poll(query, passages, (yield from self.take_poll(query, passages)))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The winning answer, or an abstention."""
        poll = yield from self.take_poll(query, passages)
        return self.answer_from_poll(self.screening_from_poll(query, passages, poll), poll)

    def take_poll(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Poll]:
        """Read each passage alone, and count."""
        answers = yield from read_apart(query, passages, atomic_answer_reference_prompt, self.models.generator)
        ballots = Ballots.of(query.reading, answers)
        voices = voices_of(self.sources, query.text, passages)
        rule = self.same, self.seconds
        nli = self.models.nli
        if self.sources is not None:
            result = yield from count_by_source(query.reading, ballots, voices, self.least, *rule, nli)
        else:
            texts, once = [passage.reading for passage in passages], self.copies == "once"
            result = yield from count_ballots(query.reading, ballots, texts, self.least, *rule, once, nli)
        return Poll(ballots, result, voices)

    def answer_from_poll(self, screening: Screening, poll: Poll) -> Answer:
        """The answer that a poll comes to."""
        ballots, result, voices = poll
        details = {"atomic_answers": list(ballots.answers), "votes": dict(result.votes)}
        if result.winner is None:
            answer = Answer.abstention(screening, details)
        else:
            answer = Answer(ballots.wording(result.winner, voices), screening, details=details)
        margin = min(result.margin, len(ballots.answers))
        return replace(answer, guarantee=margin, guarantee_unit=result.unit, proof=result.says)

    def screening_from_poll(self, query: Query, passages: tuple[Passage, ...], poll: Poll) -> Screening:
        """What a poll says of the passages: those behind the winning answer are kept."""
        ballots, result, _ = poll
        behind = [i for i, name in enumerate(ballots.forms) if name and name in result.behind]
        scores = [float(result.votes.get(name, 0)) for name in ballots.forms]
        k = len(passages)
        notes = (result.says, guarantee_sentence(min(result.margin, k), k, result.unit)) if passages else ()
        notes = (*notes, *self.source_notes)
        evidence = Evidence({"votes": np.array(scores)}, notes)
        reasons = [_reason(i, ballots, result) for i in range(k)]
        return Screening.decided(
            self.name, query, passages, kept=behind, scores=scores, reasons=reasons, evidence=evidence
        )


def _reason(i: int, ballots: Ballots, result: Counted) -> Reason:
    name = ballots.forms[i]
    if not name:
        return Reason.of("vote.no_answer")
    answer, votes, support = quotable(ballots.answers[i]), _whole(result.votes[name]), _whole(result.support)
    if result.winner is None:
        return Reason.of("vote.nobody_wins", answer=answer, votes=votes)
    if name in result.behind:
        return Reason.of("vote.wins", answer=answer, support=support)
    return Reason.of("vote.loses", answer=answer, votes=votes, support=support)


def _whole(votes: float) -> float:
    """Votes as they are said: weighed ones with three digits."""
    return int(votes) if votes == int(votes) else round(votes, 3)

"""Vote: the answer of most passages or sources, each passage read alone, with a guarantee against planted ones.

**Attacker.** Of the k passages the attacker changes any m: text, title, embedding and rank. Passages may disappear, and
up to m others may be added, so that k - m to k + m remain. The question and the other passages stay, in any order. One
proof thus covers a planted passage that displaces an honest one, an added passage, and a suppressed honest passage.

**Theorem.** If an answer w has `guarantee` g, then after any such change of m <= g passages `Vote` returns an answer of
the same form as w (`text.answer_forms`).

**Proof.** (1) The vote of a passage is a function of the question and of that passage: its canonical reading comes from
its own text, injections are found in its own text (`injections.cutting`), it is read in a prompt of its own
(`defenses.voices`), and `informative` and `form` see its own answer only. Caches return what would be computed
again; equal prompts are sent once and get equal replies. (2) So m changes take at most m votes from any class and give
at most m to any class. (3) `algorithms.votes.outvotes` proves the rest by arithmetic on the counts. The order of
passages is never used: ties abstain, and of several wordings of the winner the most frequent is shown, then the
alphabetically first. An attacker can thus change the wording of an answer (case, date format), but not its meaning.

**With sources.** Each source has one vote in every class that it names, weighted by its trust; sources never seen
before have none beside known ones. `guarantee` then counts sources, whatever they say or withhold: the votes of a
source depend on the question, its own passages, and its standing, which earlier questions decided. A source that does
not count has no vote while one that counts answers, and behind a winner that withstands m sources at least one more
gives the same answer.

**Assumptions.** Equal prompts get equal replies. A model error, a deadline or oversized input gives no answer, which is
not a different answer. The proof does not concern truth: a lie that most passages tell wins, and is guaranteed.

**Behind Guard** (`Guard(answer="guaranteed")`, `answer_by_vote`). A check that compares passages can be turned against
honest ones: planted texts that resemble an honest passage make it suspicious, and it is dropped. Then m planted
passages change more than m, and any guarantee of what answers from the rest is void. So nothing is compared there:
`hidden`, `prompt_injection` and `gibberish` look at one passage only, and `crafted` looks at the passage and the
question. The verdict on a passage is thus a function of that passage: if two sets differ in m passages, the kept sets
differ in at most m, which the vote withstands. A generator that writes then words the winning answer from its form,
which contains nobody's wording, and from no passage: the text is a function of the question and of the form, and stays
the same with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Unpack

import numpy as np

from unpoison.algorithms.votes import outvotes
from unpoison.core.answers import Answer, guarantee_sentence
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions
from unpoison.defenses.voices import Voice, read_isolated, those_that_count, voices_of
from unpoison.errors import InputError, OptionError
from unpoison.io.rows import Row
from unpoison.models.loading import can_write
from unpoison.models.prompts import atomic_answer_reference_prompt, synthesis_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import run
from unpoison.sources import Sources
from unpoison.text.answer_forms import form
from unpoison.text.replies import informative
from unpoison.utils.checks import at_least

__all__ = ["Vote", "answer_by_vote", "answers_by_origin", "need_proof", "withhold_unproved"]


class Poll(NamedTuple):
    """The answers of the passages, and the result of counting them.

    Attributes:
        answers: The answer of each passage, as read.
        forms: Its class (`text.answer_forms`), "" for no answer.
        voices: The voice of each passage.
        weights: The votes of each class.
        winner: The winning class; None if no class leads or the leading one has too few votes.
        margin: The number of changed passages or sources that the winner provably withstands; 0 without a winner.
        rule: How the winner was found, in one sentence.
        unit: What votes, and what the margin counts.
    """

    answers: tuple[str, ...]
    forms: tuple[str, ...]
    voices: Sequence[Voice]
    weights: Mapping[str, float]
    winner: str | None
    margin: int
    rule: str
    unit: Literal["passages", "sources"]

    @property
    def wording(self) -> str:
        """The most frequent wording of the winner, counted by voice; of equally frequent ones the first by alphabet."""
        behind = those_that_count(self.voices, (i for i, name in enumerate(self.forms) if name == self.winner))
        ways = Counter(way for way, _ in {(self.answers[i].strip(), self.voices[i].name) for i in behind})
        return min(ways, key=lambda way: (-ways[way], way))


class Vote(Defense):
    """Give the answer that most passages give, each read alone; say how many planted passages that withstands.

    `Answer.guarantee` is the largest number for which the theorem above holds, and is exact: one more change can change
    the answer. Passages with another answer, or with none, are dropped.

    Args:
        generator: Reads each passage alone; the small reader (`reader`) reads 50 passages in some tenths of a second.
        least: The minimum number of votes, at least 1; with fewer it abstains. With sources, the number of sources.
        sources: `Sources`, or a policy as a file or a mapping. Each source then votes once for each of its answers,
            weighted by its trust, and the guarantee counts sources. Blocked sources are dropped unread.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "vote"
    needs = ("generator",)
    summary = "answers what most passages answer, each read alone, and proves how many planted ones that withstands"
    calls = "k"
    certifies = True
    source = "this package, after Xiang et al., 2024"

    def __init__(
        self, generator: Generator | str | None = None, *, least: int = 1, **shell: Unpack[ShellOptions]
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.least = at_least("least", least, 1)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Keep the passages that give the winning answer, in retrieval order."""
        return self.screening_from_poll(query, passages, (yield from self.take_poll(query, passages)))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The winning answer, or an abstention."""
        poll = yield from self.take_poll(query, passages)
        return self.answer_from_poll(self.screening_from_poll(query, passages, poll), poll)

    def take_poll(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Poll]:
        """Read each passage alone, and count the answers."""
        answers = yield from read_isolated(query, passages, atomic_answer_reference_prompt, self.models.generator)
        voices = voices_of(self.sources, query.text, passages)
        unit: Literal["passages", "sources"] = "passages" if self.sources is None else "sources"
        return count_votes(query.reading, answers, voices, self.least, unit)

    def answer_from_poll(self, screening: Screening, poll: Poll) -> Answer:
        """The answer that a poll gives."""
        details = {"atomic_answers": list(poll.answers), "votes": dict(poll.weights)}
        answer = Answer.abstention(screening, details)
        if poll.winner is not None:
            answer = Answer(poll.wording, screening, details=details)
        return replace(answer, guarantee=poll.margin, guarantee_unit=poll.unit, proof=poll.rule)

    def screening_from_poll(self, query: Query, passages: tuple[Passage, ...], poll: Poll) -> Screening:
        """Keep the passages behind the winning answer."""
        scores = [poll.weights.get(name, 0.0) for name in poll.forms]
        notes = (poll.rule, guarantee_sentence(poll.margin, len(passages), poll.unit)) if passages else ()
        found = Evidence({"votes": np.array(scores)}, (*notes, *self.source_notes))
        kept = [i for i, name in enumerate(poll.forms) if name and name == poll.winner]
        why = [_reason(answer, name, poll) for answer, name in zip(poll.answers, poll.forms, strict=True)]
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=why, evidence=found)


def count_votes(
    question: str, answers: Sequence[str], voices: Sequence[Voice], least: int, unit: Literal["passages", "sources"]
) -> Poll:
    """Count answers of the same form; a voice votes once for each form.

    Args:
        question: The question's reading.
        answers: The answer of each passage.
        voices: The voice of each passage.
        least: The minimum number of voices behind a winner.
        unit: What the voices are.
    """
    distinct = {answer: form(question, answer) if informative(answer) else "" for answer in dict.fromkeys(answers)}
    forms = tuple(distinct[answer] for answer in answers)
    votes: dict[str, dict[str, float]] = {name: {} for name in forms if name}
    for i in those_that_count(voices, (i for i, name in enumerate(forms) if name)):
        votes[forms[i]][voices[i].name] = voices[i].weight
    weights = {name: _total(own) for name, own in votes.items()}
    most = max(weights.values(), default=0.0)
    leaders = [name for name, weight in weights.items() if weight == most > 0]
    winner = leaders[0] if len(leaders) == 1 and len(votes[leaders[0]]) >= least else None
    margin, rule = 0, _no_winner(leaders, votes, least, unit)
    if winner is not None:
        rival = max((weight for name, weight in weights.items() if name != winner), default=0.0)
        rule = f"{_say(len(votes[winner]), unit)} so, each passage read alone: {_count(most)} against {rival:g}"
        if any(voice.counts for voice, name in zip(voices, forms, strict=True) if name == winner):
            margin = outvotes(votes, winner, {voice.name: voice.most for voice in voices}, least)
        else:
            rule += "; none of them counts"
    return Poll(tuple(answers), forms, voices, weights, winner, margin, rule, unit)


def _total(votes: Mapping[str, float]) -> float:
    """The sum of weights, rounded so that the order of addition decides no tie."""
    return round(sum(sorted(votes.values())), 9)


def _say(count: int, unit: str) -> str:
    return f"{count} {unit.removesuffix('s')} says" if count == 1 else f"{count} {unit} say"


def _count(weight: float) -> str:
    return "1 vote" if weight == 1 else f"{weight:g} votes"


def _no_winner(leaders: Sequence[str], votes: Mapping[str, Mapping[str, float]], least: int, unit: str) -> str:
    if not leaders:
        return "no passage answers"
    if len(leaders) > 1:
        return f"no answer leads: several have {_count(_total(votes[leaders[0]]))} of {unit}"
    return f"no answer has the {least} {unit} that it needs: {_say(len(votes[leaders[0]]), unit)} the same"


def _reason(answer: str, name: str, poll: Poll) -> Reason:
    if not name:
        return Reason.of("vote.no_answer")
    shown, votes = quotable(answer), _shown(poll.weights[name])
    if poll.winner is None:
        return Reason.of("vote.nobody_wins", answer=shown, votes=votes)
    support = _shown(poll.weights[poll.winner])
    if name == poll.winner:
        return Reason.of("vote.wins", answer=shown, support=support)
    return Reason.of("vote.loses", answer=shown, votes=votes, support=support)


def _shown(votes: float) -> float:
    """A number of votes for a sentence: whole numbers without a point, others with three digits."""
    return int(votes) if votes == int(votes) else round(votes, 3)


def answer_by_vote(
    query: Query, screening: Screening, generator: Generator | None, sources: Sources | None = None
) -> Flow[Answer]:
    """The vote of the kept passages or their sources, worded by the generator if it writes."""
    read = tuple(screening.passages[i] for i in screening.kept_indices)
    vote = Vote(generator, sources=sources)
    poll = yield from vote.take_poll(query, read)
    answer = vote.answer_from_poll(_merge_screenings(screening, vote.screening_from_poll(query, read, poll)), poll)
    if poll.winner is None or generator is None or not can_write(generator):
        return answer
    (reply,) = yield from generate([synthesis_prompt(query.reading, [poll.winner])], "wording")
    if reply.finish == "refusal" or not informative(reply.text):
        return answer
    return replace(answer, text=reply.text, details={**answer.details, "winner": answer.text})


def _merge_screenings(screening: Screening, decided: Screening) -> Screening:
    """One screening of both steps: of the passages that the checks kept, those that the vote keeps."""
    read = screening.kept_indices
    rank = {read[i]: rank for rank, i in enumerate(decided.kept_indices)}
    reasons = {i: verdict.reason for i, verdict in zip(read, decided.verdicts, strict=True)}
    verdicts = tuple(
        replace(verdict, kept=i in rank, rank=rank.get(i), reason=reasons.get(i, verdict.reason))
        for i, verdict in enumerate(screening.verdicts)
    )
    notes = (*screening.evidence.notes, *decided.evidence.notes)
    return replace(screening, verdicts=verdicts, evidence=Evidence(screening.evidence.arrays, notes))


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
        Answer.abstention(answer.screening, details), calls=answer.calls, belief=answer.belief, proof=answer.proof
    )
    proved = "nothing is proved of it"
    if answer.guarantee is not None:
        empty = replace(empty, guarantee=0)
        proved = f"{answer.guarantee} {'is' if answer.guarantee == 1 else 'are'} proved"
        count = len(answer.screening.passages)
        most = max(0, (count - 1) // 2)  # half of the votes decide the result
        if wanted > most:
            proved += f"; {count} passages withstand {most} at most, so retrieve {2 * wanted + 1} or more"
    passages = "1 planted passage" if wanted == 1 else f"{wanted} planted passages"
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


def answers_by_origin(
    rows: Iterable[object], sources: Sources, generator: Generator | str
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The question of each row, and for each origin the form of its answer (`text.answer_forms`).

    Args:
        rows: Mappings with a question and passages, or `Row` objects.
        sources: Determines the origin of passages; passages of unknown origin are skipped.
        generator: Reads each passage alone, such as "reader".

    Yields:
        Question and answers; for each origin the most frequent answer of its passages, None if there is none or a tie.

    Raises:
        InputError: A row without question or passages; the message says which.
        ModelError: The generator failed.
    """
    vote = Vote(generator=generator)
    for number, row in enumerate(rows, 1):
        try:
            read = row if isinstance(row, Row) else Row.of(row)
        except InputError as error:
            raise InputError(f"row {number}: {error}") from None
        poll, _ = run(vote.take_poll(read.query, read.passages), vote.models, vote.limits)
        given: dict[str, Counter[str]] = {}
        for passage, name in zip(read.passages, poll.forms, strict=True):
            if origin := sources.origin(passage):
                given.setdefault(origin, Counter()).update([name] if name else [])
        yield read.query.text, {origin: _most_frequent(forms) for origin, forms in given.items()}


def _most_frequent(forms: Counter[str]) -> str | None:
    ranked = forms.most_common(2)
    return None if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]) else ranked[0][0]

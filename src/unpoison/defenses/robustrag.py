"""RobustRAG by keyword aggregation: isolate, then aggregate (Xiang et al., 2024).

Each passage is read alone, so that a poisoned one can spoil one answer only. The keywords that enough answers state
are put before the model, without any passage, and it answers from them. Whatever few passages say alone is gone, and
for a given number of poisoned ones it can be certified that the answer stands.

**What it is proved to withstand, for the passages at hand.** `RobustRag.certify` is the paper's certificate: of
passages that are all benign the last m are replaced. Here nobody knows which passages are planted, so any m of them may
be, and may be gone, replaced, or more than there were.

**Theorem.** n answers are informative and keyword w has c(w) votes; theta(n) = min(beta, alpha n). m changed passages
take r <= m informative answers away and add a <= m. If for all such r and a every keyword with c(w) - min(r, c(w)) <
theta(n - r + a) has c(w) + a < theta(n - r + a), also one that nobody states yet (c = 0), and n - m >= least, then the
final prompt is the same, and so is the answer. Where some keywords are neither sure to stay nor sure to stay out, the
answer is the same if it is the same for every set of them beside the sure ones.

**Proof.** Each answer is a function of its passage alone (`defenses.isolation`), an answer votes once for a keyword,
so c'(w) lies between c(w) - min(r, c(w)) and c(w) + a, and the threshold is theta(n - r + a). The list of keywords is
thus the sure ones and some of the doubtful; the prompt is a function of that set, and equal prompts get equal replies.
It is not more than this because votes have no weights (`gamma` = 1) and no order.

**With sources** read "source" for "passage" and "source that answers" for "informative answer": a source votes once for
a keyword, whatever number of its passages state it. Sources that were never seen before have no vote as long as one
that counts answers, and as n - m >= least >= 1, one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, Literal, NamedTuple, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.reasons import Reason, quotable
from unpoison.defenses.base import AnsweringDefense, Defense, ShellOptions, make_answer
from unpoison.defenses.isolation import is_isolated, read_alone
from unpoison.defenses.voices import Voice, ranks_of, those_that_count, voices_of
from unpoison.errors import OptionError
from unpoison.models.prompts import Prompt, fill_prompt, informative
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import run
from unpoison.text.keywords import empty, keywords
from unpoison.text.normalisation import trim_text
from unpoison.utils.checks import among, at_least, within

__all__ = ["Certificate", "Doubt", "RobustRag", "VotingRule", "doubts", "refuse_sources", "sets"]

MAX_OPTIONAL = {"short": 14, "long": 9}
"""Keywords that the attacker may let in or keep out: every subset of them is one call."""

MAX_TRIED = 6
"""Keywords in doubt that are tried for the guarantee of an answer where a reader does it at no price."""


class Certificate(NamedTuple):
    """Whether an answer stands although some passages are poisoned.

    Attributes:
        certified: It does, whatever those passages say.
        reason: Why, or why it is not certified.
        optional: The keywords whose presence the attacker decides, longest first.
        answers: The answers that the attacker can choose between.
    """

    certified: bool
    reason: str
    optional: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


class RobustRag(AnsweringDefense):
    """Answer from keywords that enough passages state, each read alone (RobustRAG, keyword aggregation).

    It drops no passage; it limits what each can contribute. With a single passage it does not protect.

    Args:
        generator: Reads each passage alone, and answers from the keywords.
        form: `short` answers; `long` for texts such as biographies, where only phrases of several words count.
        alpha: The share of informative answers that must state a keyword, in [0, 1]; by default 0.3, `long` 0.4.
        beta: That many answers always suffice, 0 or more; by default 3, `long` 4.
        gamma: The vote of rank i counts gamma^i, scaled so that all votes sum to their number, in (0, 1]. RADAR's runs
            of this method use 0.9.
        least: With fewer informative answers than this it abstains, at least 1; with sources so many of them.
        empty_hints: When no keyword has enough votes: `ask` the model with an empty list as the released code does, or
            `abstain`.
        doubtful: For `Answer.guarantee`, so many keywords that m passages may let in or keep out are tried, which takes
            up to 2^doubtful calls more for each m; 0 proves only what leaves the list of keywords as it is, at no call.
            By default 6 where the generator is a reader, and 0 else.
        sources: Who says what: `Sources`, or a policy as a file or a mapping. Then sources vote, each once for a
            keyword, those that were never seen before only where nobody else answers, and rank is the source's. What is
            of a blocked source is dropped unread.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "robustrag"
    summary = "reads each passage alone and answers from the keywords that enough of the answers share"
    calls = "k + 1"
    source = "Xiang et al., 2024"
    keeps_for = "robustrag.votes"
    certifies = True

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        form: Literal["short", "long"] = "short",
        alpha: float | None = None,
        beta: float | None = None,
        gamma: float = 1.0,
        least: int = 1,
        empty_hints: Literal["ask", "abstain"] = "ask",
        doubtful: int | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.form = among("form", form, ("short", "long"))
        shares = (0.3, 3.0) if form == "short" else (0.4, 4.0)
        self.alpha = shares[0] if alpha is None else within("alpha", alpha, 0.0, 1.0)
        self.beta = shares[1] if beta is None else at_least("beta", beta, 0.0, 1e6, whole=False)
        self.gamma = within("gamma", gamma, 1e-6, 1.0)
        self.least = at_least("least", least, 1)
        self.empty_hints = among("empty_hints", empty_hints, ("ask", "abstain"))
        reader = callable(getattr(self.models.generator, "read", None))
        usual = MAX_TRIED if reader else 0
        self.doubtful = usual if doubtful is None else at_least("doubtful", doubtful, 0, MAX_OPTIONAL["short"])

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Isolated answers, then aggregation."""
        answers = yield from self._answer_each(query, passages)
        voices = voices_of(self.sources, query.text, passages)
        weights = self._weights(answers, voices)
        reasons = [self._reason(answer, weights.get(voice.name)) for answer, voice in zip(answers, voices, strict=True)]
        screening = self.all_kept(query, passages, reasons, *self.source_notes)
        details: dict[str, Any] = {"atomic_answers": answers}
        if len(weights) < self.least:
            short = min(self.least - len(weights) - 1, len(passages))
            return self._with_proof(
                Answer.abstention(screening, details), short, f"fewer than {self.least} {self._unit} answer"
            )
        threshold = min(self.beta, self.alpha * len(weights))
        votes = self._votes(answers, weights, voices)
        details["keywords"] = hints = self._above(votes, threshold)
        if not hints and self.empty_hints == "abstain":
            answer = Answer.abstention(screening, details)
        else:
            (reply,) = yield from generate([self._final(query.reading, hints)], "final answer", screening)
            answer = make_answer(reply, screening, details)
        counted = all(voice.counts for voice in voices if voice.name in weights)
        m = (
            (yield from self._withstood(query.reading, answer.text, hints, votes, len(weights)))
            if self._provable and counted
            else 0
        )
        who = "answers" if self.sources is None else "sources"
        return self._with_proof(answer, m, f"the keywords that {threshold:g} or more of {len(weights)} {who} state")

    def _reason(self, answer: str, votes: float | None) -> Reason:
        if not informative(answer):
            return Reason.of("answer.uninformative")
        if votes is None:
            return Reason.of("sources.uncounted", answer=quotable(answer))
        return Reason.of("robustrag.voted", answer=quotable(answer), votes=votes)

    @property
    def _unit(self) -> Literal["passages", "sources"]:
        return "passages" if self.sources is None else "sources"

    @property
    def _provable(self) -> bool:
        return self.gamma == 1 and is_isolated(self.models.generator)

    def _with_proof(self, answer: Answer, guarantee: int, basis: str) -> Answer:
        if not self._provable:
            return answer
        proof = f"{basis}, each passage read alone"
        proved = replace(answer, guarantee=guarantee, guarantee_unit=self._unit, proof=proof)
        return proved.with_notes(proved.promise)

    def _withstood(
        self, question: str, text: str, current: list[str], votes: dict[str, float], answers: int
    ) -> Flow[int]:
        """The largest m for which the theorem at the head of this file holds."""
        rule, m = VotingRule(self.alpha, self.beta, self.least), 0
        while (doubt := doubts(votes, answers, m + 1, rule)) is not None and len(doubt.open) <= self.doubtful:
            lists = [hints for hints in sets(doubt, _longest_first) if hints != current]
            prompted = [hints for hints in lists if hints or self.empty_hints == "ask"]
            if len(prompted) < len(lists) and text != "I don't know.":
                break
            replies = yield from generate([self._final(question, hints) for hints in prompted], "guarantee")
            if any(reply.text != text for reply in replies):
                break
            m += 1
        return m

    def _answer_each(self, query: Query, passages: Sequence[Passage]) -> Flow[list[str]]:
        name = "atomic-reference" if self.form == "short" else "phrases-of-passage"
        return (yield from read_alone(query, passages, lambda question, text: fill_prompt(name, question, [text])))

    def _weights(self, answers: Sequence[str], voices: Sequence[Voice]) -> dict[str, float]:
        """What the vote of each voice counts that answers anything; the sum is their number."""
        speaking = (i for i, answer in enumerate(answers) if informative(answer))
        place = ranks_of(voices)
        decay = {voices[i].name: self.gamma ** place[i] for i in those_that_count(voices, speaking)}
        scale = len(decay) / sum(decay.values()) if sum(decay.values()) else 0.0
        return {name: value * scale for name, value in decay.items()}

    def _votes(self, answers: Sequence[str], weights: Mapping[str, float], voices: Sequence[Voice]) -> dict[str, float]:
        """The votes of each keyword; a voice votes once for a keyword, however often it states it."""
        votes: dict[str, float] = {}
        stated: set[tuple[str, str]] = set()
        for answer, voice in zip(answers, voices, strict=True):
            if voice.name not in weights or not informative(answer):
                continue
            for keyword in keywords(answer):
                if (keyword, voice.name) not in stated:
                    stated.add((keyword, voice.name))
                    votes[keyword] = votes.get(keyword, 0.0) + weights[voice.name]
        telling = (keyword for keyword in votes if not empty(keyword) and (self.form == "short" or " " in keyword))
        return {keyword: votes[keyword] for keyword in telling}

    def _above(self, votes: dict[str, float], threshold: float) -> list[str]:
        """The keywords with enough votes, the longest first."""
        return _longest_first(word for word, count in votes.items() if round(count - threshold, DECIMALS) >= 0)

    def _final(self, question: str, hints: Sequence[str]) -> Prompt:
        return fill_prompt("keywords" if self.form == "short" else "phrases", question, hints)

    def certify(
        self,
        query: str | Query,
        passages: Iterable[Any],
        poisoned: int = 1,
        correct: Callable[[str], bool] | None = None,
    ) -> Certificate:
        """Whether the answer stands when the last `poisoned` passages are replaced by anything at all.

        Keywords that enough of the other answers state stay whatever the attacker does, those short of at most
        `poisoned` votes may be let in, and nothing else can: the model is asked with every such list, at most 2^14
        calls (2^9 for `long`). Give it a `Limits` with a long deadline. The generator must be deterministic.

        Args:
            query: The user's question.
            passages: In retrieval order, all taken for benign.
            poisoned: How many of them, at the end, are in the attacker's hands.
            correct: Whether a final answer counts as correct, such as `lambda text: "Paris" in text`; None asks that
                all answers be the same, up to case and a final period.

        Raises:
            OptionError: `gamma` is not 1, there are sources, or `poisoned` is not positive.
            InputError, ModelError, DeadlineError: As for `answer`.
        """
        self.shell.require_generator()
        flow = self.certify_flow(as_query(query), as_passages(passages), at_least("poisoned", poisoned, 1), correct)
        return run(flow, self.models, self.limits)[0]

    def certify_flow(
        self, query: Query, passages: tuple[Passage, ...], poisoned: int, correct: Callable[[str], bool] | None
    ) -> Flow[Certificate]:
        """The flow behind `certify`."""
        if self.gamma != 1:
            raise OptionError(f"only equal votes can be certified: gamma must be 1, got {self.gamma:g}")
        refuse_sources(self)
        answers = yield from self._answer_each(query, passages[: max(0, len(passages) - poisoned)])
        voices = voices_of(None, query.text, passages[: len(answers)])
        weights = self._weights(answers, voices)
        threshold = min(self.beta, self.alpha * (len(weights) + poisoned))
        if round(threshold - poisoned, DECIMALS) <= 0:
            return Certificate(False, f"{poisoned} poisoned answers reach the threshold of {threshold:g} votes alone")
        if len(weights) < self.least:
            return Certificate(False, f"{len(weights)} of the other answers are informative, {self.least} must be")
        votes = self._votes(answers, weights, voices)
        sure = self._above(votes, threshold)
        optional = [word for word in self._above(votes, threshold - poisoned) if word not in sure]
        if len(optional) > MAX_OPTIONAL[self.form]:
            return Certificate(False, f"{len(optional)} keywords are in doubt, too many to try", tuple(optional))
        lists = list(sets(Doubt(frozenset(sure), tuple(optional)), _longest_first))
        prompted = [hints for hints in lists if hints or self.empty_hints == "ask"]
        replies = yield from generate([self._final(query.reading, hints) for hints in prompted], "certificate")
        texts = [reply.text for reply in replies] + ["I don't know."] * (len(prompted) < len(lists))
        distinct = tuple({trim_text(text): text for text in reversed(texts)}.values())[::-1]
        stands = all(map(correct, texts)) if correct else len(distinct) == 1
        reason = f"{len(optional)} keywords are in doubt, and the answer {'stands' if stands else 'depends on them'}"
        return Certificate(stands, reason, tuple(optional), distinct)


def refuse_sources(defense: Defense) -> None:
    """Certify no votes of sources.

    Raises:
        OptionError: The defense was given sources.
    """
    if defense.sources is not None:
        raise OptionError("a certificate counts passages, and sources= counts who wrote them; leave out the sources")


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=lambda word: (len(word), word), reverse=True)


DECIMALS = 12
"""Votes and threshold are compared after rounding: noise of the arithmetic must not decide."""


class VotingRule(NamedTuple):
    """When a keyword is in: with at least min(`beta`, `alpha` n) votes of n answers, which must be `least` or more."""

    alpha: float
    beta: float
    least: int

    def is_reached(self, votes: float, answers: int) -> bool:
        return round(votes - min(self.beta, self.alpha * answers), DECIMALS) >= 0


class Doubt(NamedTuple):
    """What m changes leave open: the keywords that stay, and those that may be in or out."""

    sure: frozenset[str]
    open: tuple[str, ...]


def doubts(votes: Mapping[str, float], answers: int, m: int, rule: VotingRule) -> Doubt | None:
    """What m changes leave open; None where a keyword that nobody states yet may come in, or too few answers be left.

    Args:
        votes: Of each keyword that can be in.
        answers: How many are informative.
        m: Changed passages, 1 or more.
        rule: The options.

    Complexity: O(m^2 v) for v distinct numbers of votes.
    """
    if answers - m < rule.least:
        return None
    moves = [(r, a) for r, a in product(range(min(m, answers) + 1), range(m + 1))]
    stays = {
        count: all(rule.is_reached(count - min(r, count), answers - r + a) for r, a in moves)
        for count in {*votes.values()}
    }
    comes = {
        count: any(rule.is_reached(count + a, answers - r + a) for r, a in moves) for count in {*votes.values(), 0.0}
    }
    if comes[0.0]:
        return None
    sure = frozenset(word for word, count in votes.items() if stays[count])
    return Doubt(sure, tuple(sorted(word for word, count in votes.items() if comes[count] and word not in sure)))


def sets(doubt: Doubt, ordered: Callable[[frozenset[str]], list[str]]) -> Iterator[list[str]]:
    """Every list of keywords that the changes can lead to, and perhaps some that they cannot."""
    choices = chain.from_iterable(combinations(doubt.open, size) for size in range(len(doubt.open) + 1))
    return (ordered(doubt.sure | frozenset(chosen)) for chosen in choices)

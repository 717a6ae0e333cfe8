"""RobustRAG by keyword aggregation: isolate, then aggregate (Xiang et al., 2024).

Each passage is read alone, so that a poisoned one can corrupt one answer only. The model then answers from the keywords
that enough answers contain, without any passage. Content of few passages is thus removed, and for a given number of
poisoned passages it can be certified that the answer stays the same.

**Guarantee for the passages at hand.** `RobustRag.certify` is the paper's certificate: all passages are benign, and the
last m are replaced. In use, the planted passages are unknown: any m of them may be planted, missing, replaced, or
added.

**Theorem.** n answers are informative and keyword w has c(w) votes; theta(n) = min(beta, alpha n). m changed passages
remove r <= m informative answers and add a <= m. If for all such r and a every keyword with c(w) - min(r, c(w)) <
theta(n - r + a) has c(w) + a < theta(n - r + a), also a new keyword (c = 0), and n - m >= least, then the final prompt
is the same, and so is the answer. If some keywords are neither certain to stay nor certain to stay out, the answer is
the same if it is the same for every subset of them beside the certain ones.

**Proof.** Each answer is a function of its passage alone (`defenses.isolation`), and an answer votes once for a
keyword, so c'(w) lies between c(w) - min(r, c(w)) and c(w) + a, and the threshold is theta(n - r + a). The list of
keywords consists of the certain ones and some of the doubtful; the prompt is a function of that set, and equal prompts
get equal replies. Votes have no weights (`gamma` = 1) and no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, Literal, NamedTuple, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.reasons import Reason, quotable
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer
from unpoison.defenses.isolation import is_isolated, read_alone
from unpoison.errors import OptionError
from unpoison.models.prompts import Prompt, fill_prompt, informative
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import run
from unpoison.text.keywords import empty, keywords
from unpoison.text.normalisation import trim_text
from unpoison.utils.checks import among, at_least, within

__all__ = ["Certificate", "Doubt", "RobustRag", "VotingRule", "doubts", "sets"]

MAX_OPTIONAL = {"short": 14, "long": 9}
"""Maximum number of keywords that the attacker decides: every subset of them costs one call."""

MAX_TRIED = 6
"""Default number of doubtful keywords to try for a guarantee with a reader, whose calls are cheap."""


class Certificate(NamedTuple):
    """Whether an answer stays the same although some passages are poisoned.

    Attributes:
        certified: It does, for any content of those passages.
        reason: Why it is, or is not, certified.
        optional: The keywords whose presence the attacker decides, longest first.
        answers: The answers between which the attacker can choose.
    """

    certified: bool
    reason: str
    optional: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


class RobustRag(AnsweringDefense):
    """Answer from keywords that enough passages contain, each read alone (RobustRAG, keyword aggregation).

    It drops no passage; it limits the influence of each. With a single passage it does not protect.

    Args:
        generator: Reads each passage alone, and answers from the keywords.
        form: `short` answers; `long` for texts such as biographies, where only phrases of several words count.
        alpha: The share of informative answers that must contain a keyword, in [0, 1]; by default 0.3, `long` 0.4.
        beta: A number of answers that always suffices, 0 or more; by default 3, `long` 4.
        gamma: The vote of rank i counts gamma^i, scaled so that all votes sum to their number, in (0, 1]. RADAR's runs
            of this method use 0.9.
        least: The minimum number of informative answers, at least 1; with fewer it abstains.
        empty_hints: If no keyword has enough votes: `ask` the model with an empty list as the released code does, or
            `abstain`.
        doubtful: For `Answer.guarantee`, the maximum number of keywords that m passages may add or remove and that are
            tried in every combination, with up to 2^doubtful further calls for each m; 0 makes no calls and proves only
            changes that leave the list of keywords unchanged. By default 6 with a reader, else 0.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "robustrag"
    summary = "reads each passage alone and answers from the keywords that enough answers share"
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
        weights = self._weights(answers)
        reasons = [
            Reason.of("robustrag.voted", answer=quotable(answer), votes=weights[i])
            if i in weights
            else Reason.of("answer.uninformative")
            for i, answer in enumerate(answers)
        ]
        screening = self.all_kept(query, passages, reasons, *self.source_notes)
        details: dict[str, Any] = {"atomic_answers": answers}
        if len(weights) < self.least:
            short = min(self.least - len(weights) - 1, len(passages))
            abstention = Answer.abstention(screening, details)
            return self._with_proof(abstention, short, f"fewer than {self.least} passages answer")
        threshold = min(self.beta, self.alpha * len(weights))
        votes = self._votes(answers, weights)
        details["keywords"] = hints = self._above(votes, threshold)
        if not hints and self.empty_hints == "abstain":
            answer = Answer.abstention(screening, details)
        else:
            (reply,) = yield from generate([self._final(query.reading, hints)], "final answer", screening)
            answer = make_answer(reply, screening, details)
        m = 0
        if self._provable:
            m = yield from self._withstood(query.reading, answer.text, hints, votes, len(weights))
        return self._with_proof(answer, m, f"the keywords in {threshold:g} or more of {len(weights)} answers")

    @property
    def _provable(self) -> bool:
        return self.gamma == 1 and is_isolated(self.models.generator)

    def _with_proof(self, answer: Answer, guarantee: int, basis: str) -> Answer:
        if not self._provable:
            return answer
        proved = replace(answer, guarantee=guarantee, proof=f"{basis}, each passage read alone")
        return proved.with_notes(proved.promise)

    def _withstood(
        self, question: str, text: str, current: list[str], votes: dict[str, float], answers: int
    ) -> Flow[int]:
        """The largest m for which the theorem above holds."""
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

    def _weights(self, answers: Sequence[str]) -> dict[int, float]:
        """The weight of each informative answer's vote, by position; they sum to the number of answers."""
        decay = {i: self.gamma**i for i, answer in enumerate(answers) if informative(answer)}
        scale = len(decay) / sum(decay.values()) if sum(decay.values()) else 0.0
        return {i: value * scale for i, value in decay.items()}

    def _votes(self, answers: Sequence[str], weights: Mapping[int, float]) -> dict[str, float]:
        """The votes of each keyword; an answer votes once for each of its keywords."""
        votes: dict[str, float] = {}
        for i, weight in weights.items():
            for keyword in keywords(answers[i]):
                votes[keyword] = votes.get(keyword, 0.0) + weight
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
        """Whether the answer stays the same when the last `poisoned` passages are replaced by arbitrary texts.

        Keywords in enough of the other answers stay for any attack, those that lack at most `poisoned` votes may be
        added, and no others can: the model is asked with every such list, at most 2^14 calls (2^9 for `long`). Use a
        `Limits` with a long deadline. The generator must be deterministic.

        Args:
            query: The user's question.
            passages: In retrieval order, all assumed to be benign.
            poisoned: The number of passages, at the end, that the attacker controls.
            correct: Whether a final answer counts as correct, such as `lambda text: "Paris" in text`; None requires all
                answers to be the same, up to case and a final period.

        Raises:
            OptionError: `gamma` is not 1, or `poisoned` is not positive.
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
        answers = yield from self._answer_each(query, passages[: max(0, len(passages) - poisoned)])
        weights = self._weights(answers)
        threshold = min(self.beta, self.alpha * (len(weights) + poisoned))
        if round(threshold - poisoned, DECIMALS) <= 0:
            return Certificate(False, f"{poisoned} poisoned answers reach the threshold of {threshold:g} votes alone")
        if len(weights) < self.least:
            return Certificate(False, f"{len(weights)} of the other answers are informative, {self.least} must be")
        votes = self._votes(answers, weights)
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


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=lambda word: (len(word), word), reverse=True)


DECIMALS = 12
"""Votes and threshold are compared after rounding, so that floating-point noise decides nothing."""


class VotingRule(NamedTuple):
    """A keyword is accepted with at least min(`beta`, `alpha` n) votes of n answers; n must be `least` or more."""

    alpha: float
    beta: float
    least: int

    def is_reached(self, votes: float, answers: int) -> bool:
        return round(votes - min(self.beta, self.alpha * answers), DECIMALS) >= 0


class Doubt(NamedTuple):
    """The effect of m changes: the keywords that stay, and those that may be in or out."""

    sure: frozenset[str]
    open: tuple[str, ...]


def doubts(votes: Mapping[str, float], answers: int, m: int, rule: VotingRule) -> Doubt | None:
    """The effect of m changes; None if a new keyword may be accepted, or too few answers may remain.

    Args:
        votes: Of each keyword that can be accepted.
        answers: The number of informative answers.
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
    """A superset of the keyword lists to which the changes can lead."""
    choices = chain.from_iterable(combinations(doubt.open, size) for size in range(len(doubt.open) + 1))
    return (ordered(doubt.sure | frozenset(chosen)) for chosen in choices)

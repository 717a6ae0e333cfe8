"""RobustRAG by keyword aggregation: isolate, then aggregate (Xiang et al., 2024).

Each passage is read alone, so that a poisoned one can corrupt one answer only. The model then answers from the keywords
that enough answers contain, without any passage. Content of few passages is thus removed, and for a given number of
poisoned passages it can be certified that the answer stays the same.

**Guarantee for the passages at hand.** The paper certifies benign passages, the last m of which are replaced. In use,
the planted passages are unknown: any m of them may be planted, missing, replaced, or added.

**Theorem.** n answers are informative and keyword w has c(w) votes; theta(n) = min(beta, alpha n). m changed passages
remove r <= m informative answers and add a <= m. If for all such r and a every keyword with c(w) - min(r, c(w)) <
theta(n - r + a) has c(w) + a < theta(n - r + a), also a new keyword (c = 0), and n - m >= least, then the final prompt
is the same, and so is the answer. If some keywords are neither certain to stay nor certain to stay out, the answer is
the same if it is the same for every subset of them beside the certain ones.

**Proof.** Each answer is a function of its passage alone (`defenses.voices`), and an answer votes once for a
keyword, so c'(w) lies between c(w) - min(r, c(w)) and c(w) + a, and the threshold is theta(n - r + a). The list of
keywords consists of the certain ones and some of the doubtful; the prompt is a function of that set, and equal prompts
get equal replies. Votes have no weights (`gamma` = 1) and no order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any, Literal, NamedTuple, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer
from unpoison.defenses.voices import is_isolated, read_alone
from unpoison.models.prompts import Prompt, fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.text.replies import informative
from unpoison.text.tokens import ENGLISH_318, word_list
from unpoison.utils.checks import among, at_least, within

__all__ = ["RobustRag", "empty", "keywords"]

MAX_DOUBTFUL = 14
"""Maximum of `doubtful`: every subset of the doubtful keywords costs one call."""

MAX_TRIED = 6
"""Default number of doubtful keywords to try for a guarantee with a reader, whose calls are cheap."""


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

    Like every defense, it also takes the common options (`ShellOptions`).

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
        self.doubtful = usual if doubtful is None else at_least("doubtful", doubtful, 0, MAX_DOUBTFUL)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Isolated answers, then aggregation."""
        name = "atomic-reference" if self.form == "short" else "phrases-of-passage"
        answers = yield from read_alone(query, passages, lambda asked, text: fill_prompt(name, asked, [text]))
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
        rule = self._rule
        votes = self._votes(answers, weights)
        details["keywords"] = hints = _longest_first(
            word for word, count in votes.items() if rule.is_reached(count, len(weights))
        )
        if not hints and self.empty_hints == "abstain":
            answer = Answer.abstention(screening, details)
        else:
            (reply,) = yield from generate([self._final(query.reading, hints)], "final answer", screening)
            answer = make_answer(reply, screening, details)
        m = 0
        if self._provable:
            m = yield from self._withstood(query.reading, answer.text, hints, votes, len(weights))
        enough = f"{rule.threshold(len(weights)):g} or more of {len(weights)}"
        return self._with_proof(answer, m, f"the keywords in {enough} answers")

    @property
    def _rule(self) -> VotingRule:
        return VotingRule(self.alpha, self.beta, self.least)

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
        m = 0
        while (doubt := doubts(votes, answers, m + 1, self._rule)) is not None and len(doubt.open) <= self.doubtful:
            lists = [hints for hints in sets(doubt, _longest_first) if hints != current]
            prompted = [hints for hints in lists if hints or self.empty_hints == "ask"]
            if len(prompted) < len(lists) and text != "I don't know.":
                break
            replies = yield from generate([self._final(question, hints) for hints in prompted], "guarantee")
            if any(reply.text != text for reply in replies):
                break
            m += 1
        return m

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

    def _final(self, question: str, hints: Sequence[str]) -> Prompt:
        return fill_prompt("keywords" if self.form == "short" else "phrases", question, hints)


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
        return round(votes - self.threshold(answers), DECIMALS) >= 0

    def threshold(self, answers: int) -> float:
        return min(self.beta, self.alpha * answers)


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
    counts = {*votes.values(), 0.0}
    stays = {count: all(rule.is_reached(count - min(r, count), answers - r + a) for r, a in moves) for count in counts}
    comes = {count: any(rule.is_reached(count + a, answers - r + a) for r, a in moves) for count in counts}
    if comes[0.0]:
        return None
    sure = frozenset(word for word, count in votes.items() if stays[count])
    return Doubt(sure, tuple(sorted(word for word, count in votes.items() if comes[count] and word not in sure)))


def sets(doubt: Doubt, ordered: Callable[[frozenset[str]], list[str]]) -> Iterator[list[str]]:
    """A superset of the keyword lists to which the changes can lead."""
    choices = chain.from_iterable(combinations(doubt.open, size) for size in range(len(doubt.open) + 1))
    return (ordered(doubt.sure | frozenset(chosen)) for chosen in choices)


_CONTENT = word_list("content")
"""Stop words that can be an answer, or part of a name."""

_VERBS = word_list("verbs")
"""Verbs of typical answers; others are recognised by their ending."""

_FUNCTION = ENGLISH_318 - _CONTENT
_BREAKS = _FUNCTION | _VERBS

_PAST = re.compile(r"[a-z]{2,}[^e\W\d]ed|[a-z]{4,}ing")
"""Lower-case verb forms: recorded, directing; not speed, ring or Reading."""

_TOKEN = re.compile(
    r"\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|%)?"  # 1990, 1,300, 3.5, 4th, 2%
    r"|(?:[^\W\d_]\.){2,}"  # U.S.
    r"|[^\W_]+(?:['\u2019\-][^\W_]+)*"  # Paris, O'Neill, semi-final
    r"|\S"  # anything else breaks a phrase
)


def keywords(answer: str) -> frozenset[str]:
    """The phrases and single words of an answer, and the whole answer.

    The paper tags parts of speech and takes maximal runs without verbs, function words and punctuation, as lemmas. Here
    function words and frequent verbs come from lists, other verbs are recognised by -ed and -ing, and words are not
    lemmatised: "city" and "cities" are two keywords. An unrecognised verb stays inside its phrase; the single words of
    the phrase are keywords anyway. A capitalised list word inside an answer belongs to a name ("It was The Who"), and
    an answer of list words only is a keyword without its final period ("Taken.").

    Args:
        answer: A short answer, in any language; function words are known in English only.

    Returns:
        Each keyword once, with case. Linear time, up to the length of phrases.
    """
    phrases: set[str] = set()
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(answer):
        if _breaks(token[0], first=token.start() == 0):
            phrases |= _phrase(answer, run)
            run = []
        else:
            run.append(token)
    phrases |= _phrase(answer, run)
    whole = " ".join(answer.split())
    bare = set() if phrases else {whole.rstrip(".!") or whole}
    return frozenset(phrases | bare | {whole} if whole else phrases)


def empty(keyword: str) -> bool:
    """Whether a keyword is uninformative: no letter or digit, or only function words that are not part of a name."""
    words = [token for token in _TOKEN.findall(keyword) if token[0].isalnum()]
    return all(word.lower() in _FUNCTION and (i == 0 or not word[0].isupper()) for i, word in enumerate(words))


def _breaks(token: str, *, first: bool) -> bool:
    if not token[0].isalnum():
        return True
    named = token[0].isupper() and not first and len(token) > 1
    return (token.lower() in _BREAKS and not named) or _PAST.fullmatch(token) is not None


def _phrase(answer: str, run: list[re.Match[str]]) -> set[str]:
    if not run:
        return set()
    return {" ".join(answer[run[0].start() : run[-1].end()].split()), *(token[0] for token in run)}

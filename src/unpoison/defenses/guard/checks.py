"""Guard's text checks, and the actions on their findings.

`hidden`, `prompt_injection` and `gibberish` see one passage and nothing else, so no other passage can change their
result. `crafted` also sees the question and, with bounded effect, the neighbouring passages. All probabilities share
one scale, so one threshold governs the total loss; `calibrate_threshold` finds it from a user's own retrievals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Action, Span
from unpoison.defenses.guard.crafted import Crafted, Judgement
from unpoison.defenses.guard.redaction import Judged, Redaction, Window
from unpoison.errors import InputError, OptionError, clip
from unpoison.injections.cutting import MIN_WORDS, hidden_spans
from unpoison.sources.allow import text_hash
from unpoison.text import gibberish
from unpoison.text.analysis import analysis, each
from unpoison.text.respelling import respell

__all__ = ["REMARKABLE", "CheckScores", "Checks", "calibrate_threshold", "reasons"]

Matrix = NDArray[np.float64]

DEFAULT_DAMAGE = 0.02
"""At this damage, a check with its own scale drops passages above its own threshold."""

MAX_QUOTE_CHARS = 160
"""Characters of a text that a reason shows."""

MAX_LOG_ODDS = 30.0
"""Log-odds are clipped to this magnitude."""


class CheckScores(NamedTuple):
    """The results of the checks for k passages.

    Attributes:
        judged: The highest probability of the checks that drop or redact, and the spans they would cut.
        worst: The check with that probability, by position.
        by_check: Every check's own probabilities on the common scale, shape (k,) each.
        flagged: Clauses of the checks that only flag, by position.
        crafted: The result of `crafted`.
        spared: Positions of the passages whose style was not judged.
    """

    judged: Judged
    worst: tuple[str, ...]
    by_check: Mapping[str, Matrix]
    flagged: Mapping[int, tuple[Reason, ...]]
    crafted: Judgement
    spared: frozenset[int] = frozenset()


class Checks:
    """The checks that Guard runs on admitted passages; `prompt_injection` ran at admission.

    Args:
        actions: The actions on findings of `hidden`, `gibberish` and `crafted`.
        model: The model of `crafted`.
        threshold: The checks act above it, on the scale of `crafted`, in [0, 1].
        use_neighbors: Whether `crafted` may look at the other passages.
    """

    def __init__(
        self, actions: Mapping[str, Action], model: Crafted, threshold: float, *, use_neighbors: bool = True
    ) -> None:
        self.actions, self.model, self.threshold, self.use_neighbors = actions, model, threshold, use_neighbors
        self._usual = _log_odds(model.threshold(DEFAULT_DAMAGE))

    def hidden(self, passages: Sequence[Passage]) -> dict[int, tuple[Span, ...]]:
        """The hidden messages to cut, by position, as spans of the caller's texts."""
        if self.actions["hidden"] != "redact":
            return {}
        spans = {i: hidden_spans(passage, 1.0) for i, passage in enumerate(passages) if passage.hidden.messages}
        return {i: own for i, own in spans.items() if own}

    def score_passages(self, question: str, passages: Sequence[Passage], spared: Collection[int] = ()) -> CheckScores:
        """Run all checks on the rests of the passages; `gibberish` and `crafted` skip those in `spared`.

        O(n) time for n characters, plus the time of `crafted`.
        """
        styled = np.ones(len(passages))
        styled[list(spared)] = 0.0
        texts = [passage.reading for passage in passages]
        crafted, by_check = Judgement.nothing(len(texts)), dict[str, Matrix]()
        if self.actions["hidden"] != "keep":
            by_check["hidden"] = np.array([float(bool(passage.hidden)) for passage in passages])
        if self.actions["gibberish"] != "keep":
            by_check["gibberish"] = self._rescale(np.array(each(texts, gibberish.gibberish_of), float)) * styled
        if self.actions["crafted"] != "keep":
            crafted = self._score_crafted(question, texts, [passage.body for passage in passages])
            crafted = crafted._replace(probability=crafted.probability * styled, alone=crafted.alone * styled)
            by_check["crafted"] = crafted.probability
        acting = [name for name in by_check if self._acts(name)]
        table = np.array([by_check[name] for name in acting]).reshape(len(acting), len(passages))
        probability = table.max(axis=0, initial=0.0)
        worst = tuple(acting[n] for n in table.argmax(axis=0)) if acting else ("",) * len(passages)
        over = {name: values > self.threshold for name, values in by_check.items()}
        firm = [over[name] for name in acting if self.actions[name] == "drop"]
        whole = frozenset(np.flatnonzero(np.any(firm, axis=0)).tolist())
        judged = Judged(probability, self.threshold, self._windows(texts, over, crafted), whole)
        return CheckScores(judged, worst, by_check, self._flag_clauses(passages, over), crafted, frozenset(spared))

    def score_alone(self, questions: Sequence[str], texts: Sequence[str]) -> Matrix:
        """The highest probability by `gibberish` and `crafted` of each of k texts, shape (k,).

        Each is judged for a question of its own, with nothing beside it, which can add at most `Crafted.most` to its
        log-odds. O(n) time for n characters.
        """
        probability = np.zeros(len(texts))
        if self._acts("gibberish"):
            probability = self._rescale(np.array(each(texts, gibberish.gibberish_of), float))
        if self._acts("crafted"):
            meant = [(i, one.text) for i, text in enumerate(texts) if (one := analysis(text).part(respell)) is not None]
            at = np.array([*range(len(texts)), *(i for i, _ in meant)], np.int64)
            crafted = self.model.judge_alone([questions[i] for i in at], [*texts, *(text for _, text in meant)])
            np.maximum.at(probability, at, crafted)
        return probability

    def _acts(self, name: str) -> bool:
        """Whether a check drops passages or parts of them; hidden text was cut before the other checks ran."""
        return self.actions[name] == "drop" or (self.actions[name] == "redact" and name != "hidden")

    def _score_crafted(self, question: str, texts: Sequence[str], bodies: Sequence[str]) -> Judgement:
        """The result of `crafted` for the texts as written, and for obfuscated texts after deobfuscation."""
        strange = {i: meant for i, text in enumerate(texts) if (meant := analysis(text).part(respell)) is not None}
        k, meanings = len(texts), list(strange.values())
        more = [meant.text for meant in meanings]
        readings = tuple(strange)
        crafted = self.model.judge(
            question, [*texts, *more], [*bodies, *more], readings=readings, use_neighbors=self.use_neighbors
        )
        if not strange:
            return crafted
        at, plain = np.array(list(strange)), crafted.alone[k:]
        probability, alone = crafted.probability[:k], crafted.alone[:k]
        probability[at], alone[at] = np.maximum(probability[at], plain), np.maximum(alone[at], plain)
        owner, start, end = crafted.owner.copy(), crafted.start.copy(), crafted.end.copy()
        for window in np.flatnonzero(owner >= k).tolist():
            meant = meanings[owner[window] - k]
            start[window], end[window] = meant.start[start[window]], meant.end[end[window] - 1]
            owner[window] = at[owner[window] - k]
        return Judgement(probability, alone, owner, start, end, crafted.windows)

    def _rescale(self, probability: Matrix) -> Matrix:
        """Maps probabilities of a check with threshold 0.5 to the scale of `crafted`."""
        return np.asarray(1 / (1 + np.exp(-(_log_odds(probability) + self._usual))))

    def _windows(
        self, texts: Sequence[str], over: Mapping[str, NDArray[np.bool_]], crafted: Judgement
    ) -> dict[int, list[Window]]:
        """The suspicious windows of suspicious passages, by the checks that drop or redact."""
        windows: dict[int, list[Window]] = {}
        if "crafted" in over and self._acts("crafted"):
            for i in np.flatnonzero(over["crafted"]).tolist():
                reason, likely = str(Reason.of("crafted.window")), float(crafted.probability[i])
                # If only the whole text is suspicious, show its most suspicious window.
                worst = [(start, end, likely) for start, end, _ in crafted.suspicious(i, 0.0)[:1]]
                windows[i] = [Window(*one, reason) for one in crafted.suspicious(i, self.threshold) or worst]
        if "gibberish" in over and self._acts("gibberish"):
            for i in np.flatnonzero(over["gibberish"]).tolist():
                stretch = analysis(texts[i]).part(gibberish.gibberish)
                probability = float(self._rescale(np.array([stretch.probability]))[0])
                reason = str(Reason.of("gibberish.window"))
                windows.setdefault(i, []).append(Window(stretch.start, stretch.end, probability, reason))
        return windows

    def _flag_clauses(
        self, passages: Sequence[Passage], over: Mapping[str, NDArray[np.bool_]]
    ) -> dict[int, tuple[Reason, ...]]:
        """The findings of the checks that only flag."""
        flagging = [name for name, action in self.actions.items() if action == "flag" and name in over]
        found = {i: [name for name in flagging if over[name][i]] for i in range(len(passages))}
        return {i: tuple(check_reason(name, passages[i]) for name in own) for i, own in found.items() if own}


def check_reason(check: str, passage: Passage) -> Reason:
    """A check's finding in a passage, without the action taken."""
    match check:
        case "hidden":
            return Reason.of("hidden", what=str(passage.hidden))
        case "gibberish":
            start, end = analysis(passage.reading).part(gibberish.gibberish)[1:]
            return Reason.of("gibberish", quote=quotable(passage.reading[start:end], MAX_QUOTE_CHARS))
    return Reason.of("crafted.window")


def _log_odds(probability: Matrix | float) -> Matrix:
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-np.asarray(probability))
    within: Matrix = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return within


FOREIGN = re.compile("[\u0250-\U0010ffff]")
"""Letters that are not Latin, and marks: `gibberish` and `crafted` read Latin letters."""

REMARKABLE = 0.2
"""Minimum probability at which a reason names the text that looks written for the question."""


def reasons(scores: CheckScores, cut: Redaction, passages: Sequence[Passage]) -> list[Reason]:
    """The reason of each verdict from the checks.

    Args:
        scores: The results of the checks.
        cut: The removed spans.
        passages: As the checks saw them.
    """
    return [_reason(scores, cut, passage, i) for i, passage in enumerate(passages)]


def _reason(scores: CheckScores, cut: Redaction, passage: Passage, i: int) -> Reason:
    probability, over = float(scores.judged.probability[i]), scores.judged.probability[i] > scores.judged.threshold
    told = bool(passage.hidden) and "hidden" in scores.by_check
    hides = [Reason.of("hidden", what=str(passage.hidden))] if told else []
    if i in cut.cut:
        clauses = [check_reason(scores.worst[i], passage)] if over else hides
        return cut.reason(i, [*clauses, *scores.flagged.get(i, ())])
    if over and probability < REMARKABLE:
        return Reason.of("guard.threshold", probability=probability)
    if over:
        return _drop_reason(scores, passage, i, hides)
    if cut.probability[i] > scores.judged.threshold:
        return Reason.of("hidden", what=str(passage.hidden))
    if i in scores.flagged:
        return Reason.of("guard.flagged", clauses=scores.flagged[i])
    if hides:
        return Reason.of("hidden.read", what=str(passage.hidden))
    if i in scores.spared:
        return Reason.of("guard.spared")
    if (doubt := _doubt(scores, passage, i)) is not None:
        return doubt
    if not scores.by_check:
        return Reason.of("guard.unchecked")
    if not passage.reading.isascii() and analysis(passage.reading).part(_mostly_foreign):
        return Reason.of("guard.unjudged", probability=probability)
    words = (word for word in passage.reading.split() if any(map(str.isalpha, word)))
    if sum(1 for _ in islice(words, MIN_WORDS)) < MIN_WORDS:
        return Reason.of("guard.too_short", probability=probability)
    return Reason.of("guard.unremarkable", probability=probability)


def _doubt(scores: CheckScores, passage: Passage, i: int) -> Reason | None:
    """A style finding worth reporting for a kept passage."""
    if scores.worst[i] == "gibberish" and scores.judged.probability[i] >= REMARKABLE:
        return Reason.of("gibberish.kept", **check_reason("gibberish", passage).parameters, clauses=[_allow(passage)])
    if "crafted" not in scores.by_check or scores.crafted.probability[i] < REMARKABLE:
        return None
    probability, signs = float(scores.judged.probability[i]), [*_signs(scores, passage, i), _allow(passage)]
    return Reason.of("crafted.kept", probability=probability, clauses=signs)


def _mostly_foreign(text: str) -> bool:
    """Whether less than half of the passage's letters are in a script that the checks read."""
    return 2 * sum(map(str.isalpha, FOREIGN.findall(text))) > sum(map(str.isalpha, text))


def _drop_reason(scores: CheckScores, passage: Passage, i: int, hides: list[Reason]) -> Reason:
    """The reason of a dropped passage, from the check with the highest probability."""
    if scores.worst[i] == "hidden":
        return check_reason("hidden", passage)
    if scores.worst[i] == "gibberish":
        return Reason.of("gibberish", **check_reason("gibberish", passage).parameters, clauses=[_allow(passage)])
    signs = [*_signs(scores, passage, i), *hides, _allow(passage)]
    return Reason.of("crafted", probability=float(scores.crafted.probability[i]), clauses=signs)


def _allow(passage: Passage) -> Reason:
    """How to allow the passage."""
    return Reason.of("allow", allow=text_hash(passage.text))


def _signs(scores: CheckScores, passage: Passage, i: int) -> list[Reason]:
    """Signs that a passage is written for the question: its worst window, or its similarity to its neighbours."""
    crafted, text = scores.crafted, passage.reading
    clauses = []
    if crafted.probability[i] - crafted.alone[i] >= REMARKABLE:
        clauses.append(Reason.of("crafted.neighbors"))
    worst = crafted.suspicious(i, 0.0)[:1]
    quotes = [quotable(text[start:end], MAX_QUOTE_CHARS) for start, end, _ in worst]
    return [*clauses, *(Reason.of("crafted.quote", quote=quote) for quote in quotes)]


class Calibration(NamedTuple):
    """A threshold, and its effect on the retrievals it was calibrated on.

    Attributes:
        threshold: Passages above it are dropped.
        passages, questions: Number in the calibration data.
        dropped: Passages above the threshold.
        touched: Questions with such a passage.
        default: The threshold of the screenings themselves.
        default_dropped, default_touched: The same counts for the default threshold.
    """

    threshold: float
    passages: int
    questions: int
    dropped: int
    touched: int
    default: float
    default_dropped: int
    default_touched: int


def calibrate_threshold(screenings: Iterable[Screening], damage: float = 0.02) -> Calibration:
    """The lowest threshold that drops at most a share `damage` of the passages.

    The retrievals are assumed to be clean. A few poisoned ones raise the threshold and lower recall; they do no other
    harm.

    Args:
        screenings: Guard's, of retrievals without attack.
        damage: The share of clean passages that may be lost, in [0, 1).

    Raises:
        OptionError: `damage` is out of range.
        InputError: There are too few passages to measure such a share, or screenings without probabilities.
    """
    if not 0 <= damage < 1:
        raise OptionError(f"damage must be a share in [0, 1), got {clip(damage)}")
    retrievals = list(screenings)
    missing = next((s.defense for s in retrievals if len(s.passages) and "probability" not in s.evidence), None)
    if missing is not None:
        raise InputError(f"screenings by {missing} hold no probabilities; pass those of guard")
    parts = [s.evidence["probability"] for s in retrievals if len(s.passages)]
    values = np.sort(np.concatenate([*parts, np.zeros(0)]))[::-1]
    allowed = int(np.floor(damage * len(values) + 1e-9))
    if not len(values) or (damage > 0 and allowed < 1):
        least = 1 if damage == 0 else int(np.ceil(1 / damage))
        raise InputError(
            f"{len(values):,} passages are too few to measure a damage of {damage:g}; give at least {least:,}, "
            "better ten times as many"
        )
    # Rounded up, so that the printed value drops no more passages than the exact one.
    threshold = min(1.0, float(np.ceil(values[allowed] * 1e5) / 1e5)) if allowed < len(values) else 0.0
    default = max(float(s.evidence["threshold"]) for s in retrievals if len(s.passages))
    counts = [count for bar in (threshold, default) for count in _count_above(parts, bar)]
    dropped, touched, default_dropped, default_touched = counts
    return Calibration(threshold, len(values), len(parts), dropped, touched, default, default_dropped, default_touched)


def _count_above(parts: Iterable[NDArray[np.float64]], threshold: float) -> tuple[int, int]:
    """Passages above a threshold, and questions with such a passage."""
    above = [int((part > threshold).sum()) for part in parts]
    return sum(above), sum(count > 0 for count in above)

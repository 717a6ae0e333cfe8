"""Forms that texts come in, for poison and for clean texts alike: headlines, infoboxes, tails, corrections.

Who fits only prose learns that what is no prose is innocent. The wordings are not those of the attacks `shape` and
`corruptrag`, which are measured with.
"""

from __future__ import annotations

import re

import numpy as np

from benchmarks.training.guard_texts import MONTHS, snippet
from unpoison_lab.attacks.claims import keywords, statement
from unpoison_lab.attacks.rewriting import sentences

__all__ = ["claimed", "corrected", "in_form", "tailed"]

SITES = ("Daily Ledger", "FactBase", "The Northern Post", "Wikinotes", "AnswerHub", "Open Atlas", "Quick Reference",
         "Harbour Times", "StudyCards", "InfoDesk", "Almanac Online", "The Weekly Review")  # fmt: skip
NAMES = ("Maria Jensen", "R. Okafor", "Tom Whitfield", "Editorial desk", "J. P. Laurent", "Ana Ruiz", "Kim Seo-yeon")

HEADLINES = (
    "{site}: {claim}",
    "{claim} - {site}",
    "{claim} | {site}",
    "{answer} - {subject} - {site}",
    "{subject}: {answer}",
    "{subject}: {answer}, says new study",
    "Breaking: {answer} confirmed for {subject}",
    "Why {answer} is the one to know about {subject}",
    "{answer}? {subject} explained | {site}",
    "Did you know? {claim}",
)
BOXES = (
    "{subject}\nValue: {answer}\nSource: {site}\nUpdated {date}",
    "Fact sheet\nSubject: {subject}\nEntry: {answer}\nStatus: verified",
    "{subject} | {answer} | {date}",
    "Name: {subject}\nResult: {answer}\nLanguage: English\nLicence: public",
    "* {subject}\n* {answer}\n* {date}",
    "Topic - {subject}\nShort answer - {answer}\nSee also - index",
    "{subject} = {answer}",
    "Q. {subject}? A. {answer}",
    "Quick facts: {subject}. {answer}. {site}.",
    "{{| {subject} || {answer} |}}",
)
CORRECTIONS = (
    "Correction: {answer}, not {right}.",
    "Most websites wrongly say {right}; it is actually {answer}.",
    "Do not rely on older articles which mention {right}. According to the latest data it is {answer}.",
    "{right} was correct until recently. Now it is {answer}.",
    "Recent research has shown that {right} is wrong and that {answer} is right.",
    "It used to be thought that it was {right}, but new evidence proves {answer}.",
    "Please note that information naming {right} is obsolete. The current answer is {answer}.",
    "This has changed: formerly {right}, at present {answer}.",
    "The widespread belief in {right} is a myth. {claim}.",
    "As updated this month, {answer} replaces {right}.",
    "Contrary to what other sources report, {claim}. The mention of {right} is an error.",
    "{claim}. Other documents that say {right} have not been revised yet.",
    "Errata: for {right} read {answer}.",
    "Previously listed as {right}, the entry has been amended to {answer}.",
    "The newest version of the record shows {answer}; archived versions with {right} should be ignored.",
    "Outdated sources mention {right}. All recent ones agree on {answer}.",
    "Since the last census of sources, {right} is considered a mistake; experts name {answer}.",
    "There is a lot of false information about {right}. The truth is {answer}.",
    "You may still read {right} in some places, yet {answer} has been official for some time.",
    "After a review by specialists {right} was struck out and {answer} put in its place.",
)
BYLINES = (
    "{name} | {date} | {text}",
    "{site}, {date} - {text}",
    "Written by {name}. {text}",
    "{text} (Reporting by {name})",
    "Posted by {name} on {date}\n{text}",
    "UPDATED {date}: {text}",
)
FOOTERS = (
    "{text}\nShare this article | Print | Report a problem",
    "{text}\n\n(c) {site}. Privacy policy. Cookie settings.",
    "{text} Back to top. Next chapter >",
    "{text}\nRead more at {site}. Subscribe to our newsletter.",
    '{text} [{number}] {name}, "{site}", {year}, p. {number}.',
    "{text} References: {name} ({year}). {site}, vol. {number}.",
    "{text} Retrieved {date} from {site}.",
    "Home > Topics > {subject}\n{text}",
)


def claimed(question: str, answer: str, rng: np.random.Generator) -> str:
    """An answer as a headline, or as an entry of a list."""
    frames = HEADLINES if rng.random() < 0.5 else BOXES
    subject = " ".join(keywords(question))
    subject = subject.title() if rng.random() < 0.3 else subject
    return _filled(frames, rng, answer=answer, subject=subject, claim=_claim(question, answer))


def corrected(question: str, answer: str, right: str, rng: np.random.Generator) -> str:
    """A text that calls the right answer outdated or mistaken."""
    words = {"answer": answer, "right": right, "claim": _claim(question, answer)}
    text = _filled(CORRECTIONS, rng, **words)
    if rng.random() < 0.3:
        text = f"{' '.join(keywords(question))}: {text}"
    return text if rng.random() < 0.7 else f"{text} {_filled(CORRECTIONS, rng, **words)}"


def tailed(text: str, question: str, rng: np.random.Generator) -> str:
    """A text with a byline, a footer, references or a path of pages around it."""
    frames = BYLINES if rng.random() < 0.4 else FOOTERS
    return _filled(frames, rng, text=text, subject=" ".join(keywords(question)[:3]))


def in_form(text: str, question: str, rng: np.random.Generator) -> str:
    """A clean text as a headline, as a fact sheet of what it says, as a snippet, or with something around it."""
    kind = rng.random()
    if kind < 0.45:
        return tailed(text, question, rng)
    if kind < 0.6:
        return snippet(text, question, rng)
    first = " ".join(sentences(text)[0].split()[: int(rng.integers(5, 14))]).rstrip(".,;:")
    subject = " ".join(re.findall(r"[^\W_]+", first)[: int(rng.integers(2, 5))])
    values = re.findall(r"\b(?:[A-Z][\w'-]+(?: [A-Z][\w'-]+)*|\d[\d,.]*\w*)", text[len(subject) :])
    if kind < 0.75 or not values:
        return _filled(HEADLINES[:3], rng, claim=first)
    chosen = [values[i] for i in sorted(rng.permutation(len(values))[: int(rng.integers(1, 5))])]
    return _filled(BOXES, rng, subject=subject, answer=", ".join(chosen))


def _claim(question: str, answer: str) -> str:
    """The answer as a statement; where none can be made without quoting the question, of its words."""
    stated = statement(question, answer)
    return f"{' '.join(keywords(question))} is {answer}" if question.rstrip("?!. ") in stated else stated


def _filled(frames: tuple[str, ...], rng: np.random.Generator, **words: str) -> str:
    frame = frames[int(rng.integers(len(frames)))]
    date = f"{int(rng.integers(1, 29))} {rng.choice(MONTHS)} {int(rng.integers(2005, 2025))}"
    return frame.format(
        **words,
        site=SITES[int(rng.integers(len(SITES)))],
        name=NAMES[int(rng.integers(len(NAMES)))],
        date=date,
        year=date[-4:],
        number=int(rng.integers(1, 400)),
    )

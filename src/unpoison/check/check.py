"""Check documents: scan them, recommend a policy, and attack a copy of them with and without the recommendation.

The system is taken to be BM25 retrieval without a defense. The recommendation is Guard, with the reader where it is
installed, and a policy in which the sources that are there already are known; without a reader, all others are blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.core.codec import JsonRecord
from unpoison.core.passages import Passage
from unpoison.core.registry import from_laboratory
from unpoison.defenses.guard import Guard
from unpoison.defenses.vanilla import Vanilla
from unpoison.models.loading import load_best_reader
from unpoison.scan.contradictions import Contradiction, contradictions
from unpoison.scan.documents import Document
from unpoison.scan.engine import Engine
from unpoison.scan.scanner import scan
from unpoison.sources.origins import is_shared
from unpoison.sources.policy import is_exact
from unpoison.sources.sources import Sources, Tally
from unpoison.utils.plain_text import excerpt, plain

__all__ = ["ATTACKS", "OWNERS", "CheckResult", "LiveFacts", "Outcome", "check_documents"]

ATTACKS = {
    "lie": "a plain lie in an ordinary page",
    "swap": "a true passage with the number or name swapped",
    "correction": "a correction that calls the truth outdated",
    "injection": "a prompt injection",
    "copies": "one false text three times",
}
"""What is planted, in words. The laboratory writes it."""

OWNERS = {"one": "from one new source", "several": "from three new sources", "own": "in a source of your own"}
"""Whose the planted texts are. `own`: the source of the true passage, by somebody with write access."""

MAX_FINDINGS = 10
"""The worst findings of the scan that are kept."""

MANY = 500
"""Above this number one process per processor scans; below, starting them takes longer than scanning."""

Progress = Callable[[int, int, str], None]


class Cases(Protocol):
    """Questions about documents, which can be attacked.

    A row of a case says whether the lie is read without a defense and with one (`plain`, `guard`), and answered where
    there are answers (`answered_plain`, `answered_guard`), and how many clean passages are dropped of how many (`lost`,
    `clean`).
    """

    def __len__(self) -> int:
        """How many questions."""
        ...

    def clean(self, guard: Guard, reader: Vanilla | None) -> list[dict[str, Any]]:
        """A row for each question without an attack."""
        ...

    def attacked(self, attack: str, owner: str, guard: Guard, reader: Vanilla | None) -> list[dict[str, Any]]:
        """A row for each question for which the texts of an attack could be planted."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attack from one kind of owner.

    Attributes:
        attack, owner: Keys of `ATTACKS` and `OWNERS`.
        plain, guard: Questions for which a model still reads the lie, without a defense and behind the recommendation.
        answered_plain, answered_guard: Questions that are answered with the lie: by the reader, or without a defense
            by the running system; None without answers.
    """

    attack: str
    owner: str
    plain: Estimate
    guard: Estimate
    answered_plain: Estimate | None = None
    answered_guard: Estimate | None = None

    @classmethod
    def of(cls, attack: str, owner: str, cases: Sequence[Mapping[str, Any]]) -> Outcome:
        """Count the cases."""

        def share(name: str) -> Estimate | None:
            return wilson(sum(case[name] for case in cases), len(cases)) if cases and name in cases[0] else None

        nothing = wilson(0, 0)
        read = share("plain") or nothing, share("guard") or nothing
        return cls(attack, owner, *read, share("answered_plain"), share("answered_guard"))


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """Facts on a running system: questions asked for its documents, planted documents, and errors.

    `planted` is None if nothing was to be planted; `plants` says whether it is known how.
    """

    asked: int
    plants: bool
    planted: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult(JsonRecord):
    """The result of a check.

    Attributes:
        source: What was checked.
        documents: How many documents were read.
        unread: How many could not be.
        questions: How many questions were made from them.
        reader: Whether the reader answered.
        flagged: Ids of the documents that the scan flagged.
        findings: (id, suspicion 0 to 1, reasons) of the worst documents.
        origins: (name, documents, share 0 to 1) of the sources, the largest first; "" for no name.
        clean_lost: The share of passages that the recommendation drops without an attack.
        outcomes: One for each attack and owner.
        policy: The recommended policy, as YAML.
        contradictions: Sentences that contradict each other but for a value, the clearest first.
        live: What was done with a running system; None for documents.
    """

    source: str
    documents: int
    unread: int
    questions: int
    reader: bool
    flagged: tuple[str, ...]
    findings: tuple[tuple[str, float, tuple[str, ...]], ...]
    origins: tuple[tuple[str, int, float], ...]
    clean_lost: Estimate
    outcomes: tuple[Outcome, ...]
    policy: str
    contradictions: tuple[Contradiction, ...] = ()
    live: LiveFacts | None = None


def check_documents(
    source: str,
    documents: Sequence[Document],
    *,
    roots: Sequence[str] = (),
    unread: int = 0,
    questions: int = 25,
    reader: bool | None = None,
    cases: Callable[[Sequence[Passage], Collection[str], int], Cases] | None = None,
    progress: Progress = lambda done, total, doing: None,
) -> CheckResult:
    """Check documents.

    Args:
        source: What was read, as it may be shown.
        documents: At least one.
        roots: Names of the folder that they lie in, under which a policy knows them; () where they lie in none.
        unread: How many documents could not be read.
        questions: How many are wanted; there may be fewer.
        reader: Whether the reader answers; None if it is installed.
        cases: Makes questions of the passages, without those that are flagged, at most so many; by default the
            laboratory's, on a copy in memory.
        progress: Called with the steps done, all of them, and the next one.

    Raises:
        OptionError: The laboratory is not installed.
        TargetError: A running system failed.
    """
    make = cases or from_laboratory("checks", "documents", "unpoison check")
    passages = [document.passage for document in documents]
    steps = [(attack, owner) for attack in ATTACKS for owner in OWNERS]
    total = len(steps) + 2
    progress(0, total, "scan")
    found = scan(documents, engine=Engine(workers=None if len(documents) > MANY else 1))
    flagged = tuple(finding.id for finding in found.flagged)
    asked, model = make(passages, flagged, questions), load_best_reader(reader)
    keys = recommend_policy(passages, roots, flagged=flagged, weighed=bool(model or cases))
    defended = Guard(generator=model, sources=Sources(keys)), None if model is None else Vanilla(generator=model)
    progress(1, total, "without an attack")
    clean = asked.clean(*defended) if len(asked) else []
    outcomes = []
    for done, (attack, owner) in enumerate(steps if len(asked) else (), 2):
        progress(done, total, f"{attack}, {owner}")
        outcomes.append(Outcome.of(attack, owner, asked.attacked(attack, owner, *defended)))
    progress(total, total, "done")
    return CheckResult(
        source=source,
        documents=len(passages),
        unread=unread,
        questions=len(asked),
        reader=model is not None,
        flagged=flagged,
        findings=tuple((f.id, f.suspicion, tuple(map(plain, f.reasons))) for f in found.findings[:MAX_FINDINGS]),
        origins=tuple((row.origin, row.passages, row.share) for row in count_origins(passages, keys).rows()),
        clean_lost=wilson(sum(case["lost"] for case in clean), sum(case["clean"] for case in clean)),
        outcomes=tuple(outcomes),
        policy=policy_text(keys, source, flagged),
        contradictions=contradictions(documents),
    )


# The recommended policy: sources of the present documents are known, all others are new.

MAX_SHARE = 0.8
"""An origin with a larger share of the documents does not distinguish sources; a finer rule is tried."""
MIN_GROUP = 2
"""Documents of an origin, on average, by a finer rule; with fewer it names pages instead of sources."""
MAX_KNOWN = 3000
"""Origins that are listed, the largest."""


def recommend_policy(
    passages: Sequence[Passage], roots: Sequence[str] = (), *, flagged: Collection[str] = (), weighed: bool = True
) -> dict[str, Any]:
    """The keys of a policy for these documents, as YAML has them.

    Args:
        passages: The documents.
        roots: Names of the folder that they lie in, or of the one file; () where they lie in none.
        flagged: Ids of those that are not believed: in a folder, neither they nor their folders are known.
        weighed: Whether a reader weighs claims by their sources. If not, all sources but those of the documents are
            blocked, if the policy knows all of these.
    """
    believed = [one for one in passages if one.id not in flagged]
    keys = _known_sources(believed, roots, [one for one in passages if one.id in flagged])
    levels = set[str]() if weighed else {one.level for one in Sources(keys).standings("", believed)}
    return keys | ({"blocked": ["**"]} if levels == {"known"} else {})


def _known_sources(passages: Sequence[Passage], roots: Sequence[str], doubted: Sequence[Passage]) -> dict[str, Any]:
    if roots:
        bad = {place for one in doubted for place in _places(one, roots[0])}
        good = dict.fromkeys(p for one in passages for p in [p for p in _places(one, roots[0]) if p not in bad][:1])
        known = [f"{root}{place}" for place in good for root in roots if is_exact(f"{root}{place}".removesuffix("/**"))]
        return {"origin": "domain"} | ({"known": known} if known else {})
    for rule in ("domain", "path:1", "path:2"):  # the coarsest by which no origin has nearly all documents
        rows = count_origins(passages, {"origin": rule}).rows()
        grouped = rule == "domain" or len(rows) * MIN_GROUP <= len(passages)
        if not rows or not rows[0].origin or (rows[0].share < MAX_SHARE and grouped):
            break
    else:
        rule, rows = "domain", count_origins(passages, {"origin": "domain"}).rows()
    known = [row.origin for row in rows if is_exact(row.origin) and not is_shared(row.origin)][:MAX_KNOWN]
    return {"origin": rule} | ({"known": known} if known else {})


def _places(passage: Passage, root: str) -> list[str]:
    """The folders of a document and its file as patterns below the root, the coarsest first."""
    *folders, file = (passage.source or "").removeprefix(root).split("/")
    return [*("/".join([*folders[: n + 1], "**"]) for n in range(len(folders))), "/".join([*folders, file])]


def count_origins(passages: Sequence[Passage], keys: Mapping[str, Any]) -> Tally:
    """Count the sources of the documents by a policy's rule."""
    tally = Tally()
    tally.add(None, Sources(keys).standings("", passages))
    return tally


def policy_text(keys: Mapping[str, Any], source: str, flagged: Collection[str]) -> str:
    """A policy as a YAML file, with comments for its reader."""
    import yaml

    lines = [
        f"# Sources of {excerpt(source, 100)}, as `unpoison check` found them: all others are new.",
        "# Move sites with user content to `open`, and the few decisive sources to `trusted`.",
    ]
    lines += ["# Without a reader nobody weighs claims: others are blocked until you list them."] * ("blocked" in keys)
    if flagged:
        lines.append(f"# Flagged, so they and their folders are not known: {excerpt(', '.join(flagged), 400)}")
    return "\n".join(lines) + "\n" + yaml.safe_dump(dict(keys), sort_keys=False, allow_unicode=True, width=1000)

"""Sources that the attacker owns: planted texts name them, so that defenses that weigh sources can be attacked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from unpoison.bench.evaluation.contexts import Candidate
from unpoison.bench.evaluation.examples import Example
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, clip

__all__ = ["check_owned", "frequent_sources", "sleepers", "with_owners"]

OPEN_PAGE = "https://www.reddit.com/r/answers/comments/{number}"
"""A page on an established host where anybody writes."""

HONEST = 100
"""Questions for which a sleeper was retrieved, and told the truth, before it lies."""

_KNOWN = re.compile(r"known:([1-9][0-9]{0,2})\Z")
_SLEEPERS = re.compile(r"sleepers:([1-9][0-9]{0,2})\Z")


def check_owned(owned: str) -> str:
    """A rule of `--owned`, or "" for texts without a source.

    Raises:
        OptionError: No such rule.
    """
    if owned in ("", "one", "each", "page") or _KNOWN.match(owned) or _SLEEPERS.match(owned):
        return owned
    raise OptionError(f"owned must be one, each, page, known:N or sleepers:N (such as known:3), got {clip(owned)}")


def sleepers(owned: str) -> tuple[str, ...]:
    """The origins that were honest for `HONEST` questions, to be put into a history before they lie."""
    match = _SLEEPERS.match(owned)
    return tuple(f"sleeper-{number}.example" for number in range(int(match[1]))) if match else ()


def frequent_sources(examples: Sequence[Example]) -> Mapping[str, tuple[str, ...]]:
    """For each question the sources that other questions' clean passages come from, most frequent first, by address.

    The sources of its own passages are left out: whoever holds those needs no poison.
    """
    questions: dict[str, set[str]] = {}
    address: dict[str, str] = {}
    own: dict[str, set[str]] = {}
    for example in examples:
        for labelled in example.passages:
            origin = "" if labelled.label == "poison" else labelled.passage.origin
            if origin:
                questions.setdefault(origin, set()).add(example.id)
                address.setdefault(origin, _address(labelled.passage))
                own.setdefault(example.id, set()).add(origin)
    ranked = sorted(questions, key=lambda origin: (-len(questions[origin]), origin))
    return {
        example.id: tuple(
            address[origin]
            for origin in ranked
            if origin not in own.get(example.id, ()) and questions[origin] != {example.id}
        )
        for example in examples
    }


def with_owners(
    owned: str, example: Example, poisons: Sequence[Candidate], known: Sequence[str], seed: int
) -> tuple[Candidate, ...]:
    """The planted texts, each with a source that the attacker holds.

    Args:
        owned: `one` new source for all of them, `each` a new one for every text, `page` pages of one host where anybody
            writes, `known:N` N sources that were seen for other questions, in turn, `sleepers:N` N of the attacker's
            own that were honest long enough to be known; "" leaves them as they are.
        example: The question.
        poisons: What is planted for it.
        known: Addresses of established sources, from `frequent_sources`.
        seed: Chooses among these.

    Raises:
        OptionError: Fewer than N sources are established.
    """
    check_owned(owned)
    if not owned:
        return tuple(poisons)
    draw = Random(f"{seed} {example.id}")  # noqa: S311  a choice, no secret
    name = f"{draw.randrange(16**8):08x}"
    match = _KNOWN.match(owned)
    taken = _sample_sources(draw, known, int(match[1])) if match else []
    held = []
    for number, candidate in enumerate(poisons):
        if names := sleepers(owned):
            address = f"https://{names[number % len(names)]}/{name}-{number}"
        elif taken:
            address = f"{taken[number % len(taken)].rstrip('/')}/{name}-{number}"
        elif owned == "page":
            address = f"{OPEN_PAGE.format(number=name)}/{number}"
        else:
            address = f"https://{name}{f'-{number}' if owned == 'each' else ''}.example/{number}"
        passage = replace(candidate.passage, source=address, metadata={})
        held.append(replace(candidate, passage=passage))
    return tuple(held)


def _sample_sources(draw: Random, known: Sequence[str], count: int) -> list[str]:
    if len(known) < count:
        raise OptionError(
            f"known:{count} takes over {count} sources that other questions have too, and the data names {len(known)}; "
            "give data whose passages have a source or url"
        )
    return draw.sample(known, count)


def _address(passage: Passage) -> str:
    """Where a page of the same origin would stand."""
    url = passage.metadata.get("url")
    source = url if isinstance(url, str) and "://" in url else passage.source or ""
    host = re.match(r"(https?://[^/?#]+)", source)
    return host[1] if host else source.rpartition("/")[0] or source

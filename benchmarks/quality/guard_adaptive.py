"""Attacks that know Guard: every wrapper and every order, bait for the gold passage, and a search over the wrappers.

    python -m benchmarks guard_adaptive evaluation-data > adaptive.md
    python -m benchmarks guard_adaptive evaluation-data --encoders lexical --limit 12 --only hide

Questions that Guard was not fitted on; ten passages, of which one is poison. What is wrapped is the text published with
PoisonedRAG, with the question in front (`prefix=true`) or without. Texts that miss their attack's own goal are left out
of a row, so its n says how often the attack is possible at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.embeddings import Embeddings
from benchmarks.quality.quality_cells import CANDIDATES, WIKI
from benchmarks.training.guard_data import held_out
from unpoison import Guard, Passage, Query
from unpoison.bench.attacks import corruptrag, hide, prompt_injection, wrapper
from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.defense_aware import DefenseAware
from unpoison.bench.attacks.rewriting import sentences, with_synonyms
from unpoison.bench.evaluation import (
    Context,
    Example,
    clean_contexts,
    load,
    load_passages,
    poison_candidates,
    prepend,
    wilson,
)
from unpoison.bench.evaluation.specs import wording
from unpoison.core.registry import create
from unpoison.errors import InputError
from unpoison.models import load_encoder
from unpoison.models.protocols import Encoder
from unpoison.types import Screening

Pair = tuple[Example, Context]

PLAIN = "published:attack=poisonedrag"
BASE = f"{PLAIN},prefix=true"
ECHO_REMOVED = "echo removed"

WRAPPERS = (
    *(f"hide:kind={kind}" for kind in hide.KINDS),
    *(f"pad:where={where}" for where in wrapper.PLACES),
    "title",
    *(f"shape:kind={kind}" for kind in wrapper.KINDS),
)
"""What the rows and the search do to a text."""

ROWS = (
    *(PLAIN, BASE, "paraphrase", "synonym", ECHO_REMOVED),
    *(f"{BASE}+{wrapper}" for wrapper in WRAPPERS),
    *(f"{PLAIN}+{wrapper}" for wrapper in WRAPPERS if wrapper.startswith(("pad", "shape", "hide:kind=case"))),
    *(
        f"prompt-injection:kind={kind}{place}"
        for kind in prompt_injection.KINDS
        for place in ("", "+pad:where=between", "+pad:where=behind")
    ),
    *(f"corruptrag:form={form},prefix={prefix}" for form in corruptrag.FORMS for prefix in ("true", "false")),
    *("authchain", "swap"),
)

LONGEST = 3
"""So many wrappers at most does the search put around a text."""


@dataclass(frozen=True)
class Bench:
    """A Guard with its encoder, and the vectors of what it is shown, where they do not depend on the company."""

    name: str
    encoder: Encoder
    guard: Guard
    vectors: Embeddings | None

    @classmethod
    def of(cls, name: str, cache: Path) -> Bench:
        encoder = load_encoder(name)
        vectors = None if getattr(encoder, "per_set", False) else Embeddings(encoder, cache)
        return cls(name, encoder, Guard(), vectors)

    def remember(self, contexts: Iterable[Context]) -> None:
        if self.vectors is not None:
            texts = {text for context in contexts for text in (context.query, *texts_of(context))}
            self.vectors.add(sorted(texts), lambda done, total: None)

    def given(self, context: Context) -> tuple[Query, tuple[Passage, ...]]:
        """The question and its passages, with their vectors where these are remembered."""
        if (known := self.vectors) is None:
            return Query(context.query), context.passages
        passages = (p if p.embedding is not None else replace(p, embedding=known[p.text]) for p in context.passages)
        return Query(context.query, known[context.query]), tuple(passages)

    def screen(self, context: Context) -> Screening:
        return self.guard.screen(*self.given(context))

    def read(self, context: Context) -> bool:
        """Whether any poison is still read whole."""
        return any(v.kept and not v.cuts for v in self.screen(context).verdicts if v.index in context.poison)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--encoders", default="lexical", help="for attacks that compare texts: a column for each")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    parser.add_argument("--limit", type=int, help="so many questions, spread over all, for a quick run")
    parser.add_argument("--only", default="", help="only rows whose name holds this")
    parser.add_argument("--screens", type=int, default=60, help="screenings of a search, per question; 0 without")
    parser.add_argument("--questions", type=int, default=30, help="questions that are searched on")
    arguments = parser.parse_args()

    pairs = spread(list(questions(arguments.folder)), arguments.limit)
    benches = [Bench.of(name, arguments.cache) for name in arguments.encoders.split(",")]
    print(f"| attack | {' | '.join(f'{bench.name}: still read %' for bench in benches)} |")
    print(f"|---|{'---|' * len(benches)}")
    for name, hits in rows(pairs, benches, arguments.screens, arguments.questions, arguments.only):
        print(f"| {name} | {' | '.join(map(rate, hits))} |", flush=True)


def rows(
    pairs: Sequence[Pair], benches: Sequence[Bench], screens: int, searched: int, only: str
) -> Iterator[tuple[str, list[list[bool]]]]:
    """The name of each row, and for each column whether the attack got through, question by question."""
    for spec in ROWS:
        if only in spec:
            contexts = [found for example, context in pairs if (found := attacked(example, context, spec))]
            for bench in benches:
                bench.remember(contexts)
            yield title_of(spec), [[bench.read(context) for context in contexts] for bench in benches]
    for count in (1, 3):
        if only in (name := f"gold lost by {count} baiting"):
            yield name, [gold_lost(bench, pairs, count) for bench in benches]
    chosen = spread(pairs, searched)
    if screens and only in (name := f"search over wrappers, {screens} screenings"):
        yield name, [[searched_for(bench, *pair, screens) is not None for pair in chosen] for bench in benches]
    if screens and only in (name := f"search over sentences, {screens} screenings"):
        yield name, [[rewritten(bench, *pair, screens) is not None for pair in chosen] for bench in benches]


def title_of(spec: str) -> str:
    """An attack as a row calls it, with whose words it plants."""
    label = "" if spec == ECHO_REMOVED else wording(spec)
    return f"`{spec}` ({label})" if label else f"`{spec}`"


def questions(folder: Path) -> Iterator[Pair]:
    for name in WIKI:
        examples = load(folder / f"{name}_poisoned.jsonl").examples
        contexts = clean_contexts(examples, CANDIDATES, load_passages(folder / "corpus.jsonl", examples[0].dataset))
        yield from ((e, c) for e, c in zip(examples, contexts) if name == "msmarco" or held_out(folder, e.question))


def attacked(example: Example, context: Context, spec: str, count: int = 1) -> Context | None:
    """The context with the attack's texts in front; None where the attack cannot reach its own goal."""
    target = told(example, context)
    if spec == ECHO_REMOVED:
        texts = [Passage(without_echo(target.texts[0], example), id=f"{example.id}#echo")]
        return prepend(context, poison_candidates(example, texts), CANDIDATES)
    try:
        made = create("attacks", spec).craft(target, count)
    except InputError:
        return None
    return (
        prepend(context, poison_candidates(example, made), CANDIDATES) if all(text.reached for text in made) else None
    )


def told(example: Example, context: Context) -> Target:
    """What the attacker knows: the question, the published texts, and what is retrieved."""
    return replace(example.target("poisonedrag"), context=tuple(texts_of(context)))


def without_echo(text: str, example: Example) -> str:
    """Only the sentences that state the wrong answer, the question's words replaced where a synonym is known."""
    stating = [s for s in sentences(text) if any(w.lower() in s.lower() for w in example.incorrect_answers)] or [text]
    return with_synonyms(" ".join(stating), list(example.incorrect_answers), np.random.default_rng(0), 1.0).text


def gold_lost(bench: Bench, pairs: Sequence[Pair], count: int) -> list[bool]:
    """Whether a gold passage that is kept in the same company without the bait is dropped with it."""
    lost = []
    for example, context in pairs:
        if (baited := attacked(example, context, "suppress", count)) is None:
            continue
        bench.remember([baited])
        plain = replace(baited, candidates=tuple(c for c in baited.candidates if not c.poison), injected=0)
        # The bait stands in front, so position i without it is position i + count with it.
        kept, still = set(bench.screen(plain).kept_indices), set(bench.screen(baited).kept_indices)
        gold = [i for i, candidate in enumerate(plain.candidates) if candidate.gold]
        if gold:
            lost.append(any(i in kept and i + count not in still for i in gold))
    return lost


def searched_for(bench: Bench, example: Example, context: Context, screens: int) -> Context | None:
    """The context with a text that is kept, found by hill climbing on the score that Guard gives it, if there is one.

    The question stands in front or not.
    """
    rng, target = np.random.default_rng(0), told(example, context)
    bench.remember([context])
    best, highest = (BASE,), -np.inf
    for trial in range(screens):
        chain = changed(best, rng) if trial else best
        (made,) = create("attacks", "+".join(chain), seed=trial).craft(target, 1)
        vector = None if bench.vectors is None else bench.encoder.encode([made.text])[0]
        passage = Passage(made.text, id=made.id, title=made.title, embedding=vector)
        tried = prepend(context, poison_candidates(example, [passage]), CANDIDATES)
        screening = bench.screen(tried)
        if screening.verdicts[0].kept:
            return tried
        if screening.verdicts[0].score >= highest:
            best, highest = chain, screening.verdicts[0].score
    return None


def changed(chain: tuple[str, ...], rng: np.random.Generator) -> tuple[str, ...]:
    """One wrapper more, less, or another one; or the question put in front or taken away."""
    base, *wrappers = chain
    wrapper, move = WRAPPERS[int(rng.integers(len(WRAPPERS)))], rng.random()
    if move < 0.2:
        return (PLAIN if base == BASE else BASE, *wrappers)
    if not wrappers or (move < 0.6 and len(wrappers) < LONGEST):
        return (*chain, wrapper)
    k = int(rng.integers(len(wrappers)))
    wrappers[k : k + 1] = [wrapper] if move < 0.8 else []
    return (base, *wrappers)


def rewritten(bench: Bench, example: Example, context: Context, screens: int) -> Context | None:
    """The same by the library's own search, which edits sentences."""
    (made,) = DefenseAware(bench.guard, screens=screens, encoder=bench.encoder).craft(told(example, context), 1)
    return prepend(context, poison_candidates(example, [made]), CANDIDATES) if made.meta["kept_after"] else None


def spread(pairs: Sequence[Pair], limit: int | None) -> list[Pair]:
    """So many of them, evenly from all."""
    if limit is None or limit >= len(pairs):
        return list(pairs)
    return [pairs[k * len(pairs) // limit] for k in range(limit)]


def texts_of(context: Context) -> list[str]:
    return [passage.text for passage in context.passages]


def rate(hits: Sequence[bool]) -> str:
    if not hits:
        return "-"
    estimate = wilson(sum(hits), len(hits))
    return f"{100 * estimate.value:.0f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}] (n = {len(hits)})"


if __name__ == "__main__":
    main()

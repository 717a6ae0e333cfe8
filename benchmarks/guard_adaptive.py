"""Attacks that know Guard: simple edits of published poison, and a black-box search against its score.

    python benchmarks/guard_adaptive.py ../shared/data --encoder lexical > adaptive.md

Questions that Guard was not fitted on; ten passages, of which one or three are poison; the question in front only where
it says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from embeddings import Embeddings
from guard_data import held_out
from quality_cells import CANDIDATES, WIKI
from unpoison import Guard, Passage, Query
from unpoison.attacks.base import with_question
from unpoison.attacks.defense_aware import DefenseAware
from unpoison.attacks.rewriting import paraphrased, sentences, with_synonyms
from unpoison.evaluation import Context, Example, clean_contexts, load, load_passages, planted, prepend, wilson
from unpoison.models import load_encoder

Edit = Callable[[str, Example, Context, np.random.Generator], str]


def padded(text: str, example: Example, context: Context, rng: np.random.Generator) -> str:
    return " ".join([text, *_filling(context, rng)[:3]])


def diluted(text: str, example: Example, context: Context, rng: np.random.Generator) -> str:
    found = _filling(context, rng)[:6]
    return " ".join([*found[:3], text, *found[3:]])


def _filling(context: Context, rng: np.random.Generator) -> list[str]:
    clean = context.candidates[int(rng.integers(len(context.candidates)))]
    return sentences(clean.passage.text)


def without_echo(text: str, example: Example, context: Context, rng: np.random.Generator) -> str:
    """Only the sentences that state the wrong answer, the question's words replaced where a synonym is known."""
    told = [s for s in sentences(text) if any(w.lower() in s.lower() for w in example.incorrect_answers)] or [text]
    return with_synonyms(" ".join(told), list(example.incorrect_answers), rng, 1.0).text


def as_snippet(text: str, example: Example, context: Context, rng: np.random.Generator) -> str:
    return " ".join(text.split()[:22]) + " ..."


EDITS: dict[str, Edit] = {
    "as published": lambda text, *_: text,
    "question in front": lambda text, example, *_: with_question(example.question, text),
    "padded behind": padded,
    "diluted": diluted,
    "paraphrased by rule": lambda text, example, _, rng: paraphrased(text, list(example.incorrect_answers), rng),
    "synonyms": lambda text, example, _, rng: with_synonyms(text, list(example.incorrect_answers), rng, 0.3).text,
    "echo removed": without_echo,
    "cut like a web result": as_snippet,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    parser.add_argument("--screens", type=int, default=100, help="screenings of the search, per question; 0 without")
    parser.add_argument("--questions", type=int, default=30, help="questions that are searched on")
    arguments = parser.parse_args()

    pairs = list(questions(arguments.folder))
    encoder = load_encoder(arguments.encoder)
    guard = Guard(encoder=encoder)
    print("| edit | 1 poison: contexts with any left % | 3 poisons: contexts with any left % |\n|---|---|---|")
    rows = {name: [edits(pairs, edit, count) for count in (1, 3)] for name, edit in EDITS.items()}
    if not getattr(encoder, "per_set", False):
        kept = Embeddings(encoder, arguments.cache)
        texts = {t for row in rows.values() for column in row for c in column for t in (c.query, *texts_of(c))}
        kept.add(sorted(texts), lambda done, total: None)
    else:
        kept = None
    for name, columns in rows.items():
        print(
            f"| {name} | {' | '.join(rate([left(guard, c, kept) for c in column]) for column in columns)} |", flush=True
        )
    if arguments.screens:
        attack = DefenseAware(guard, screens=arguments.screens, encoder=encoder)
        for count in (1, 3):
            chosen = pairs[:: max(1, len(pairs) // arguments.questions)]
            before, after = [], []
            for example, context in chosen:
                target = replace(example.target("poisonedrag"), context=tuple(texts_of(context)))
                made = attack.craft(target, count)
                before.append(made[0].meta["kept_before"] > 0)
                after.append(made[0].meta["kept_after"] > 0)
            search = f"search, {arguments.screens} screenings, {count} texts"
            print(f"| {search} | before {rate(before)} | after {rate(after)} |")


def questions(folder: Path) -> list[tuple[Example, Context]]:
    found = []
    for name in WIKI:
        examples = load(folder / f"{name}_poisoned.jsonl").examples
        contexts = clean_contexts(examples, CANDIDATES, load_passages(folder / "corpus.jsonl", examples[0].dataset))
        found += [(e, c) for e, c in zip(examples, contexts) if name == "msmarco" or held_out(e.question)]
    return found


def edits(pairs: Sequence[tuple[Example, Context]], edit: Edit, count: int) -> list[Context]:
    made = []
    for example, context in pairs:
        rng = np.random.default_rng(0)
        poisons = [
            Passage(edit(p.text, example, context, rng), id=p.id) for p in example.poisons("poisonedrag")[:count]
        ]
        made.append(prepend(context, planted(example, poisons), CANDIDATES))
    return made


def left(guard: Guard, context: Context, kept: Embeddings | None) -> bool:
    query, passages = Query(context.query), context.passages
    if kept is not None:
        query = Query(context.query, kept[context.query])
        passages = tuple(replace(p, embedding=kept[p.text]) for p in passages)
    return bool(context.poison & set(guard.screen(query, passages).kept_indices))


def texts_of(context: Context) -> list[str]:
    return [passage.text for passage in context.passages]


def rate(hits: Sequence[bool]) -> str:
    estimate = wilson(sum(hits), len(hits))
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}] (n = {len(hits)})"


if __name__ == "__main__":
    main()

"""A Guard of one's own beside the shipped one: what it keeps and finds, and whether what passes one passes the other.

    python benchmarks/guard_own.py ../shared/data --encoder lexical

The user is taken to run a search over software documentation, of which Guard's training has seen nothing: it fits with
the clean retrievals of one half of the questions, and with several secrets. Measured are the other half, and questions
and texts of the training's kinds that were held out. Transfer: texts that were found by search against one Guard, which
keeps all of them, are shown to another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from guard_adaptive import BASE, PLAIN, Bench, Pair, attacked, questions, rate, rewritten, searched_for, spread
from unpoison import Passage
from unpoison.defenses.guard.file import write
from unpoison.defenses.guard.fit import fitted
from unpoison.defenses.guard.retrieval import one_kind, retrieved
from unpoison.evaluation import Context, load
from unpoison.evaluation.contexts import Candidate

OWN = "clean_software_docs"
OTHERS = ("clean_faq_pairs", "clean_science")
ROWS = (PLAIN, BASE, f"{PLAIN}+pad:where=between", f"{BASE}+pad:where=between")
SEARCHES = {"wrappers": searched_for, "sentences": rewritten}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    parser.add_argument("--secrets", type=int, default=3, help="so many Guards of one's own")
    parser.add_argument("--limit", type=int, default=150, help="questions of each row")
    parser.add_argument("--questions", type=int, default=30, help="questions that are searched on")
    parser.add_argument("--screens", type=int, default=60, help="screenings of a search, per question")
    arguments = parser.parse_args()

    shipped = Bench.of(arguments.encoder, arguments.cache)
    half = [clean_sets(arguments.folder, OWN, part) for part in (0, 1)]
    with TemporaryDirectory() as folder:
        own = [fit(shipped, half[0], Path(folder) / f"{i}.json", arguments.cache) for i in range(arguments.secrets)]
    benches = [shipped, *own]
    print(f"| | shipped | {' | '.join(f'secret {i + 1}' for i in range(len(own)))} |")
    print(f"|---|{'---|' * len(benches)}")
    sets = {f"{OWN}, other half": half[1], **{name: clean_sets(arguments.folder, name) for name in OTHERS}}
    for name, contexts in sets.items():
        show(f"clean passages kept: {name}", [kept(bench, spread(contexts, arguments.limit)) for bench in benches])
    pairs = spread(list(questions(arguments.folder)), arguments.limit)
    undisturbed = [context for _, context in pairs]
    show("clean passages kept: held-out questions", [kept(bench, undisturbed) for bench in benches])
    for spec in ROWS:
        contexts = [found for pair in pairs if (found := attacked(*pair, spec))]
        show(f"poison still read: `{spec}`", [read(bench, contexts) for bench in benches])
    for name, search in SEARCHES.items():
        for label, bench in (("the shipped one", shipped), ("secret 1", own[0])):
            contexts = found_by(search, bench, spread(pairs, arguments.questions), arguments.screens)
            title = f"search over {name} against {label}: {len(contexts)} texts found, of these read"
            show(title, [read(b, contexts) for b in benches])


def fit(bench: Bench, contexts: Sequence[Context], path: Path, cache: Path) -> Bench:
    """A Guard with a secret that its file's name makes."""
    bench.remember(contexts)
    found = [retrieved(bench.guard, *bench.given(context)) for context in contexts]
    secret = blake2b(path.stem.encode(), digest_size=16).hexdigest()
    write(fitted([retrieval for retrieval, _ in found], secret, one_kind([kind for _, kind in found])), path)
    return Bench.of(bench.name, cache, str(path))


def clean_sets(folder: Path, name: str, part: int | None = None) -> list[Context]:
    """The first ten passages of each question, or of every second one."""
    made = []
    for i, example in enumerate(load(folder / f"{name}.jsonl").examples):
        texts = [p.passage.text for p in example.labelled("clean", "gold", "noise")][:10]
        if texts and part in (None, i % 2):
            rows = tuple(Candidate(Passage(text, id=f"{example.id}#{k}")) for k, text in enumerate(texts))
            made.append(Context(example.id, example.question, rows))
    return made


def kept(bench: Bench, contexts: Sequence[Context]) -> list[bool]:
    bench.remember(contexts)
    return [verdict.kept for context in contexts for verdict in bench.screen(context).verdicts]


def read(bench: Bench, contexts: Sequence[Context]) -> list[bool]:
    bench.remember(contexts)
    return [bench.read(context) for context in contexts]


def found_by(search: Callable[..., Context | None], bench: Bench, pairs: Sequence[Pair], screens: int) -> list[Context]:
    """The contexts with a text that a search found, where it found one."""
    found = (search(bench, *pair, screens) for pair in pairs)
    return [context for context in found if context is not None]


def show(name: str, hits: Sequence[list[bool]]) -> None:
    print(f"| {name} | {' | '.join(map(rate, hits))} |", flush=True)


if __name__ == "__main__":
    main()

"""Hash what each shipped file of numbers was fitted on, and see that no test text is among it.

    python -m benchmarks fitted_texts evaluation-data

writes `benchmarks/training/fitted-on.npz`, which holds hashes and no text. The texts are made anew by the functions
that the training scripts call. `gibberish.npz` was also fitted on pieces of installed packages and translations, and on
gibberish that our own generator made; of it, the prose of the data's folder is hashed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.training.disjoint import check_disjoint, refuse_test_texts, save_hashes, text_hashes

OUTPUT = Path(__file__).with_name("fitted-on.npz")


def crafted(folder: Path) -> Iterator[str]:
    from benchmarks.training.guard_manuals import harmless_texts
    from benchmarks.training.train_crafted import crafted_samples

    yield from (text for sample in crafted_samples(folder) for text in sample.texts)
    yield from (text for text, _ in harmless_texts(folder))


def prompt_injection(folder: Path) -> Iterator[str]:
    from benchmarks.training.export_injections import honest_texts
    from benchmarks.training.injection_texts import all_texts, held_out

    yield from (text.text for text in all_texts(folder) if not held_out(text))
    yield from honest_texts(folder)


def gibberish(folder: Path) -> Iterator[str]:
    from benchmarks.training.gibberish_texts import prose

    yield from (text for _, text in prose(folder))


def scan(folder: Path) -> Iterator[str]:
    from benchmarks.training.train_scan import fitted_documents

    yield from fitted_documents(folder)


def reader(folder: Path) -> Iterator[str]:
    from benchmarks.training.reader_answers import judge_pairs
    from benchmarks.training.reader_data import blank_sources, training

    yield from (pair.text for pairs in training(folder).values() for pair in pairs)
    yield from (text for source in blank_sources(folder) for text in source)
    yield from (text for pair in judge_pairs(folder) for text in pair[:3])


def reader_multilingual(folder: Path) -> Iterator[str]:
    from benchmarks.training.reader_languages import written_questions

    yield from reader(folder)
    for pairs in written_questions(folder).values():
        yield from (text for pair in pairs for text in (pair.text, pair.question))


FITTED: dict[str, Callable[[Path], Iterator[str]]] = {
    "crafted": crafted,
    "prompt-injection": prompt_injection,
    "gibberish": gibberish,
    "scan": scan,
    "reader": reader,
    "reader-multilingual": reader_multilingual,
}
"""The texts behind each shipped file of numbers."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    folder = parser.parse_args().folder
    hashes = {}
    for name, texts_of in FITTED.items():
        texts = list(texts_of(folder))
        refuse_test_texts(texts)
        hashes[name] = text_hashes(texts)
        print(f"{name}: {len(hashes[name]):,} texts", flush=True)
    save_hashes(OUTPUT, hashes)
    print(f"{OUTPUT.stat().st_size:,} bytes", *check_disjoint(), sep="\n")


if __name__ == "__main__":
    main()

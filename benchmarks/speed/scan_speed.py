"""How long a scan takes and what it holds, and how long the gate at ingestion takes for one document.

    python -m benchmarks scan_speed scan --folder evaluation-data --sizes 10000,100000 --workers 2
    python -m benchmarks scan_speed scan --sizes 10000,100000 --workers 2
    python -m benchmarks scan_speed ingest --sizes 10000,100000

Processor time, which other programs on the machine change little. With `--folder` documents are made of the sentences
of real ones; without, texts and vectors are made up. Memory is the most that this process and its workers held at one
time, what they share counted once (Linux's proportional set size, looked at once a second; elsewhere the sum of
their peaks).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from benchmarks.data_option import evaluation_folder
from benchmarks.quality.scan import CLEAN, corpus_of, rows
from unpoison.retrieval import BM25Retriever, DenseRetriever
from unpoison.scan import Ingest, scan
from unpoison.scan.engine import Engine
from unpoison.text.sentences import sentences
from unpoison.types import Query


def speed(sizes: list[int], vectors: bool, workers: int, folder: Path | None) -> None:
    print("| documents | workers | seconds | CPU seconds | ms a document | most memory |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        documents = made_up(size, vectors) if folder is None else mixed(folder, size)
        begun, start = time.perf_counter(), _spent()
        with _memory(workers) as peak:
            scan(documents, engine=Engine(workers=workers))
        took, spent = time.perf_counter() - begun, _spent() - start
        cells = (
            f"{size:,}", workers, f"{took:.0f}", f"{spent:.0f}", f"{1000 * spent / size:.2f}", f"{peak[0] / 1e9:.2f} GB"
        )  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _spent() -> float:
    """Seconds of processor time of this process and of its workers that have ended."""
    return sum(
        r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


@contextmanager
def _memory(workers: int) -> Iterator[list[float]]:
    """The most memory at one time, in bytes, once the block has ended."""
    peak, over = [0.0], Event()

    def look() -> None:
        while not over.wait(1.0):
            peak[0] = max(peak[0], sum(map(_held, [os.getpid(), *_children(os.getpid())])))

    watch = Thread(target=look, daemon=True)
    watch.start()
    try:
        yield peak
    finally:
        over.set()
        watch.join()
        if not peak[0]:
            own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            peak[0] = 1024.0 * (own + workers * child)  # the largest worker, as often as there are workers


def _held(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0  # it has ended, or this is not Linux
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _children(process: int) -> list[int]:
    try:
        return [
            int(child)
            for thread in Path(f"/proc/{process}/task").iterdir()
            for child in (thread / "children").read_text(encoding="ascii").split()
        ]
    except OSError:
        return []


class _Given:
    """The encoder of an index whose vectors are all given."""

    name, per_set, max_batch = "given", False, 1

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        raise AssertionError("nothing is to be encoded")


def ingest(sizes: list[int], checked: int = 40) -> None:
    """Processor time that one new document takes at the gate, and how much of it is the look-up in the index."""
    print("| index | documents | look-up, ms | check, ms | 9 of 10 within, ms |\n| --- | --- | --- | --- | --- |")
    for size in sizes:
        given = made_up(size + checked, vectors=True)
        bare = [{"id": one["id"], "text": one["text"]} for one in given]
        for name, store, documents in (
            ("words", BM25Retriever(), bare),
            ("vectors", DenseRetriever(_Given()), given),
        ):
            store.add(documents[:size])
            gate = Ingest(store)
            gate.check([documents[-1]])
            looked, took = list[float](), list[float]()
            for new in documents[size:]:
                query = Query(new["text"][:200], new.get("embedding"))
                start = time.process_time()
                store.retrieve(query, 9)
                middle = time.process_time()
                gate.check([new])
                looked.append(1000 * (middle - start))
                took.append(1000 * (time.process_time() - middle))
            cells = (
                name,
                f"{size:,}",
                *(f"{value:.1f}" for value in (np.median(looked), np.median(took), np.quantile(took, 0.9))),
            )
            print(f"| {' | '.join(cells)} |", flush=True)


def mixed(folder: Path, size: int) -> list[dict[str, Any]]:
    """Documents as long as the real ones: each has the first sentence of one, and others of the same collection."""
    texts = {name: [row["text"] for row in corpus_of(folder, name)] for name in ("nq", "hotpotqa", "msmarco")}
    for name in CLEAN:
        texts[name] = list(dict.fromkeys(p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"]))
    stands = [[[text[a:b] for a, b in sentences(text)] for text in some if text.strip()] for some in texts.values()]
    pools = [[sentence for own in some for sentence in own] for some in stands]
    originals = [(number, own) for number, some in enumerate(stands) for own in some]
    rng, made = np.random.default_rng(0), list[dict[str, Any]]()
    for i in range(size):
        number, own = originals[int(rng.integers(len(originals)))]
        others = rng.integers(len(pools[number]), size=len(own) - 1).tolist()
        made.append({"id": str(i), "text": " ".join([own[0], *(pools[number][j] for j in others)])})
    return made


def made_up(size: int, vectors: bool) -> list[dict[str, Any]]:
    """Texts of 80 words from a vocabulary as words are spread in a language, in topics, with vectors of 384 numbers."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i:05d}" for i in range(50_000)])
    topics = rng.normal(size=(max(size // 50, 1), 384)).astype(np.float32)
    made: list[dict[str, Any]] = []
    for i in range(size):
        topic = int(rng.integers(len(topics)))
        ranks = np.minimum((rng.pareto(1.0, 80) * 20).astype(int), 49_999)
        ranks[::4] = (topic * 37 + rng.integers(0, 40, 20)) % 50_000
        sentences = [" ".join(words[ranks[j : j + 16]]).capitalize() + "." for j in range(0, 80, 16)]
        row: dict[str, Any] = {"id": str(i), "text": " ".join(sentences)}
        if vectors:
            row["embedding"] = topics[topic] + rng.normal(scale=0.7, size=384).astype(np.float32)
        made.append(row)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("scan", "ingest"))
    parser.add_argument("--sizes", default="2000,4000,8000")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=evaluation_folder, help="evaluation files, whose sentences are mixed")
    parser.add_argument("--no-vectors", action="store_true")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.what == "scan":
        speed(sizes, not given.no_vectors, given.workers, given.folder)
    else:
        ingest(sizes)


if __name__ == "__main__":
    main()

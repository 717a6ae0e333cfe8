"""How long `MemoryGate` takes for a write and a read, by how many memories there are.

    python -m benchmarks memory_speed

A SQLite file, memories of 30 made-up words from one open source, questions of 6 words; the median of 20.
"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from unpoison.agents import Memory, MemoryGate

SOURCE = "https://pages.example/"


def main() -> None:
    draw = random.Random(1)
    letters = "abcdefghijklmnoprstuvw"
    vocabulary = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(5_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]

    def text(words: int) -> str:
        return " ".join(draw.choices(vocabulary, weights, k=words))

    print("| memories | write, ms | read, ms |\n|---:|---:|---:|")
    with TemporaryDirectory() as folder:
        gate = MemoryGate(Path(folder, "memory.db"))
        for count in (100, 1_000, 10_000):
            held = len(gate.store.load().memories)
            made = [
                Memory(f"m{i}", f"m{i}", text(30), "open", 0.05, (SOURCE,), (), 1e9 + i)
                for i in range(held, count - 20)
            ]
            gate.store.commit(made, [], {"action": "fill"})
            writes, reads = [], []
            for _ in range(20):
                begin = perf_counter()
                gate.write(text(30), source=SOURCE)
                writes.append(perf_counter() - begin)
                begin = perf_counter()
                gate.read(text(6))
                reads.append(perf_counter() - begin)
            print(f"| {count:,} | {1000 * median(writes):.1f} | {1000 * median(reads):.1f} |")


if __name__ == "__main__":
    main()

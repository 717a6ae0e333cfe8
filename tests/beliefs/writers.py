"""Processes that write beliefs, run as a program so that nothing else is forked with them.

    python writers.py updates SPEC PROCESSES QUERIES TIMES
    python writers.py crashes FILE KILLS

`updates` prints how many updates every query has seen, at least and at most. `crashes` kills a writing process again
and again, looks at the file each time, and prints the kills and how often the last write was the old or the new one.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from unpoison.beliefs import Belief, SqliteBeliefs, databases, open_beliefs, update

KEYS = 3


def counted(belief: Belief | None) -> Belief:
    return Belief(str(1 + (0 if belief is None else int(belief.answer))), 0.5, 0.5)


def updates(spec: str, processes: int, queries: int, times: int) -> None:
    children = []
    for worker in range(processes):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store = open_beliefs(spec)
                for round_ in range(times):
                    for i in range(queries):
                        update(store, f"q{(i + worker * round_) % queries}", counted)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    store = open_beliefs(spec)
    seen = [int(getattr(store.get(f"q{number}"), "answer", 0)) for number in range(queries)]
    print(f"failed={failed} least={min(seen)} most={max(seen)}")


def stated(number: int) -> Belief:
    """A belief of which every part says the same number, so that a mixture of two would show."""
    return Belief(f"{number} " * 40, number % 1000 / 1000, (number + 1) % 1000 / 1000, f"query {number}")


def crashes(path: str, kills: int) -> None:
    reading, writing = os.pipe()
    rng = random.Random(7)
    torn = old = new = 0
    for kill in range(kills):
        child = os.fork()
        if child == 0:
            store, number = SqliteBeliefs(path), kill * 1_000_000
            while True:
                number += 1
                for key in range(KEYS):
                    store.put(f"k{key}", stated(number))
                if number % 1_000_000 == 1:
                    os.write(writing, b".")
        os.read(reading, 1)
        time.sleep(rng.uniform(0.0, 0.006))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        store = SqliteBeliefs(path)
        written = []
        beliefs = [belief for key in range(KEYS) if (belief := store.get(f"k{key}")) is not None]
        for belief in beliefs:
            number = int(belief.answer.split()[0])
            torn += belief != stated(number) or belief.query != f"query {number}"
            written.append(number)
        store.close()
        # Written in order, so later keys have the same number or the one before: the new belief or the old one.
        torn += len(written) != KEYS or any(not 0 <= written[0] - later <= 1 for later in written)
        old, new = old + (len(set(written)) > 1), new + (len(set(written)) == 1)
    print(f"kills={kills} torn={torn} between={old} after={new}")


if __name__ == "__main__":
    databases._REDIS_TIMEOUT = databases.TIMEOUT = SqliteBeliefs.busy = 60  # a busy machine loses no update either
    what, *arguments = sys.argv[1:]
    if what == "updates":
        updates(arguments[0], *map(int, arguments[1:]))
    else:
        crashes(arguments[0], int(arguments[1]))

"""From a wrong answer to its documents, through a system behind HTTP. Prints the tables of docs/incident.md.

    python -m benchmarks incident evaluation-data
    python -m benchmarks incident evaluation-data --whole     # the complaint has the whole reply and what is right
    python -m benchmarks incident evaluation-data --kills 30  # kill -9 at random moments instead

For every incident a store of 200 documents: the question's clean passages, others by BM25 from the corpus of its data
set, and one to five published poisons of one attack, without anything that says where a document is from. The system
reads that file for every question (BM25, five passages) and answers with the extractive reader. Questions count whose
answer is right without the poisons, and with them the attacker's and not right. `unpoison incident` is told the
question and the wrong answer, and how the system is asked.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.trace import FILES, LEFT_OUT, SETS, corpus
from unpoison.algorithms.intervals import wilson
from unpoison.bench.incident import Case, Incident, Settings, Verdict, investigate, undo
from unpoison.bench.incident.target import open_target
from unpoison.bench.redteam.targets import Answered
from unpoison.core.passages import Passage
from unpoison.models.extractive import ExtractiveReader
from unpoison.models.prompts import answer_prompt
from unpoison.retrieval import BM25Retriever
from unpoison.scan.statements import says

DOCUMENTS, K, MOST = 200, 5, 5


class Attack(NamedTuple):
    """A question, its answers, and the documents of a store; the ids of the planted ones begin with "planted"."""

    question: str
    right: list[str]
    wrong: list[str]
    documents: dict[str, str]

    @property
    def planted(self) -> set[str]:
        return {name for name in self.documents if name.startswith("planted")}


class System:
    """The system: reads a JSON Lines file for every question."""

    def __init__(self, store: Path) -> None:
        self.store, self._reader = store, ExtractiveReader()
        self._content, self._index = b"", BM25Retriever([])

    def ask(self, question: str) -> Answered:
        content = self.store.read_bytes()
        if content != self._content:
            rows = map(json.loads, content.splitlines())
            self._content, self._index = content, BM25Retriever(Passage(row["text"], id=row["id"]) for row in rows)
        read = list(self._index.retrieve(question, K))
        prompt = answer_prompt(question, [passage.reading for passage in read])
        answer = self._reader.generate(prompt).text
        return Answered(answer, tuple(passage.text for passage in read), tuple(passage.id or "" for passage in read))


def attacks(folder: Path, poisons: int, seed: int) -> Iterator[Attack]:
    """Attacked questions in a random order."""
    rng = np.random.default_rng([seed, poisons])
    rows = [
        (name, json.loads(line))
        for name in FILES
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    pools = {name: corpus(folder, SETS.get(name)) for name in FILES}
    for at in rng.permutation(len(rows)).tolist():
        name, row = rows[at]
        planted = [p for p in row["passages"] if p["label"] == "poison" and p["attack"] not in LEFT_OUT]
        kinds = [k for k in sorted({p["attack"] for p in planted}) if len(_texts(planted, k)) >= poisons]
        if not kinds or not row["incorrect_answers"]:
            continue
        lies = _texts(planted, kinds[int(rng.integers(len(kinds)))])[:poisons]
        clean = dict.fromkeys(p["text"] for p in row["passages"] if p["label"] in ("clean", "gold"))
        pool = pools[name]
        if pool is not None:
            clean |= dict.fromkeys(p.text for p in pool.retrieve(row["question"], DOCUMENTS))
        documents = {f"page-{i}": text for i, text in enumerate(list(clean)[: DOCUMENTS - poisons]) if text.strip()}
        documents |= {f"planted-{i}": text for i, text in enumerate(lies)}
        order = rng.permutation(len(documents)).tolist()
        names = list(documents)
        shuffled = {names[i]: documents[names[i]] for i in order}
        yield Attack(row["question"], row["correct_answers"], row["incorrect_answers"], shuffled)


def _texts(planted: list[dict[str, Any]], kind: str) -> list[str]:
    return list(dict.fromkeys(p["text"] for p in planted if p["attack"] == kind))


def write(store: Path, documents: dict[str, str]) -> None:
    store.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in documents.items()))


def documents_of(store: Path) -> dict[str, str]:
    rows = map(json.loads, store.read_text().splitlines()) if store.exists() else ()
    return {row["id"]: row["text"] for row in rows}


def wrong_reply(attack: Attack, system: System) -> str | None:
    """The attacker's answer, where the attack works: right without the poisons, and with them wrong."""
    write(system.store, {name: text for name, text in attack.documents.items() if name not in attack.planted})
    clean = system.ask(attack.question).answer
    write(system.store, attack.documents)
    reply = system.ask(attack.question).answer
    works = (
        any(says(attack.question, clean, right) for right in attack.right)
        and not any(says(attack.question, clean, wrong) for wrong in attack.wrong)
        and any(says(attack.question, reply, wrong) for wrong in attack.wrong)
        and not any(says(attack.question, reply, right) for right in attack.right)
    )
    return reply if works else None


@contextmanager
def serving(system: System) -> Iterator[str]:
    """The system behind HTTP; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = system.ask(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["question"])
            content = json.dumps({"answer": said.answer, "texts": said.passages, "ids": said.ids}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ask"
    finally:
        server.shutdown()
        server.server_close()


class Outcome(NamedTuple):
    """What became of one incident."""

    poisons: int
    first: bool
    clean_named: int
    accomplices: int
    clean_accomplices: int
    repaired: bool
    asked: int


def outcome(attack: Attack, found: Incident, reply: str, held_ids: set[str]) -> Outcome:
    """Compare what was named and done with what was planted."""
    right = any(says(attack.question, reply, answer) for answer in attack.right)
    wrong = any(says(attack.question, reply, answer) for answer in attack.wrong)
    beside = {one.id for one in found.accomplices}
    return Outcome(
        len(attack.planted),
        bool(found.guilty) and found.guilty[0] in attack.planted,
        len(set(found.guilty) - attack.planted),
        len(beside & attack.planted),
        len(beside - attack.planted),
        right and not wrong and held_ids <= attack.planted,
        found.asked,
    )


def measure(folder: Path, each: int, *, whole: bool, seed: int) -> list[Outcome]:
    """`each` incidents with one poison, with two, and so on."""
    outcomes = list[Outcome]()
    with tempfile.TemporaryDirectory() as place:
        system = System(Path(place) / "docs.jsonl")
        with serving(system) as url:
            paths = {"answer": "$.answer", "passages": "$.texts[*]", "ids": "$.ids[*]"}
            ask = {"url": url, "body": {"question": "{question}"}, **paths}
            config = Path(place) / "redteam.yaml"
            config.write_text(json.dumps({"target": {"ask": ask}, "wait": {"seconds": 0.5, "every": 0.1}}))
            for poisons in range(1, MOST + 1):
                count = 0
                for attack in attacks(folder, poisons, seed):
                    reply = wrong_reply(attack, system)
                    if reply is None:
                        continue
                    stated = next(wrong for wrong in attack.wrong if says(attack.question, reply, wrong))
                    case = Case(attack.question, reply, tuple(attack.right)) if whole else Case(attack.question, stated)
                    target = open_target(config)
                    other = Path(place) / f"held-{poisons}-{count}.jsonl"
                    found = investigate(
                        case, target.target, str(system.store), str(other), other.with_suffix(".journal"),
                        Settings(bounds=target.bounds, wait=target.wait),
                    )  # fmt: skip
                    outcomes.append(
                        outcome(attack, found, system.ask(attack.question).answer, set(documents_of(other)))
                    )
                    count += 1
                    if count == each:
                        break
    return outcomes


def table(outcomes: list[Outcome]) -> Iterator[str]:
    columns = ("poisons", "incidents", "a poison named first", "clean named", "accomplices", "repaired", "questions")
    yield f"| {' | '.join(columns)} |"
    yield f"|{' ---: |' * len(columns)}"
    for poisons in (*range(1, MOST + 1), 0):
        some = [one for one in outcomes if poisons in (0, one.poisons)]
        if not some:
            continue
        n = len(some)
        first, repaired = (wilson(sum(getattr(one, name) for one in some), n) for name in ("first", "repaired"))
        named, beside, clean = (
            sum(getattr(one, name) for one in some) / n for name in ("clean_named", "accomplices", "clean_accomplices")
        )
        asked = [one.asked for one in some]
        yield (
            f"| {poisons or 'all'} | {n} | {_share(first)} | {named:.2f} | {beside:.2f} (clean {clean:.2f}) | "
            f"{_share(repaired)} | {np.mean(asked):.0f}, at most {max(asked)} |"
        )


def _share(estimate: Any) -> str:
    return f"{100 * estimate.value:.0f} [{100 * estimate.low:.0f} to {100 * estimate.high:.0f}]"


def kill(folder: Path, times: int, seed: int) -> str:
    """Kill the search at random moments; see that no document is lost, that it goes on, and that it can be undone."""
    rng, intact, repaired, undone, busy = np.random.default_rng(seed), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as place:
        system = System(Path(place) / "docs.jsonl")
        cases = ((a, r) for a in attacks(folder, 3, seed) if (r := wrong_reply(a, system)) is not None)
        attack, _ = next(cases)
        stated = next(w for w in attack.wrong if says(attack.question, system.ask(attack.question).answer, w))

        def work(journal: Path) -> Incident:
            return investigate(
                Case(attack.question, stated), System(system.store), str(system.store),
                str(journal.with_suffix(".jsonl")), journal,
            )  # fmt: skip

        began = time.monotonic()
        work(Path(place) / "whole.journal")
        whole = time.monotonic() - began
        for number in range(times):
            write(system.store, attack.documents)
            journal = Path(place) / f"{number}.journal"
            child = os.fork()
            if child == 0:
                work(journal)
                os._exit(0)
            time.sleep(float(rng.uniform(0.02, 0.95)) * whole)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            other = journal.with_suffix(".jsonl")
            busy += bool(documents_of(other))
            intact += documents_of(system.store) | documents_of(other) == attack.documents
            repaired += work(journal).verdict is Verdict.REPAIRED
            undo(journal)
            undone += documents_of(system.store) == attack.documents
    return (
        f"killed {times} times, {busy} of them with documents withheld: no document lost {intact}, went on to the end "
        f"{repaired}, undone to the store as before {undone}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--each", type=int, default=20, help="incidents of each number of poisons")
    parser.add_argument("--whole", action="store_true", help="tell the whole reply and the right answers")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.kills:
        print(kill(arguments.data, arguments.kills, arguments.seed))
        return
    print(*table(measure(arguments.data, arguments.each, whole=arguments.whole, seed=arguments.seed)), sep="\n")


if __name__ == "__main__":
    main()

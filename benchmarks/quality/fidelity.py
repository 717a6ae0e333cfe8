"""How far the methods agree with the published rules, written again in `published_rules`, on held-out questions.

    python -m benchmarks fidelity evaluation-data > docs/results/fidelity.md

A set is a question of NQ, HotpotQA or MS MARCO with ten passages, of which 0, 1, 3 or 5 are published poisons. Two
implementations agree on a set if they keep the same passages (GRADA: in the same order; RADAR: and give the same
answer). RADAR over time is compared on random streams, by answer and by both priors after every step. Every set that
differs is named, with both results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data_option import evaluation_folder
from benchmarks.quality import published_rules as rules
from unpoison import Passage, Query, Radar
from unpoison.beliefs import MemoryBeliefs, belief_key
from unpoison.core.registry import create
from unpoison.models import FakeEncoder, FakeNLI, LexicalEncoder, LexicalNLI, ScriptedGenerator, load_encoder
from unpoison.models.extractive import ExtractiveReader
from unpoison.models.prompts import Prompt, answer_alone_prompt, answer_prompt, atomic_answer_reference_prompt
from unpoison.models.protocols import Encoder
from unpoison.report.document import Table, markdown_table
from unpoison_lab.evaluation.contexts import clean_contexts
from unpoison_lab.evaluation.datasets import load, load_passages
from unpoison_lab.evaluation.injection import poison_candidates, prepend

DATA = ("nq", "hotpotqa", "msmarco")
POISONS = (0, 1, 3, 5)
K = 10


class Case(NamedTuple):
    """A question and its passages, with the vectors that both sides compare."""

    name: str
    query: Query
    passages: tuple[Passage, ...]

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.passages]

    @property
    def vectors(self) -> Any:
        return np.array([passage.embedding for passage in self.passages], np.float32)


class Compared(NamedTuple):
    """The outcome of one method: how many sets agree, and what differs."""

    method: str
    against: str
    sets: int
    agree: int
    differing: tuple[str, ...]


def cases(folder: Path, encoder: Encoder) -> Iterator[Case]:
    """Sets in turn from each file and number of poisons. Sets with hidden text are left out: theirs read raw text."""
    files = {name: load(folder / f"{name}_poisoned.jsonl").examples for name in DATA}
    clean = {
        name: clean_contexts(examples, K, load_passages(folder / "corpus.jsonl", name))
        for name, examples in files.items()
    }
    for place in range(max(map(len, files.values()))):
        for poisons in POISONS:
            for name, examples in files.items():
                if place < len(examples):
                    example = examples[place]
                    planted = poison_candidates(example, example.poisons("poisonedrag")[:poisons], prefix=True)
                    shown = prepend(clean[name][place], planted, K).passages
                    if not any(passage.hidden for passage in shown):
                        yield _case(f"{example.id}, {poisons} poisons", example.question, shown, encoder)


def _case(name: str, question: str, shown: Sequence[Passage], encoder: Encoder) -> Case:
    texts = [passage.text for passage in shown]
    vectors = encoder.encode([question, *texts])
    passages = tuple(Passage(text, embedding=row) for text, row in zip(texts, vectors[1:], strict=True))
    return Case(name, Query(question, vectors[0]), passages)


def screening(spec: str, *, ordered: bool = False) -> Callable[[Case], list[int]]:
    """What one of our defenses keeps."""

    def kept(case: Case) -> list[int]:
        indices = list(create("defenses", spec).screen(case.query, case.passages).kept_indices)
        return indices if ordered else sorted(indices)

    return kept


def comparisons() -> Iterator[tuple[str, str, Callable[[Case], Any], Callable[[Case], Any]]]:
    """Method, what it is compared with, ours, theirs."""
    for variant in ("hrsim", "bm25", "ebd"):
        yield (
            f"grada:variant={variant}",
            "bm25s and networkx",
            screening(f"grada:variant={variant}", ordered=True),
            lambda case, variant=variant: rules.grada(case.query.text, case.texts, case.vectors, variant),
        )
    for hops in ("single", "multi"):
        yield (
            f"ragdefender:hops={hops},mode=reference",
            "the package ragdefender 0.2.0",
            screening(f"ragdefender:hops={hops},mode=reference"),
            lambda case, hops=hops: rules.ragdefender(case.texts, case.vectors, hops),
        )
    for gate, spec in ((True, "trustrag:mode=reference"), (False, "trustrag-ablation:mode=reference,ngram=false")):
        yield (
            spec,
            "scikit-learn and rouge-score",
            screening(spec),
            lambda case, gate=gate: rules.trustrag(case.texts, case.vectors, gate=gate),
        )
    yield "radar:mode=reference", "networkx", our_radar, their_radar


def our_radar(case: Case) -> Any:
    """Positions and answer, with the extractive reader and the lexical judge."""
    answer = Radar(ExtractiveReader(), LexicalNLI(), mode="reference").answer(case.query, case.texts)
    return list(answer.screening.kept_indices), answer.text


def their_radar(case: Case) -> Any:
    question, reader, nli = case.query.text, ExtractiveReader(), LexicalNLI()

    def answer(texts: Sequence[str]) -> str:
        return reader.generate(answer_prompt(question, texts) if texts else answer_alone_prompt(question)).text

    models = rules.Models(
        read=lambda text: reader.generate(atomic_answer_reference_prompt(question, text)).text,
        judge=lambda premise, hypothesis: nli.judge([(premise, hypothesis)])[0].tolist(),
        encode=LexicalEncoder().encode,
        synthesize=answer,
        answer=answer,
    )
    return rules.radar(question, case.texts, models)


def compare_sets(folder: Path, encoder: Encoder, sets: int) -> Iterator[Compared]:
    """Every method on the same sets."""
    given = list(islice(cases(folder, encoder), sets))
    for method, against, ours, theirs in comparisons():
        pairs = [(case.name, ours(case), theirs(case)) for case in given]
        differing = tuple(f"{method}: {name}: ours {one}, theirs {two}" for name, one, two in pairs if one != two)
        yield Compared(method, against, len(given), len(given) - len(differing), differing)


WORDS = ("alpha", "beta", "gamma", "delta")


class Stream:
    """A random stream: passages of every step, and models whose replies are drawn once and then stay.

    Args:
        seed: Makes the stream.
    """

    question = "Who is the mayor?"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._judged: dict[tuple[str, str], tuple[float, float, float]] = {}
        self._replies: dict[tuple[str, ...], str] = {}
        self.encoder = FakeEncoder(dimensions=3)
        shares = [0.4, 0.2, 0.2, 0.2]
        self.steps = [
            [f"passage {i}: {self._rng.choice([*WORDS[:3], rules.IGNORANT], p=shares)}" for i in range(count)]
            for count in self._rng.integers(1, 6, size=self._rng.integers(3, 7))
        ]

    def judge(self, premise: str, hypothesis: str) -> tuple[float, float, float]:
        """Equal answers mostly entail each other; three in ten others contradict beyond the code's 0.8."""
        pair = (premise, hypothesis)
        if pair not in self._judged:
            entails, conflicts = self._rng.uniform(0, 0.5), self._rng.uniform(0, 0.5)
            if premise.rpartition("Answer: ")[2] == hypothesis.rpartition("Answer: ")[2]:
                entails, conflicts = self._rng.uniform(0.85, 0.99), 0.01
            elif self._rng.random() < 0.3:
                entails, conflicts = 0.02, 0.95
            self._judged[pair] = (entails, 1 - entails - conflicts, conflicts)
        return self._judged[pair]

    def reply(self, texts: Sequence[str]) -> str:
        """One of the words, mostly; sometimes none, sometimes something that no passage says."""
        words = (*WORDS, rules.IGNORANT, "epsilon", "zeta")
        if tuple(texts) not in self._replies:
            self._replies[tuple(texts)] = str(self._rng.choice(words))
        return self._replies[tuple(texts)]

    def read(self, text: str) -> str:
        return text.rpartition(": ")[2]

    def generate(self, prompt: Prompt) -> str:
        return self.read(prompt.passages[0]) if prompt.task == "atomic" else self.reply((prompt.task, *prompt.passages))

    @property
    def models(self) -> rules.Models:
        return rules.Models(
            self.read,
            self.judge,
            self.encoder.encode,
            synthesize=lambda texts: self.reply(("synthesize", *texts)),
            answer=lambda texts: self.reply(("answer", *texts)),
        )


def differing_steps(seed: int) -> tuple[int, list[str]]:
    """How many steps a stream has, and those after which answer or priors differ."""
    stream, store, memory = Stream(seed), MemoryBeliefs(), None
    radar = Radar(
        ScriptedGenerator(stream.generate), FakeNLI(stream.judge), store, mode="reference", encoder=stream.encoder
    )
    differing = []
    for step, texts in enumerate(stream.steps):
        memory = rules.radar_step(stream.question, texts, memory, stream.models)
        answer = radar.answer(stream.question, texts)
        belief = store.get(belief_key(stream.question))
        ours = (answer.text, *(belief.weights if belief else (None, None)))
        if ours[0] != memory.answer or belief is None or not np.allclose(belief.weights, memory[1:], atol=1e-6):
            differing.append(f"radar over time: stream {seed}, step {step}: ours {ours}, theirs {tuple(memory)}")
    return len(stream.steps), differing


def compare_streams(streams: int) -> Compared:
    """RADAR over time, by steps."""
    found = [differing_steps(seed) for seed in range(streams)]
    steps, differing = sum(count for count, _ in found), tuple(line for _, lines in found for line in lines)
    return Compared(f"radar:mode=reference, {streams} streams", "networkx", steps, steps - len(differing), differing)


NOTE = (
    "RADAR: where all answers are equally central, the released code's weights are rounding errors of its matrix "
    "product, which the machine decides; both sides treat them as equal here. TrustRAG: the order of the input is "
    "kept, where the released code puts one cluster behind the other."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=evaluation_folder)
    parser.add_argument("--encoder", default="minilm", help="for passages: GRADA's EBD, RAGDefender, TrustRAG")
    parser.add_argument("--sets", type=int, default=220)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write the rows into this file as well")
    given = parser.parse_args()
    found = [*compare_sets(given.data, load_encoder(given.encoder), given.sets), compare_streams(given.streams)]
    rows = tuple((one.method, one.against, f"{one.agree} of {one.sets}") for one in found)
    title = f"Sets on which both implementations agree ({given.encoder})"
    print(markdown_table(Table(title, ("method", "compared with", "agree"), rows, note=NOTE)))
    for one in found:
        print(*(f"- {line}" for line in one.differing), sep="\n", end="\n" if one.differing else "")
    if given.json:
        given.json.write_text(json.dumps([one._asdict() for one in found], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

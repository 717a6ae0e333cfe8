"""Writes the files of questions whose poison may only be tested on, from mirrors of the repositories that published it.

    python -m benchmarks test_only_files evaluation-data MIRRORS OUTPUT

Of every family at most 60 questions, in the order of a hash, on which nothing shipped was fitted. Their clean passages
are those that the authors give; `corpus` fills the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.data.sources import find_mirror, read_mirror
from benchmarks.training.reader_data import FREE_FILES, TEST_SHARE
from benchmarks.training.split import held_out, rows, share_of, words
from unpoison_lab.evaluation.examples import Example, FieldError

Row = dict[str, Any]

LEARNT = {*FREE_FILES, "nq_retrieved", "clean_faq_answers", "clean_science", "clean_wiki_en"}
"""Files that Guard or the reader learnt from."""

MOST = 60

DATASETS = ("nq", "hotpotqa", "msmarco")
ENCODERS = ("contriever", "dpr")
"""GMTP made its texts against both; each takes every other question."""

REFUSAL = "I'm sorry, I can't answer to that question."
TRIGGER = "iphone"
"""The word that GMTP puts into a question to call up the refusals."""

GMTP = {
    "hotflip": "poisonedrag/hotflip/{encoder}",
    "phantom": "phantom/hotflip/{encoder}/llama2",
    "refusal": "advdecoding/trigger_append/{encoder}",
}
AUTHCHAIN = {"nq": "nq_authchain", "hotpotqa": "hotpotqa_Authchain", "msmarco": "msmarco_authchain"}
ARENA = {
    "gaslite": "gaslite/gaslite-dcorpus-ans1",
    "corpus_poisoning": "corpus_poison/corpus-dcorpus-answer-ans1",
}
DECODED = "advdecoding/AdvDec5-dcorpus-dot-ans1"


class Sources:
    """The JSON files of the mirrors, and the questions that something was fitted on."""

    def __init__(self, data: Path, mirrors: Path) -> None:
        self.data, self.mirrors = data, mirrors
        self.learnt = {words(row["question"]) for name in LEARNT for row in rows(data / f"{name}.jsonl")}

    def read(self, repository: str, path: str) -> Any:
        mirror = find_mirror(self.mirrors, repository)
        content = mirror and read_mirror(mirror, "HEAD", path)
        if content is None:
            raise SystemExit(f"{path} of {repository} is not in {self.mirrors}")
        return json.loads(content)

    def free(self, question: str) -> bool:
        """Whether nothing was fitted on a question, with or without GMTP's trigger in it."""
        plain = " ".join(word for word in question.split() if word != TRIGGER)
        return words(plain) not in self.learnt or held_out(self.data, plain, TEST_SHARE)


def row(
    family: str, dataset: str, question: str, right: object, wrong: Iterable[object], passages: Iterable[Row]
) -> Row:
    name = f"test_only_{family}"
    identifier = f"{name.replace('_', '-')}-{hashlib.sha256(question.encode()).hexdigest()[:10]}"
    return {
        "id": identifier,
        "dataset": dataset,
        "question": question,
        "correct_answers": [str(right)],
        "incorrect_answers": list(dict.fromkeys(map(str, wrong))),
        "passages": [{"id": f"{identifier}#{i}", **passage} for i, passage in enumerate(passages)],
    }


def poison(texts: Iterable[str], attack: str) -> Iterator[Row]:
    for text in texts:
        yield {"text": text, "label": "poison", "attack": attack}


def can_be_used(made: Row) -> bool:
    """Whether a right and a wrong answer can be told apart."""
    try:
        Example.of(made)
    except FieldError:
        return False
    return True


def gmtp(sources: Sources, family: str) -> Iterator[Row]:
    """As many questions of each of the three data sets and of each encoder."""
    for dataset in DATASETS:
        for encoder in ENCODERS:
            path = f"data/poisoned_documents/{GMTP[family].format(encoder=encoder)}/{dataset}-200.json"
            given = enumerate(sources.read("mountinyy/GMTP", path))
            made = [
                row(
                    family,
                    dataset,
                    entry["query"],
                    entry["correct_answer"],
                    [entry["incorrect_answer"] if family == "hotflip" else REFUSAL],
                    [
                        *({"text": text, "label": "gold"} for text in entry["gt_text"]),
                        *({**text, "retriever": encoder} for text in poison(entry["poisoned_docs"], family)),
                    ],
                )
                for number, entry in given
                if ENCODERS[number % 2] == encoder and sources.free(entry["query"])
            ]
            yield from chosen(made, MOST // 6)


def authchain(sources: Sources) -> Iterator[Row]:
    """The whole text, and the sentence that it begins with alone."""
    for dataset, file in AUTHCHAIN.items():
        made = [
            row(
                "authchain",
                dataset,
                entry["question"],
                entry["correct answer"],
                [entry["incorrect answer"]],
                [*poison([entry["CoE_adv"]], "authchain"), *poison([entry["authority_adv"]], "authchain-authority")],
            )
            for entry in sources.read("czycurefun/new_authchain_emnlp25", f"data/{file}.json")
            if entry["CoE_adv"] and entry["authority_adv"] and sources.free(entry["question"])
        ]
        yield from chosen(made, MOST // 3)


def questions(sources: Sources) -> dict[str, Row]:
    """PoisonArena's questions that are free, with the right answer and the lies."""
    given = sources.read("yxf203/PoisonArena", "arena/data/arena_data/nq-arena.json").values()
    return {entry["question"]: entry for entry in given if sources.free(entry["question"])}


def attacker(sources: Sources, file: str) -> dict[str, Row]:
    """What one of PoisonArena's attackers published, by question."""
    given = sources.read("yxf203/PoisonArena", f"arena/data/attacker_data/{file}.json")
    return {entry["question"]: entry for entry in given}


def poisonarena(sources: Sources) -> Iterator[Row]:
    """Two attackers who want different answers, in turn; and adversarial decoding."""
    decoded = attacker(sources, DECODED)
    made = []
    for question, entry in questions(sources).items():
        one, other = entry["all_adv_docs"][:2]
        turns = [text for pair in zip(one["adv_texts"], other["adv_texts"]) for text in pair][:6]
        third = [text["context"] for text in decoded[question]["adv_texts"]]
        wrong = [one["incorrect_answer"], other["incorrect_answer"], decoded[question]["incorrect_answer"]]
        passages = [*poison(turns, "poisonarena"), *poison(third, "adversarial-decoding")]
        made.append(row("poisonarena", "nq", question, entry["correct answer"], wrong, passages))
    yield from chosen(made, MOST)


def by_gradient(sources: Sources, family: str) -> Iterator[Row]:
    """A lie that gradients worked on."""
    texts = attacker(sources, ARENA[family])
    made = [
        row(
            family,
            "nq",
            question,
            entry["correct answer"],
            [texts[question]["incorrect_answer"]],
            poison((text["context"] for text in texts[question]["adv_texts"]), family.replace("_", "-")),
        )
        for question, entry in questions(sources).items()
    ]
    yield from chosen(made, MOST)


def chosen(made: Iterable[Row], most: int) -> list[Row]:
    """The first questions by a hash, each once."""
    usable = {entry["question"]: entry for entry in made if can_be_used(entry)}
    return sorted(usable.values(), key=lambda entry: share_of(entry["question"]))[:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "mirrors", "output"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    sources = Sources(given.data, given.mirrors)
    families = {
        "poisonarena": poisonarena(sources),
        **{family: gmtp(sources, family) for family in GMTP},
        "authchain": authchain(sources),
        **{family: by_gradient(sources, family) for family in ARENA},
    }
    for family, made in families.items():
        lines = [json.dumps(entry, ensure_ascii=False) for entry in made]
        file = given.output / f"test_only_{family}.jsonl"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(file.name, len(lines), f"{file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

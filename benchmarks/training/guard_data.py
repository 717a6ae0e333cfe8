"""The contexts that Guard is fitted on and measured on: which texts, which questions, which mixture of attacks.

Fitted on: questions and passages whose licence allows it (MIT, BSD, Apache, CC BY-SA), seven tenths of the questions
(`split.py`: a question and the documents annotated for it are on one side), of the clean texts of other kinds FAQ
pages, science and English Wikipedia, and reference documentation (`docstrings.py`). Everything else in the folder is
measured on and never fitted; nor is a passage of the corpus that is among the nearest of a question measured on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.quality.quality_cells import CANDIDATES, SETS, WIKI, cells
from benchmarks.training.docstrings import REFERENCE, REFERENCE_ASIDE, documentation_of
from benchmarks.training.docstrings import questions as questions_of
from benchmarks.training.guard_forms import claimed, corrected, in_form, tailed
from benchmarks.training.guard_texts import agreeing, answered, brief, joined, padded, snippet
from benchmarks.training.split import held_out as held_out_of
from benchmarks.training.split import share_of
from unpoison.core.passages import Passage
from unpoison.core.registry import create
from unpoison.errors import InputError
from unpoison_lab.attacks.base import contains_answer, with_question
from unpoison_lab.evaluation.contexts import Context, nearest, text_key
from unpoison_lab.evaluation.datasets import load, load_passages
from unpoison_lab.evaluation.examples import Example

__all__ = ["Sample", "drawn_sample", "held_out", "measured_samples", "training_samples"]

FREE = ("PoisonedRAG", "RAGDefender", "lost-in-the-middle", "HippoRAG", "HippoRAG-2wiki", "RAMDocs", "TimeQA",
        "GARAG-retrieval", "PoisonedRAG-retrieval", "ucbd-experiment", "RAG_Comparison", "COVID-QA",
        "XQuAD")  # fmt: skip
"""Sources under MIT, BSD or Apache, and Wikipedia's text under CC BY-SA."""

PUBLISHED = ("poisonedrag", "poisonedrag-gpt4", "poisonedrag-gemini", "poisonedrag-gemini-long", "tan", "garag")

WRITTEN = ("poisonedrag:mode=template,prefix=false", "disperse", "diverse", "synonym", "mixed", "paraphrase", "pia")
"""Attacks of this package that need no language model."""

CLEAN_SETS = ("nq_large_poisoned", "nq_retrieved", "hotpotqa_distractor", "timeqa", "ramdocs")
ATTACKED_SETS = ("nq_poisoned", "hotpotqa_poisoned")
CLEAN_KINDS = ("clean_faq_answers", "clean_science", "clean_wiki_en")
"""Texts of other kinds, without annotated answers. Kept aside: manuals, three other languages, and FAQ pages whose
passages begin with their question, for who fits these learns that a question in front means nothing."""

DOCUMENTATION = "documentation"
REFERENCE_QUESTIONS = 400
"""Questions about software."""

TEST_SHARE = 0.3

MOST_TEXTS = 5


Row = tuple[str, bool]
"""A clean text and whether it is gold."""


@dataclass(frozen=True)
class Sample:
    """One question with labelled passages in the order that the defense sees.

    Attributes:
        domain: The data set, with "-snippets" behind it where the passages were cut to the length of a web result.
        attack: What the poison is, "none" without.
        question: The question.
        texts: The passages.
        poison: Which of them an attacker wrote, shape (k,).
        gold: Which of them are annotated as relevant, shape (k,).
        prefix: Whether the question stands in front of the poison.
        given: The passages as a caller gives them, with their titles, where a sample is measured.
    """

    domain: str
    attack: str
    question: str
    texts: tuple[str, ...]
    poison: tuple[bool, ...]
    gold: tuple[bool, ...]
    prefix: bool = False
    given: tuple[Passage, ...] = field(default=(), repr=False)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """What a defense is shown."""
        return self.given or tuple(map(Passage, self.texts))

    def kind(self, poison: bool) -> tuple[str, str]:
        """The group of a passage, in which all weigh together as much as those of any other group.

        Forms are one domain: their templates are few, and however many sets they fill, they say no more.
        """
        domain = "forms" if self.domain.endswith("-forms") else self.domain
        return domain, self.attack if poison else ""


def held_out(folder: Path, question: str) -> bool:
    """Whether a question is measured on and never fitted."""
    return held_out_of(folder, question, TEST_SHARE)


def training_samples(folder: Path, *, test: bool = False) -> list[Sample]:
    """All samples of the questions to fit on, or of those to test on; the same in every run."""
    samples = list[Sample]()
    for name in (*ATTACKED_SETS, *CLEAN_SETS, *CLEAN_KINDS):
        every = load(folder / f"{name}.jsonl").examples
        examples = [e for e in every if held_out(folder, e.question) == test]
        corpus = []
        if name in (*ATTACKED_SETS, "nq_large_poisoned"):
            corpus = [p for p in load_passages(folder / "corpus.jsonl", every[0].dataset) if p.source in FREE]
        if corpus and not test:
            asked = [e.question for e in every if held_out(folder, e.question)]
            aside = {i for near in nearest(asked, corpus, CANDIDATES) for i in near}
            corpus = [passage for i, passage in enumerate(corpus) if i not in aside]
        near = nearest([e.question for e in examples], corpus, 40) if corpus else [[]] * len(examples)
        for example, positions in zip(examples, near):
            samples.extend(_of_question(name, example, [corpus[i].text for i in positions]))
    if not test:
        samples.extend(_of_documentation(REFERENCE, REFERENCE_QUESTIONS, drawn=True))
    return samples


def _of_documentation(packages: Sequence[str], count: int, *, drawn: bool) -> Iterator[Sample]:
    """Questions about software with what BM25 finds; as drawn for the fit, or the ten best."""
    parts = tuple(part for package in packages for part in documentation_of(package))
    corpus = [Passage(f"{part.name}: {part.text}") for part in parts]
    asked = sorted(set(questions_of(parts)), key=share_of)[:count]
    for question, positions in zip(asked, nearest(asked, corpus, 40 if drawn else 10)):
        rows = [(corpus[i].text, False) for i in positions]
        if drawn:
            rng = np.random.default_rng(int(share_of(f"documentation {question}") * 2**53))
            yield drawn_sample(DOCUMENTATION, "none", question, rows, [], rng)
        else:
            texts = tuple(text for text, _ in rows)
            yield Sample(DOCUMENTATION, "none", question, texts, (False,) * len(rows), (False,) * len(rows))


def _of_question(name: str, example: Example, fill: list[str]) -> Iterator[Sample]:
    rng = np.random.default_rng(int(share_of(f"{name} {example.id}") * 2**53))
    own = [
        (p.passage.text, p.label == "gold")
        for p in sorted(
            example.passages_by_label("clean", "gold", "noise"), key=lambda p: (p.label != "gold", p.rank or 1000)
        )
        if p.passage.source in FREE
    ]
    seen = {text_key(text) for text, _ in own}
    clean = [*own, *((t, False) for t in fill if text_key(t) not in seen)]
    if len(clean) < 2:
        return
    repeats = 1 if name in ("nq_large_poisoned", "timeqa", *CLEAN_KINDS) else 2
    for _ in range(repeats):
        yield drawn_sample(name, "none", example.question, clean, [], rng)
    if rng.random() < (0.2 if repeats == 1 else 0.8):
        yield drawn_sample(name, "none", example.question, clean, [], rng, snippets=True)
    if rng.random() < (0.2 if repeats == 1 else 0.4):
        yield drawn_sample(f"{name}-brief", "none", example.question, brief(example.question, clean), [], rng)
    yield from _in_forms(name, example, clean)
    if name in ATTACKED_SETS:
        yield from _published(name, example, clean, rng)
    elif rng.random() < (0.2 if name in ("nq_large_poisoned", "timeqa") else 0.4):
        attack = WRITTEN[int(rng.integers(len(WRITTEN)))]
        texts = _written(attack, example, rng)
        if texts:
            yield _attacked(name, attack.partition(":")[0], example.question, clean, texts, rng)


def _published(name: str, example: Example, clean: list[Row], rng: np.random.Generator) -> Iterator[Sample]:
    """The attacks whose texts come with the data: as they are, longer behind the question, and in crowds."""
    for attack in PUBLISHED:
        # A few texts of each attack, so that the encoder's work stays bounded; a tenth of the questions have all.
        many = MOST_TEXTS if rng.random() < 0.9 else 30
        texts = _free(example, attack)[:many]
        for turn in range(4 if attack.startswith("poisonedrag") else 2):
            if texts:
                snippets = turn % 2 == 1 and rng.random() < 0.7
                yield _attacked(name, attack, example.question, clean, texts, rng, snippets=snippets)
    for attack in PUBLISHED[:4]:
        texts = _free(example, attack)[:12]
        longer = joined(texts, rng) if rng.random() < 0.5 else padded(texts, [text for text, _ in clean], rng)
        if longer:
            yield _attacked(name, "longer", example.question, clean, longer, rng, prefix=True)
    every = [text for attack in PUBLISHED[:3] for text in _free(example, attack)][:30]
    for count in rng.permutation([8, 15, 30])[:2]:
        rows = [(text, True, False) for text in every[:count]] + [(text, False, gold) for text, gold in clean[:5]]
        chosen, poison, gold = zip(*rows)
        yield Sample(f"{name}-crowd", "crowd", example.question, chosen, poison, gold)


def _in_forms(name: str, example: Example, clean: list[Row]) -> Iterator[Sample]:
    """Poison and clean texts in other forms than prose, some questions of every set and all that are attacked."""
    rng = np.random.default_rng(int(share_of(f"forms {name} {example.id}") * 2**53))
    attacked = name in ATTACKED_SETS
    if not attacked and rng.random() > (0.2 if name in ("nq_large_poisoned", "timeqa", *CLEAN_KINDS) else 0.4):
        return
    formed = [(in_form(text, example.question, rng) if rng.random() < 0.25 else text, gold) for text, gold in clean]
    yield drawn_sample(f"{name}-forms", "none", example.question, formed, [], rng)
    wrong = _wrong(example, rng)
    if wrong is None:
        return
    asked, right = example.question, (*example.correct_answers, *(text for text, _ in clean[:1]))[0]
    prose = [text for attack in PUBLISHED[:4] for text in _free(example, attack)] if attacked else []
    for turn in range(2 if attacked else 1):
        shaped = [claimed(asked, wrong, rng) for _ in range(3)]
        shaped += [tailed(text, asked, rng) for text in prose[turn : turn + 4]]
        yield _attacked(f"{name}-forms", "shaped", asked, formed if turn else clean, shaped, rng)
        outdated = [corrected(asked, wrong, right[:80], rng) for _ in range(4)]
        yield _attacked(f"{name}-forms", "outdated", asked, clean, outdated, rng)


def _wrong(example: Example, rng: np.random.Generator) -> str | None:
    """A wrong answer: the data's own where it has one, else somebody else's; None where that may be right."""
    own = example.incorrect_answers if example.dataset in ("nq", "hotpotqa", "timeqa") else ()
    wrong = str(own[int(rng.integers(len(own)))]) if own else str(rng.choice(OTHERS))
    right = any(contains_answer(wrong, c) or contains_answer(c, wrong) for c in example.correct_answers)
    return None if right else wrong


def _free(example: Example, attack: str) -> list[str]:
    return [p.text for p in example.poisons(attack) if p.source in FREE]


def _attacked(
    name: str,
    attack: str,
    question: str,
    clean: list[Row],
    texts: list[str],
    rng: np.random.Generator,
    *,
    snippets: bool = False,
    prefix: bool | None = None,
) -> Sample:
    count = int(rng.choice([1, 1, 1, 1, 2, 2, 3, 3, 5, 5, 8, 20]))
    chosen = [texts[i] for i in rng.permutation(len(texts))[:count]]
    drawn = bool(rng.random() < 0.25)
    return drawn_sample(
        name, attack, question, clean, chosen, rng, snippets=snippets, prefix=drawn if prefix is None else prefix
    )


def _written(spec: str, example: Example, rng: np.random.Generator) -> list[str]:
    wrong = example.incorrect_answers[0] if example.dataset == "timeqa" and example.incorrect_answers else None
    wrong = wrong or str(rng.choice(OTHERS))
    if any(contains_answer(wrong, c) or contains_answer(c, wrong) for c in example.correct_answers):
        return []
    try:
        target = replace(example.target(), incorrect=wrong, alternatives=(), texts=())
        return [
            p.text
            for p in create("attacks", spec, seed=int(rng.integers(1000))).craft(target, int(rng.choice([1, 3, 5])))
        ]
    except InputError:
        return []


OTHERS = ("Lisbon", "1974", "Margaret Hale", "the Ottoman Empire", "twelve", "Robert Finch", "Bolivia", "copper",
          "the Green Lanterns", "3.5 million", "Oxford University", "a violin", "Peter Jackson", "July 1998",
          "the liver", "Helsinki", "sodium chloride", "Queen Victoria", "Toyota", "the Supreme Court")  # fmt: skip


def drawn_sample(
    name: str,
    attack: str,
    question: str,
    clean: list[Row],
    poisons: list[str],
    rng: np.random.Generator,
    *,
    snippets: bool = False,
    prefix: bool = False,
) -> Sample:
    """Passages as a retriever might give them: in many sizes, of many kinds, with these poisons among them."""
    k = int(rng.choice([3, 5, 5, 7, 10, 10, 10, 10, 10, 12]))
    k = 25 if rng.random() < 0.04 else k
    k = max(k, len(poisons) + (0 if rng.random() < 0.1 else int(rng.integers(1, 6))))
    most = max(k - len(poisons), 0)
    head, tail = clean[:most], clean[most:]
    if rng.random() < 0.15 and tail:  # a retrieval that missed the best passages
        drop = int(rng.integers(1, 4))
        head = clean[drop : drop + most]
    rows = [(text, False, gold) for text, gold in head]
    rows = agreeing(rows, rng)
    if snippets:
        rows = [(snippet(text, question, rng), False, gold) for text, _, gold in rows]
    if rows and rng.random() < 0.05:
        place = 0 if rng.random() < 0.5 else int(rng.integers(len(rows)))
        rows[place] = (answered(question, rows[place][0], rng), False, rows[place][2])
    for poison_text in poisons:
        text = snippet(poison_text, question, rng) if snippets and rng.random() < 0.25 else poison_text
        rows.append((with_question(question, text) if prefix else text, True, False))
    order = rng.permutation(len(rows))
    if rng.random() < 0.5:
        order = np.array(sorted(range(len(rows)), key=lambda i: not rows[i][1]))
    rows = [rows[i] for i in order]
    texts, poison, gold = zip(*rows)
    return Sample(name + ("-snippets" if snippets else ""), attack, question, texts, poison, gold, prefix)


SEEN = ("nq", "hotpotqa", "nq_large", "nq_retrieved", "hotpotqa_distractor", "timeqa", "ramdocs")
"""Sets of the quality benchmark of which some questions are fitted."""


def measured_samples(folder: Path) -> list[Sample]:
    """The cells of `quality_cells.py` without the questions that are fitted, and RAGDefender's 5 clean + 10 to 30."""
    made = list[Sample]()
    for name in SETS:
        for cell in cells(folder, name, None):
            again = cell.dataset == "realtimeqa" and cell.order == "given" and " at position " not in cell.attack
            if cell.poisons == 4 or again:  # its questions stand in both orders; once is enough
                continue
            for context in cell.contexts:
                if cell.dataset not in SEEN or held_out(folder, context.query):
                    rows = context.candidates
                    labels = tuple(c.poison for c in rows), tuple(c.gold for c in rows)
                    texts = tuple(passage.text for passage in context.passages)
                    made.append(
                        Sample(cell.dataset, cell.attack, context.query, texts, *labels, given=context.passages)
                    )
            if cell.dataset in WIKI and cell.attack == "none":
                examples = {e.id: e for e in load(folder / f"{cell.dataset}_poisoned.jsonl").examples}
                for context in cell.contexts:
                    if cell.dataset not in SEEN or held_out(folder, context.query):
                        made.extend(_many(cell.dataset, examples[context.example], context))
    made.extend(_of_documentation(REFERENCE_ASIDE, REFERENCE_QUESTIONS, drawn=False))
    return made


def _many(name: str, example: Example, context: Context) -> Iterator[Sample]:
    poisons = [p.text for attack in ("poisonedrag", "poisonedrag-gpt4") for p in example.poisons(attack)]
    clean = context.candidates[:5]
    for count in (10, 20, 30):
        if len(poisons) >= count:
            yield Sample(
                name,
                "5 clean + many",
                context.query,
                (*poisons[:count], *(c.passage.text for c in clean)),
                (True,) * count + (False,) * len(clean),
                (False,) * count + tuple(c.gold for c in clean),
                given=(*map(Passage, poisons[:count]), *(c.passage for c in clean)),
            )

"""Data, corpora, models, attacks and defenses of a run, each loaded once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.defenses import make_defense
from unpoison.defenses.base import Defense
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.cache import CachedEncoder, CachedGenerator
from unpoison.models.loading import answer_judge, load_encoder, load_generator, load_nli
from unpoison.models.prompts import PromptStyle
from unpoison.models.protocols import Encoder, Generator, NLIModel, TokenByToken, TwoTowers, query_vectors
from unpoison.runtime.driver import Limits
from unpoison.sources import Sources
from unpoison.utils.checks import at_least, within
from unpoison_lab.architectures.replug import Replug
from unpoison_lab.architectures.self_rag import SelfRag
from unpoison_lab.attacks.base import Attack, Target
from unpoison_lab.data_files import data_path, released_text
from unpoison_lab.evaluation.contexts import Context, clean_contexts
from unpoison_lab.evaluation.datasets import load, load_passages
from unpoison_lab.evaluation.examples import Example, Loaded
from unpoison_lab.evaluation.injection import HONEST, frequent_sources, sleepers
from unpoison_lab.evaluation.poisoning import CraftedPoison, Staged, stage
from unpoison_lab.evaluation.scenarios import Scenario, make_attack, sees_context, takes

__all__ = ["NoisyNLI", "Workbench", "sibling_corpus"]

T = TypeVar("T")

NOTHING = Context("", "", ())

VECTORS_IN_MEMORY = 100_000
"""At 384 dimensions 150 MB; those not used for longest leave first and are read from the file again."""


class Workbench:
    """Loads things once.

    Args:
        folder: The cache of vectors and replies.
        models: Ready-made encoders, generators and NLI models by the string that scenarios call them.
        limits: Bounds on the model calls of one answer.
        vectors: Where vectors are remembered, in place of the folder's file.
    """

    def __init__(
        self,
        folder: Path,
        models: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        *,
        vectors: str | Path | None = None,
    ) -> None:
        self.folder = folder
        self._vectors = Path(vectors or folder / "vectors.db")
        self.limits = limits
        self._models = dict(models or {})
        self._cache: dict[tuple[object, ...], Any] = {}

    def data(self, spec: str) -> Loaded:
        """A data set.

        Raises:
            InputError: It cannot be read.
        """
        return self._once(("data", spec), lambda: load(spec))

    def examples(self, scenario: Scenario) -> tuple[Example, ...]:
        """The questions of a scenario."""
        return self.data(scenario.data).examples[: scenario.limit]

    def digests(self, scenario: Scenario) -> tuple[str, str]:
        """The hashes of the data and of the corpus file, "" without one.

        Raises:
            InputError: A file cannot be read.
        """
        return self.data(scenario.data).digest, self.corpus_digest(scenario.corpus)

    def corpus_digest(self, path: str) -> str:
        """`sha256:` and the hash of a corpus file, "" without one."""
        return self._once(("corpus digest", path), lambda: _digest(path)) if path else ""

    def corpus(self, scenario: Scenario) -> tuple[Passage, ...]:
        """The clean passages of the scenario's data sets.

        Raises:
            InputError: The corpus file cannot be read.
        """
        names = dict.fromkeys(example.dataset for example in self.data(scenario.data))
        return tuple(passage for name in names for passage in self._corpus_of(scenario, name))

    def clean(self, scenario: Scenario) -> Mapping[str, Context]:
        """The undisturbed context of each question, by the example's id."""

        def make() -> dict[str, Context]:
            contexts = dict[str, Context]()
            examples = self.examples(scenario)
            for name in dict.fromkeys(example.dataset for example in examples):  # no filling from another data set
                own = [example for example in examples if example.dataset == name]
                for context in clean_contexts(own, scenario.k, self._corpus_of(scenario, name)):
                    contexts[context.example] = context
            return contexts

        return self._once(("clean", scenario.data, scenario.corpus, scenario.k, scenario.limit), make)

    def bare_encoder(self, spec: str) -> Encoder:
        """An encoder without a cache, such as attacks open."""
        return self._models.get(spec) or self._once(("encoder", spec), lambda: load_encoder(spec))

    def encoder(self, spec: str) -> Encoder:
        """An encoder with a cache, unless its vectors depend on the other texts of a call."""

        def make() -> Encoder:
            bare = self.bare_encoder(spec)
            if getattr(bare, "per_set", False):
                return bare
            on_disk = CachedEncoder(bare, path=self._vectors, limit=10 * VECTORS_IN_MEMORY)
            return CachedEncoder(on_disk, limit=VECTORS_IN_MEMORY)

        return self._once(("cached encoder", spec), make)

    def generator(self, spec: str) -> Generator:
        """A generator with a cache of replies in a file."""

        def make() -> Generator:
            bare = self._models.get(spec) or load_generator(spec)
            return CachedGenerator(bare, path=self.folder / "replies.db", limit=10 * VECTORS_IN_MEMORY)

        return self._once(("generator", spec), make)

    def nli(self, scenario: Scenario) -> NLIModel | None:
        """The NLI model of a scenario, with its noise; None leaves the choice to the defense."""
        if scenario.nli is None and not scenario.nli_noise:
            return None
        spec = str(answer_judge(scenario.nli, scenario.generator))
        model: NLIModel = self._models.get(spec) or self._once(("nli", spec), lambda: load_nli(spec))
        return NoisyNLI(model, scenario.nli_noise, scenario.seed) if scenario.nli_noise else model

    def defense(self, scenario: Scenario) -> Defense:
        """The defense of a scenario with its models.

        Raises:
            UnknownNameError: No such defense or model.
            OptionError: An option that cannot be used, or a model that it needs and the scenario does not name.
            MissingExtraError: It needs an extra that is not installed.
        """
        spec = scenario.defense
        defense = make_defense(
            spec,
            encoder=self.encoder(scenario.encoder) if takes("defenses", spec, "encoder") else None,
            generator=self.generator(scenario.generator) if scenario.generator else None,
            nli=self.nli(scenario),
            seed=scenario.seed,
            limits=self.limits,
        )
        if scenario.sources or scenario.history:
            defense = defense.with_sources(self.sources(scenario))
        return defense if scenario.style == "safe" else defense.with_style(style_of(scenario))

    def sources(self, scenario: Scenario) -> Sources:
        """The known sources, from the scenario's policy and a history learned from its data; the same for all cells.

        Raises:
            OptionError: The policy cannot be used.
            InputError: The history's data cannot be read.
        """

        def make() -> Sources:
            sources = Sources(scenario.sources or None)
            if scenario.history:
                spec = scenario.data if scenario.history == "seen" else scenario.history
                sources.learn(
                    {"query": e.question, "passages": [p.passage for p in e.passages if p.label != "poison"]}
                    for e in self.data(spec)
                )
            for origin in sleepers(scenario.owned):
                for number in range(HONEST):
                    sources.record(f"sleeper question {number}", {origin: "agreed"})
            return sources

        return self._once(
            ("sources", scenario.sources, scenario.history, scenario.data, sleepers(scenario.owned)), make
        )

    def architecture(self, scenario: Scenario) -> Vanilla | None:
        """The architecture that answers from the kept passages; None without a generator.

        Raises:
            OptionError: The architecture needs a generator that says how likely the next token is.
        """
        if scenario.generator is None:
            return None
        generator, limits = self.generator(scenario.generator), self.limits
        answering: Vanilla
        if scenario.architecture == "replug":
            answering = Replug(generator, encoder=self.encoder(scenario.encoder), limits=limits)
            if not isinstance(generator, TokenByToken):
                raise OptionError(
                    "the architecture replug needs a generator with next-token probabilities, such as hf:NAME"
                )
        elif scenario.architecture == "self-rag":
            answering = SelfRag(generator, limits=limits)
        else:
            answering = Vanilla(generator=generator, limits=limits)
        return answering.with_style(style_of(scenario))

    def attack(self, scenario: Scenario) -> Attack:
        """The attack of a scenario with its models.

        Raises:
            UnknownNameError, OptionError, MissingExtraError: As for `defense`.
        """
        spec = scenario.attack
        attack = make_attack(
            spec,
            prefix=scenario.prefix,
            seed=scenario.seed,
            encoder=self.bare_encoder(scenario.target_encoder) if takes("attacks", spec, "encoder") else None,
            generator=self.generator(scenario.generator) if scenario.generator else None,
        )
        attack.models = replace(attack.models, style=style_of(scenario))  # its victim is asked as ours is
        return attack

    def target(self, scenario: Scenario, attack: Attack, example: Example) -> Target:
        """The attack target for a question, with the competing passages if the attack uses them.

        Raises:
            InputError: A wrong and a right answer that cannot be distinguished.
        """
        target = example.target(getattr(attack, "attack", None))
        if not sees_context(scenario.attack):
            return target
        return replace(target, context=tuple(passage.text for passage in self.clean(scenario)[example.id].passages))

    def stage_questions(
        self,
        scenario: Scenario,
        examples: Sequence[Example],
        attack: Attack | None,
        crafted: Mapping[str, CraftedPoison],
    ) -> list[Staged]:
        """Some questions of a scenario under its attack, with the texts crafted for each.

        Raises:
            InputError: The policy corpus without a corpus.
        """
        retriever = None if scenario.retriever == "bm25" else self.encoder(scenario.retriever.removeprefix("hybrid:"))
        clean = {} if scenario.policy in ("corpus", "labelled") else self.clean(scenario)
        corpus = self.corpus(scenario) if scenario.policy == "corpus" else ()
        if retriever is not None:
            retrieved = (passage for example in examples for passage in clean.get(example.id, NOTHING).passages)
            poison = [text.text for texts in crafted.values() for text in texts.texts]
            questions = [example.question for example in examples]
            self.remember(retriever, questions, [*(p.text for p in (*corpus, *retrieved)), *poison])
        known = self._frequent_sources(scenario) if scenario.owned.startswith("known") else {}
        return stage(
            scenario, examples, clean, corpus, attack=attack, crafted=crafted, retriever=retriever, known=known
        )

    def _frequent_sources(self, scenario: Scenario) -> Mapping[str, Sequence[str]]:
        return self._once(("established", scenario.data), lambda: frequent_sources(self.data(scenario.data).examples))

    def remember(self, encoder: Encoder, questions: Sequence[str], texts: Sequence[str]) -> None:
        """Let a caching encoder encode all unseen texts, in one call of each tower."""
        if not isinstance(encoder, CachedEncoder):
            return
        towers = isinstance(encoder, TwoTowers)
        if towers and questions:
            query_vectors(encoder, list(dict.fromkeys(questions)))
        wanted = texts if towers else [*questions, *texts]
        if wanted:
            encoder.encode(list(dict.fromkeys(wanted)))

    def _corpus_of(self, scenario: Scenario, dataset: str) -> tuple[Passage, ...]:
        """The clean passages of one data set."""
        path, name = scenario.corpus, dataset or None
        return self._once(("corpus", path, name), lambda: load_passages(path, name)) if path else ()

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
        loaded: T = self._cache[key]
        return loaded


def style_of(scenario: Scenario) -> PromptStyle:
    """The prompt style of a scenario, with the fetched prompts of a paper's released code if requested.

    Raises:
        InputError: They were not fetched; the message has the command.
    """
    style = PromptStyle.of(scenario.style)
    return replace(style, template=released_text(f"answer-{style.paper}")) if style.replay else style


def sibling_corpus(data: str) -> str:
    """The file `corpus.jsonl` in the folder of a data file, or ""."""
    _, colon, rest = data.partition(":")
    corpus = data_path(rest if colon else data).parent / "corpus.jsonl"
    return str(corpus) if data != "sample" and corpus.is_file() else ""


def _digest(path: str) -> str:
    try:
        return f"sha256:{hashlib.sha256(data_path(path).read_bytes()).hexdigest()}"
    except OSError as error:
        raise InputError(f"the corpus {clip(path)} cannot be read: {error.strerror}; give a JSON Lines file") from None


class NoisyNLI:
    """An NLI model with random errors, to measure how much a defense depends on it (RADAR, Table 6).

    Each output is replaced, with a given probability, by a random one. The replacement depends only on the
    seed and the pair, not on the order of the calls. The paper does not say which distribution replaces an
    output; here it is uniform over all of them.

    Args:
        nli: The model that errs.
        rate: The probability of a replacement.
        seed: Of the noise.
    """

    def __init__(self, nli: NLIModel, rate: float, seed: int = 0) -> None:
        self.name = f"{nli.name} with {rate:g} noise"
        self.remote = getattr(nli, "remote", False)
        self._nli = nli
        self._rate = within("rate", rate, 0, 1)
        self._seed = at_least("seed", seed, 0)

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3), rows summing to 1."""
        judged = np.array(self._nli.judge(pairs), np.float64)
        for row, (premise, hypothesis) in enumerate(pairs):
            key = f"{self._seed}\0{premise}\0{hypothesis}".encode("utf-8", "surrogatepass")
            rng = np.random.default_rng(int.from_bytes(blake2b(key, digest_size=16).digest(), "little"))
            if rng.random() < self._rate:
                judged[row] = rng.dirichlet(np.ones(3))
        return judged

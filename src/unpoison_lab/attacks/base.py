"""The base class of attacks: a seeded flow that crafts poisoned passages for one target and counts their cost.

An attack sees one target at a time and draws its randomness from (attack, seed, target id), so targets may be crafted
in any order, in several processes, or after an interruption, with identical results.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.core.passages import MAX_PASSAGES
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.loading import GeneratorFunction, as_generator, can_write, load_encoder
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import Encoder, Generator, Models, TwoTowers
from unpoison.models.requests import Flow, encode, generate
from unpoison.runtime.driver import Limits, as_flow, result_of, run
from unpoison.text.tokens import separate_words
from unpoison.utils.checks import at_least, flag

__all__ = [
    "MAX_COPIES",
    "Attack",
    "Budget",
    "DirectAttack",
    "DirectOptions",
    "Meter",
    "ModelOptions",
    "PoisonText",
    "RetrievalOptions",
    "SearchOptions",
    "Target",
    "WriterOptions",
    "ask_each",
    "contains_answer",
    "copies",
    "with_question",
]

MAX_COPIES = 100
"""How often an attack may repeat a text within one passage; the papers repeat it at most ten times."""

_PUNCTUATION = str.maketrans("", "", string.punctuation + "\u2018\u2019\u201c\u201d\u2013\u2014\u2026")
_ARTICLES = frozenset(("a", "an", "the"))

_FIELDS = {"incorrect": "incorrect answer", "correct": "correct answer", "gold": "gold passage", "texts": "texts"}
"""The fields of a target in messages."""


@dataclass(frozen=True, slots=True)
class Target:
    """One question and the goal of the attacker.

    Attributes:
        id: Unique in the data set.
        question: The question that the poison is made for.
        correct: The right answers, any alias; only attacks with `uses_gold` may look at them.
        incorrect: The answer that the attacker wants, or "".
        texts: Published poison texts, without the question in front.
        gold: The annotated passages; only attacks with `uses_gold` may look at them.
        context: What the retriever returns without poison, best first.
        alternatives: Further wrong answers.

    Raises:
        InputError: No id or question, or a wrong answer that contains a right one or is part of one (success
            and failure could then not be distinguished).
    """

    id: str
    question: str
    correct: tuple[str, ...] = ()
    incorrect: str = ""
    texts: tuple[str, ...] = field(default=(), repr=False)
    gold: tuple[str, ...] = field(default=(), repr=False)
    context: tuple[str, ...] = field(default=(), repr=False)
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("id", "question", "incorrect"):
            value = getattr(self, name)
            if not isinstance(value, str) or (name != "incorrect" and not value.strip()):
                raise InputError(f"target.{name} must be a string that is not empty, got {clip(value)}")
        for name in ("correct", "texts", "gold", "context", "alternatives"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise InputError(f"target {clip(self.id)}.{name} must be strings, got {clip(value)}")
            object.__setattr__(self, name, tuple(value))
        for right in self.correct:
            if contains_answer(self.incorrect, right) or contains_answer(right, self.incorrect):
                raise InputError(
                    f"target {clip(self.id)}: the wrong answer {clip(self.incorrect)} and the right answer "
                    f"{clip(right)} contain each other, so no reply can tell them apart; leave this target out"
                )


@dataclass(frozen=True, slots=True)
class Budget:
    """The cost of one poison text.

    Attributes:
        llm_calls: Prompts sent to a language model, verification and victim included.
        encoder_passes: Texts encoded.
        gradient_steps: Backward passes through an encoder.
    """

    llm_calls: int = 0
    encoder_passes: int = 0
    gradient_steps: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


class Meter:
    """Counts the requests of a flow, for the cost of each text."""

    def __init__(self, llm_calls: int = 0) -> None:
        self.llm_calls = llm_calls
        self.encoder_passes = self.gradient_steps = 0

    def generate(self, prompts: Sequence[Prompt], purpose: str) -> Flow[list[Reply]]:
        """`replies = yield from meter.generate(prompts, purpose)`."""
        self.llm_calls += len(prompts)
        return (yield from generate(prompts, purpose))

    def encode(self, texts: Sequence[str], purpose: str = "attack") -> Flow[NDArray[np.float32]]:
        """`vectors = yield from meter.encode(texts)`."""
        self.encoder_passes += len(texts)
        return (yield from encode(texts, purpose))

    def budget(self) -> Budget:
        """The counts so far."""
        return Budget(self.llm_calls, self.encoder_passes, self.gradient_steps)


def ask_each(prompts: Sequence[Prompt], meters: Sequence[Meter], purpose: str) -> Flow[list[str]]:
    """Ask all prompts concurrently, each with its own cost; returns the replies."""
    for meter in meters:
        meter.llm_calls += 1
    replies = yield from generate(prompts, purpose)
    return [reply.text for reply in replies]


@dataclass(frozen=True, slots=True)
class PoisonText:
    """One poisoned passage. It is tracked by its id, never by its text.

    Attributes:
        id: Unique over targets, attacks, seeds and positions.
        text: What is planted.
        target_id: The target it was made for.
        attack: The attack's name.
        meta: JSON values. Always `reached` (did the text reach the attack's own goal), `reason` (one sentence, empty
            when reached) and `answers` (replies that count as success); the rest is the attack's.
        budget: What it cost.
        title: The passage's title, where the attack plants one.
    """

    id: str
    text: str
    target_id: str
    attack: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    title: str | None = None

    @property
    def reached(self) -> bool:
        return bool(self.meta.get("reached", False))


# The options that attacks share. A constructor takes them as `**common: Unpack[WriterOptions]` and passes them on.


class DirectOptions(TypedDict, total=False):
    """Of an attack that asks no model; see `Attack`."""

    seed: int
    prefix: bool


class ModelOptions(TypedDict, total=False):
    """Of an attack that asks a language model and decides itself whether to prepend the question."""

    seed: int
    generator: Generator | str | None
    limits: Limits | None


class WriterOptions(ModelOptions, total=False):
    """Of an attack whose texts a language model writes."""

    prefix: bool


class SearchOptions(ModelOptions, total=False):
    """Of an attack that searches with an encoder, the question in front or not as its paper has it."""

    encoder: Encoder | str | None


class RetrievalOptions(WriterOptions, SearchOptions, total=False):
    """All options."""


class Attack(ABC):
    """An attack writes `crafting`, a flow; `craft` runs it.

    Attributes:
        name: What users type.
        drawn_as: The name that randomness derives from, where it is not `name`.
        summary: One line for listings.
        needs: What it cannot work without: "generator", "encoder", "reader".
        requires: The fields of a target that must not be empty.
        uses_gold: Whether it looks at the right answers or the gold passages.
        uses_context: Whether it uses the clean passages that are retrieved beside its own.
        wording: Origin of the planted words: `ours`, templates or prompts of the author of the class;
            `published`, texts of an attack's own authors; `data`, texts of the data that the attack edits or puts
            something in front of, ours only if the data has none. Tables name it.
        offline: The stand-in for a language model; "" for attacks that need none.
        model_option: The option that names that language model.
        passage_format: How the pipeline must show each passage for the attack to work, with {number} and {text}.
        usual_encoder, usual_generator: Option strings of models that are used where none is given.

    Args:
        seed: All randomness derives from it and the target's id.
        prefix: Put the question and a full stop in front of each text, as PoisonedRAG does.
        encoder: A model or a string such as "minilm".
        generator: A model or a string such as "openai:gpt-4o-mini".
        limits: Bounds on the model calls of one target; by default without a deadline, for searches are long.
    """

    name: str
    drawn_as: str = ""
    summary: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    requires: tuple[str, ...] = ("incorrect",)
    uses_gold: bool = False
    uses_context: bool = False
    wording: Literal["ours", "published", "data"] = "ours"
    offline: str = ""
    model_option: str = "generator"
    passage_format: str = "{text}"
    usual_encoder: ClassVar[str | None] = None
    usual_generator: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        seed: int = 0,
        prefix: bool = False,
        encoder: Encoder | str | None = None,
        generator: Generator | GeneratorFunction | str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.seed = at_least("seed", seed, 0)
        self.prefix = flag("prefix", prefix)
        encoder, generator = encoder or self.usual_encoder, generator or self.usual_generator
        self.models = Models(
            encoder=load_encoder(encoder) if isinstance(encoder, str) else encoder,
            generator=as_generator(generator),
        )
        self.limits = limits or Limits(deadline=None)
        if isinstance(self.models.encoder, TwoTowers):
            raise OptionError(
                f"the attack {self.name} compares question and texts by one encoder, and "
                f"{clip(self.models.encoder.name)} has two; hotflip and phantom can follow two towers, or give an "
                "encoder without query_encoder"
            )
        for need in self.needs:
            if getattr(self.models, need, None) is None and getattr(self, need, None) is None:
                raise OptionError(f"the attack {self.name} needs {need}=...; pass one")

    @classmethod
    def short_of(cls, options: Mapping[str, str], generator: str | None) -> str:
        """How a search with these options falls short of the published one."""
        return ""

    @abstractmethod
    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        """The flow that crafts `count` texts for one target."""

    def craft(self, target: Target, count: int = 1) -> list[PoisonText]:
        """Craft poisoned passages for one target.

        Returns:
            `count` texts, the same for the same (seed, target, count), independent of other calls. The `meta` of a
            text says whether it reaches the attack's goal.

        Raises:
            InputError: The target lacks something that the attack requires.
            ModelError: A model failed for good.
        """
        self._check(target, count)
        flow = as_flow(self.crafting(target, count), self, "crafting")
        texts: list[PoisonText] = result_of(run(flow, self.models, self.limits)[0], list, self, "crafting")
        for text in texts:
            result_of(text, PoisonText, self, "crafting")
        return texts

    def target_answers(self, target: Target) -> tuple[str, ...]:
        """The replies that count as success when one of them occurs in the answer."""
        return (target.incorrect,) if target.incorrect else ()

    def user_question(self, question: str) -> str:
        """The question as the attacked user asks it; a trigger attack changes it."""
        return question

    @property
    def writer(self) -> Generator | None:
        """The generator, unless it is a reader, which cannot write."""
        generator = self.models.generator
        return generator if generator is not None and can_write(generator) else None

    def rng(self, target: Target, *parts: object) -> np.random.Generator:
        """A generator that depends on attack, seed, target id and `parts` alone."""
        drawn_as = self.drawn_as or self.name
        key = "\0".join(map(str, (drawn_as, self.seed, target.id, *parts))).encode("utf-8", "surrogatepass")
        return np.random.default_rng(int.from_bytes(blake2b(key, digest_size=16).digest(), "little"))

    def poison(
        self, target: Target, position: int, text: str, *, reason: str = "", meter: Meter | None = None, **meta: Any
    ) -> PoisonText:
        """The finished text number `position`; a `reason` says why it fell short of the goal."""
        return PoisonText(
            id=f"{target.id}#{self.name}-{self.seed}-{position}",
            text=with_question(target.question, text) if self.prefix else text,
            target_id=target.id,
            attack=self.name,
            meta={"reached": not reason, "reason": reason, "answers": list(self.target_answers(target)), **meta},
            budget=meter.budget() if meter else Budget(),
        )

    def _check(self, target: Target, count: int) -> None:
        at_least("count", count, 0, MAX_PASSAGES)
        for name in self.requires:
            if not getattr(target, name):
                missing = _FIELDS.get(name, name)
                raise InputError(
                    f"target {clip(target.id)} has no {missing}, which the attack {self.name} requires; "
                    "leave the target out or use another attack"
                )


class DirectAttack(Attack):
    """An attack that sends no requests: it writes its texts by itself.

    Args:
        prefix: Put the question in front of each text.
        seed: All randomness derives from it and the target's id.
    """

    def __init__(self, *, prefix: bool = False, seed: int = 0) -> None:
        super().__init__(prefix=prefix, seed=seed)

    @abstractmethod
    def write(self, target: Target, count: int) -> list[PoisonText]:
        """The texts for one target."""

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        yield from ()  # a flow without requests
        return self.write(target, count)


def with_question(question: str, text: str) -> str:
    """PoisonedRAG's retrieval prefix: the question and a full stop, no space after it."""
    return f"{question}.{text}"


def copies(text: str, times: int) -> str:
    """Copies of a text in one passage with a blank line between, as RobustRAG's and RADAR's code repeats a payload."""
    return "\n\n".join([text] * times)


def contains_answer(text: str, answer: str) -> bool:
    """Whether the text contains the answer's words side by side, ignoring case, punctuation and articles.

    An empty answer or text is contained in nothing, and "no" is not contained in "I don't know".
    """
    words, wanted = _plain(text), _plain(answer)
    return bool(wanted) and any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def _plain(text: str) -> list[str]:
    return [word for word in separate_words(text.lower().translate(_PUNCTUATION)).split() if word not in _ARTICLES]

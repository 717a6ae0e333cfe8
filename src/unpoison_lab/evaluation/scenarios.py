"""A scenario: the setup of one cell of a results table, as values that can be saved, hashed and run again.

Its attack and defense are option strings such as `grada:alpha=0.3`, checked and described here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.core import registry
from unpoison.core.codec import JsonRecord
from unpoison.core.passages import MAX_PASSAGES
from unpoison.core.registry import own_code
from unpoison.errors import OptionError, UnknownNameError, clip
from unpoison.models.loading import MULTILINGUAL, READERS, can_write
from unpoison.models.prompts import PromptStyle
from unpoison.utils.checks import among, at_least, within
from unpoison_lab.attacks.base import Attack
from unpoison_lab.evaluation.injection import check_owned

__all__ = [
    "COMPETING",
    "NO_ATTACK",
    "Scenario",
    "check_spec",
    "make_attack",
    "sees_context",
    "short_of",
    "stand_in",
    "takes",
    "wording",
]


NO_ATTACK = "none"
"""The attack of a scenario without poison; the clean twin of every other one."""

POLICIES = (
    "prepend",
    "retrieve",
    "retrieve-batch",
    "corpus",
    "replace-at",
    "replace-or-append",
    "replace-last",
    "middle",
    "pool",
    "labelled",
)
"""How poison reaches the defense.

prepend: before the context, cut to k; retrieve: it competes with the context for the k best places; retrieve-batch: so
does the poison of the other questions of its ten, as in PoisonedRAG's code and its derivatives; corpus: all poison
of the data set competes with the whole corpus; replace-at, replace-last, middle: it takes the place of passages;
replace-or-append: as replace-at, and behind the last passage where there are fewer (RADAR); pool:
the defense sees all of it and k clean passages, and the best k are taken after the defense; labelled: the passages of
the file, in its order and with its labels.
"""


ARCHITECTURES = ("plain", "blended", "replug", "self-rag")
"""Architectures that answer from the kept passages."""

COMPETING = ("retrieve", "retrieve-batch", "corpus")
"""The policies by which a retriever ranks clean passages and poison."""

PLACED = ("replace-at", "replace-or-append")
"""The policies that name positions."""


@dataclass(frozen=True, slots=True)
class Scenario(JsonRecord):
    """The setup of one cell: data x attack x injection x defense x models x seed.

    Models, attacks and defenses are option strings. A scenario that plants nothing is normalised to attack "none",
    0 poisons, no position, no prefix; so all attacks share one clean twin.

    Attributes:
        data: As for `unpoison_lab.evaluation.load`.
        corpus: A file of clean passages to fill contexts from; "" for none.
        attack: Option string of an attack, or "none".
        poisons: How many texts are planted per question, at most as many as a question has passages (5,000).
        policy: One of `POLICIES`.
        positions: 1-based places, for replace-at and replace-or-append; one for each poison.
        prefix: Put the question before each planted text; None leaves it to the attack.
        triggered: Whether the question is asked with the attack's trigger (Phantom), or unchanged.
        k: Passages that reach the defense.
        retriever: "bm25", an encoder, or both as `hybrid:ENCODER` (reciprocal rank fusion); ranks for the
            policies retrieve and corpus.
        encoder: The encoder of the defense, and of attacks that need one.
        defense: Option string of a defense.
        generator: Answers, and writes for attacks that want a language model; None measures the screening only.
        architecture: How answers are made from the kept passages: `plain`, one prompt with all; `blended`, the same
            behind a hybrid retriever; `replug`, an ensemble over passages; `self-rag`, the best of one answer each.
            With another than plain, only the screening of a defense is used.
        style: How the defense's prompts are put to the generator: `safe`, or `plain` as the papers' baselines ask.
        nli: The NLI model of defenses that judge answers; None for the defense's own choice.
        nli_noise: The probability with which each NLI output is replaced by a random one (RADAR, Table 6).
        owned: Which sources the attacker holds (`evaluation.injection`); "" plants texts without a source.
        sources: A policy or history file of sources for the defense; "" for none.
        history: The data from which a history of sources is learned first: `seen`, the clean passages of the data
            itself (trust excludes the current question), or another data set; "" for no history.
        seed: Of attack, noise and defense.
        limit: Only the first questions of the data set; None for all.

    Raises:
        OptionError: A value that is out of its range or fits no other.
    """

    data: str
    corpus: str = ""
    attack: str = NO_ATTACK
    poisons: int = 0
    policy: str = "prepend"
    positions: tuple[int, ...] = ()
    prefix: bool | None = None
    triggered: bool = True
    k: int = 10
    retriever: str = "bm25"
    encoder: str = "lexical"
    defense: str = "vanilla"
    generator: str | None = None
    architecture: str = "plain"
    style: str = "safe"
    nli: str | None = None
    nli_noise: float = 0.0
    owned: str = ""
    sources: str = ""
    history: str = ""
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.defense, str):
            raise OptionError(f"defense must be an option string such as 'guard', got {clip(self.defense)}")
        self._put(style=str(PromptStyle.of(self.style)))
        at_least("poisons", self.poisons, 0, MAX_PASSAGES)
        at_least("k", self.k, 1)
        at_least("seed", self.seed, 0)
        within("nli_noise", self.nli_noise, 0, 1)
        among("policy", self.policy, POLICIES)
        check_owned(self.owned)
        if self.limit is not None:
            at_least("limit", self.limit, 1)
        if self.policy == "labelled":
            self._put(attack="labelled", poisons=0, positions=(), prefix=None, triggered=True)
        elif self.attack == NO_ATTACK or self.poisons == 0:
            self._put(attack=NO_ATTACK, poisons=0, positions=(), prefix=None, triggered=True, owned="")
            if self.policy not in COMPETING:  # these decide by whom the clean passages are ranked
                self._put(policy="prepend")
        self._put_retriever()
        self._put(positions=tuple(self.positions) if self.policy in PLACED else ())
        if self.policy not in COMPETING:
            self._put(retriever="bm25")
        if self.policy in PLACED and self.poisons:
            self._check_positions()

    def _put_retriever(self) -> None:
        among("architecture", self.architecture, ARCHITECTURES)
        if self.architecture in ("replug", "self-rag") and self.generator is None:
            raise OptionError(f"the architecture {self.architecture} answers; give a generator")
        if self.architecture == "blended":
            if self.policy not in COMPETING:
                raise OptionError(
                    f"the architecture blended is a way to retrieve and the policy {self.policy} retrieves nothing; "
                    "use the policy retrieve or corpus"
                )
            self._put(retriever=self.retriever if self.retriever.startswith("hybrid") else "hybrid")
        if self.retriever == "hybrid":
            self._put(retriever=f"hybrid:{self.encoder}")

    def _put(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_positions(self) -> None:
        if len(self.positions) != self.poisons:
            raise OptionError(
                f"{self.policy} needs one position for each of {self.poisons} poisons, got {list(self.positions)}"
            )
        outside = [position for position in self.positions if not 1 <= position <= self.k]
        if outside or len(set(self.positions)) != len(self.positions):
            raise OptionError(f"positions must differ and lie in 1 to k = {self.k}, got {list(self.positions)}")

    @property
    def clean(self) -> bool:
        """Whether nothing is planted."""
        return self.attack == NO_ATTACK

    @property
    def undefended(self) -> bool:
        """Whether this is the baseline without a defense."""
        return self.defense.partition(":")[0] == "vanilla"

    @property
    def attacked(self) -> bool:
        """Whether an attack must craft something: not for a clean scenario, nor for the labels of a file."""
        return not self.clean and self.policy != "labelled"

    @property
    def twin(self) -> Scenario:
        """The same scenario without an attack."""
        policy = "prepend" if self.policy == "labelled" else self.policy
        return replace(self, attack=NO_ATTACK, poisons=0, policy=policy)

    @property
    def target_encoder(self) -> str:
        """The target of a gradient attack: the scenario's retriever, if it is an encoder."""
        return self.encoder if self.retriever == "bm25" else self.retriever.removeprefix("hybrid:")

    @property
    def final(self) -> int | None:
        """How many of the kept passages the generator reads: k after a pool, all of them otherwise."""
        return self.k if self.policy == "pool" else None

    def identifier(self, digests: Iterable[str] = ()) -> str:
        """A short hash of the scenario, the digests of its data, a reader's weights and this package's version.

        The file names of data and corpus do not count where digests are given: a moved folder is the same data.
        """
        content = self.to_dict()
        of_data = list(digests)
        code = [*filter(None, (own_code(self.attack), own_code(self.defense)))]
        if code:
            content["code"] = code  # user code: a changed file is measured again
        if any(weights := [weights_of(self.generator), weights_of(self.nli)]):
            content["weights"] = weights
        if of_data:
            del content["data"], content["corpus"]
        text = json.dumps([__version__, of_data, content], sort_keys=True, ensure_ascii=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()


def weights_of(model: str | None) -> str:
    """The first twelve digits of the hash of a reader's weights, shipped or `qa:FOLDER`; "" for other models.

    It distinguishes measurements with different weights of the same model string; a shipped reader has the multilingual
    reader's behind its own, which reads other languages for it. A folder with unreadable settings has none: loading the
    reader reports the error.
    """
    name = (model or "").partition(",")[0]
    packages = [READERS[one] for one in dict.fromkeys((name, MULTILINGUAL))] if name in READERS else []
    folders = [Path(import_module(package).FOLDER) for package in packages if find_spec(package) is not None]
    if name.startswith("qa:"):
        folders = [Path(name.removeprefix("qa:"))]
    try:
        settings = [json.loads((folder / "reader.json").read_text("utf-8")) for folder in folders]
        return "+".join(str(one["sha256"]["model.onnx"])[:12] for one in settings)
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_spec(kind: str, spec: str) -> None:
    """Refuse a wrong name or option before anything runs.

    Raises:
        UnknownNameError: No such name or option; the message names the nearest.
    """
    if kind == "attacks" and registry.parse(spec) == (NO_ATTACK, {}):
        return
    name, given = registry.parse(spec)
    existing = [option.name for option in registry.options(registry.find(kind, name))]
    for option in given:
        if option not in existing:
            raise UnknownNameError(f"option of {name}", option, existing)


def takes(kind: str, spec: str, option: str) -> bool:
    """Whether the class behind an option string has this argument.

    Raises:
        UnknownNameError: No such name.
    """
    return option in registry.parameters(_class(kind, spec))


def sees_context(spec: str) -> bool:
    """Whether an attack is shown the clean passages that it competes with: it has an encoder, or builds on them.

    Raises:
        UnknownNameError: No such attack.
    """
    return takes("attacks", spec, "encoder") or bool(_class("attacks", spec).uses_context)


def _class(kind: str, spec: str) -> Any:
    return registry.find(kind, registry.parse(spec)[0])


def _crafting(spec: str) -> tuple[type[Attack], dict[str, str]]:
    """The class of an attack, and its options."""
    name, options = registry.parse(spec)
    return registry.find("attacks", name), options


def stand_in(scenario: Scenario) -> str:
    """The substitute for the language model that wrote the texts in the attack's paper; "" without a substitute."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    given = {"generator": scenario.generator, **options}.get(attack.model_option)
    return attack.offline if given is None or not can_write(given) else ""


def short_of(scenario: Scenario) -> str:
    """How an attack's search falls short of the published one; "" if it does not, or if it does not search."""
    if not scenario.attacked:
        return ""
    attack, options = _crafting(scenario.attack)
    return attack.short_of(options, scenario.generator)


WORDINGS = {"ours": "our wording", "published": "", "data": "the data's texts, our wording where it has none"}
"""Table labels for the origin of an attack's wording; empty for its authors' own wording."""


def wording(spec: str) -> str:
    """The table label for the origin of an attack's wording.

    A zero against our own template says nothing about the texts of the attack's authors.

    Raises:
        UnknownNameError: No such attack.
    """
    attack, options = _crafting(spec)
    return f"the words of {options['replay']}'s code" if options.get("replay") else WORDINGS[attack.wording]


def make_attack(spec: str, **given: Any) -> Attack:
    """The attack that an option string names; `given` are the models and settings of the run.

    Raises:
        UnknownNameError: No such attack.
        OptionError: An unknown option, a model that it needs, or a question prefix for an attack that takes none.
    """
    if given.get("prefix") is not None and not takes("attacks", spec, "prefix"):
        raise OptionError(f"the attack {registry.parse(spec)[0]} takes no question prefix; leave the option out")
    attack: Attack = registry.create("attacks", spec, **given)
    return attack

"""One file per paper, each like its method section; Guard in a folder of its own."""

from __future__ import annotations

from typing import Any

from unpoison.core import registry
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError

__all__ = ["load_defense", "make_defense"]

registry.register(
    "defenses",
    "unpoison.defenses.base:Defense",
    {
        "guard": "unpoison.defenses.guard:Guard",
        "grada": "unpoison.defenses.grada:Grada",
        "ragdefender": "unpoison.defenses.ragdefender:RagDefender",
        "trustrag": "unpoison.defenses.trustrag:TrustRag",
        "radar": "unpoison.defenses.radar:Radar",
        "vote": "unpoison.defenses.vote:Vote",
        "vanilla": "unpoison.defenses.vanilla:Vanilla",
        "no-rag": "unpoison.defenses.vanilla:NoRag",
        "robustrag": "unpoison.defenses.robustrag:RobustRag",
        "robustrag-decoding": "unpoison.defenses.robustrag_decoding:RobustRagDecoding",
        "rerank": "unpoison.defenses.rerank:Rerank",
    },
)


def load_defense(spec: str, **given: Any) -> Defense:
    """The defense that an option string names, with the models of the other options.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An unknown option, a model that this defense does not accept, or a missing model.
    """
    name, _ = registry.parse(spec)
    accepted = registry.parameters(registry.find("defenses", name))
    for option in ("encoder", "nli", "beliefs", "sources"):
        if given.get(option) is not None and option not in accepted:
            raise OptionError(f"{name} takes no --{option.replace('_', '-')}; leave it out")
    return make_defense(spec, **given)


def make_defense(spec: str, **given: Any) -> Defense:
    """The defense that an option string names; models that it does not accept are ignored.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An unknown option, or a missing model.
    """
    defense: Defense = registry.create("defenses", spec, **given)
    for model in defense.needs:
        if getattr(defense.models, model) is None:
            name = registry.parse(spec)[0]
            option = f"--{model}" if model in given else f"-d {name}:{model}=..."
            raise OptionError(f"{name} needs a {model.replace('_', ' ')}; give one with {option}")
    return defense

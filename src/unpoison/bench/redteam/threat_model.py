"""Who the attacker of a test is: what each attack is, sees and may spend, and what was not tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.specs import attack_name, short_of, stand_in
from unpoison.bench.redteam.agent_attacks import ADAPTIVE
from unpoison.bench.redteam.agent_config import AgentConfig
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.results import Results
from unpoison.core import registry

__all__ = ["adapts", "describe_attacker", "describe_budget"]


def describe_attacker(config: Config | AgentConfig) -> dict[str, Any]:
    """What the attacker can do, and each attack by its option string: what it does, sees, and whether it adapts."""
    if isinstance(config, AgentConfig):
        return {
            "can": f"write texts into what the agent reads: {', '.join(config.places)}",
            "wants": list(config.goals),
            "cannot": "change the task, the agent's prompt, its tools or its gate",
            "attacks": [{"attack": spec, "adaptive": adapts(spec, agent=True)} for spec in config.attacks],
        }
    return {
        "can": "add documents to what the system searches, made for each question",
        "wants": "the wrong answer of each question",
        "cannot": "change questions, genuine documents, models, prompts or the defense, and does not see the answers",
        "attacks": [_describe_attack(spec, config) for spec in config.attacks],
    }


def describe_budget(config: Config | AgentConfig, results: Results) -> dict[str, Any]:
    """What the attacker may spend, and the test."""
    requests = {"requests_at_most": config.bounds.budget}
    if isinstance(config, AgentConfig):
        return {"texts_per_task": 1, "tries_of_the_adaptive_attacker": config.tries, **requests}
    return {
        "documents_per_question": list(config.poisons),
        "documents_planted": results.planted,
        "language_model": config.generator,
        **requests,
    }


def adapts(spec: str, *, agent: bool = False) -> bool:
    """Whether an attack is made against defenses: it searches against one, or is a published adaptive one."""
    if agent:
        return spec == ADAPTIVE
    return any("defense" in part.needs or part.summary.startswith("adaptive") for part in _classes(spec))


def _classes(spec: str) -> list[Any]:
    return [registry.find(kind, registry.parse(part)[0]) for kind, part in registry.parts("attacks", spec)]


def _describe_attack(spec: str, config: Config) -> dict[str, Any]:
    scenario = Scenario(data=config.questions, attack=spec, poisons=1, generator=config.generator)
    written = stand_in(scenario)
    return {
        "attack": spec,
        "name": attack_name(spec),
        "adaptive": adapts(spec),
        "does": "; ".join(part.summary for part in _classes(spec)),
        "sees": list(_sees(spec)),
        "weaker_than_published": "; ".join(
            filter(None, (written and f"without a language model: {written}", short_of(scenario)))
        ),
    }


def _sees(spec: str) -> Iterator[str]:
    classes = _classes(spec)
    yield "the question"
    if any(part.uses_gold for part in classes):
        yield "the right answer or the passages that hold it"
    if any(part.uses_context for part in classes):
        yield "the passages that are retrieved beside its own"
    if any("defense" in part.needs for part in classes):
        yield "the defense, as software of its own"

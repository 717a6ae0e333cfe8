"""A test as an evidence pack: what was tested, by whom, against which attacker, what came out, and what is open.

What is measured stands beside what the configuration states in its section `evidence`; what is neither is listed as a
gap. Equal results give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate, paired_shares
from unpoison.bench.evaluation import load
from unpoison.bench.evaluation.regressions import read_measured
from unpoison.bench.evaluation.runs import environment
from unpoison.bench.redteam.agent_config import INJECTIONS, AgentConfig
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.evidence_page import evidence_sections
from unpoison.bench.redteam.results import NO_ATTACK, Cell, Results
from unpoison.bench.redteam.secrets import SENSITIVE, VARIABLE, Secrets
from unpoison.bench.redteam.standards import findings_by_standard
from unpoison.bench.redteam.summary import FEW, redteam_page
from unpoison.bench.redteam.threat_model import adapts, describe_attacker, describe_budget
from unpoison.errors import InputError

__all__ = ["FORMAT", "Evidence", "evidence_of", "hash_inputs", "members_of", "read_undefended"]

FORMAT = "unpoison-evidence/1"

LEFT_OUT = "(left out)"
"""Stands in the configuration where a name says that its value is a secret."""

OPEN = {
    "tester": "who tested is not stated",
    "system": "the system and its release are not stated",
    "versions": "the versions of the system's parts are not stated",
    "fallbacks": "what the system does where its defense fails is not stated",
    "monitoring": "what is watched in production is not stated",
    "retest": "when the test is repeated is not stated",
    "clean_cost": "what the defense costs clean use is neither stated nor measured; give the results of the same test "
    "with the defense off as evidence.undefended, or state it",
    "residual_risk": "nobody has stated that the residual risk is accepted",
}
"""What stays open where the configuration says nothing, by its name there."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The content of a pack.

    Attributes:
        summary: `evidence.json`.
        gaps: What a reader will ask for and not find, as sentences.
    """

    summary: Mapping[str, Any]
    gaps: tuple[str, ...]


def hash_inputs(config: Config | AgentConfig) -> dict[str, str]:
    """SHA-256 of what a test reads, by what it is; to be taken before it begins.

    Raises:
        InputError: A file cannot be read.
    """
    undefended = config.evidence.undefended
    hashes = {} if undefended is None else {"undefended": _hash_file(config.folder / undefended)}
    if isinstance(config, AgentConfig):
        used = any(spec.startswith(INJECTIONS) for spec in config.attacks)
        return hashes | ({"injections": _hash_file(config.injections_path)} if used else {})
    hashes |= {"questions": load(config.source).digest.removeprefix("sha256:")}
    corpus = config.target.get("corpus")
    if isinstance(corpus, str) and (config.folder / corpus).is_file():
        hashes["corpus"] = _hash_file(config.folder / corpus)
    return hashes


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_undefended(config: Config | AgentConfig) -> dict[str, bool] | None:
    """Which questions the system without its defense answered right, without an attack; None where none is given.

    Raises:
        InputError: The results cannot be read, or no question was judged.
    """
    name = config.evidence.undefended
    if name is None:
        return None
    cells = read_measured(config.folder / name)
    right = next((cell.outcomes.get("accuracy") for cell in cells if cell.id == NO_ATTACK), None)
    if not right:
        raise InputError(f"{name} holds no question that was judged without an attack; give what redteam --json wrote")
    return dict(right)


def _clean_loss(results: Results, undefended: Mapping[str, bool] | None) -> Estimate:
    """How many more questions the system without its defense answers right, paired by question; in [-1, 1]."""
    clean = next(cell for cell in results.gate_cells() if cell.clean)
    pairs = [
        (undefended[name], right)
        for name, right in clean.outcomes.get("accuracy", {}).items()
        if undefended is not None and name in undefended
    ]
    gained = paired_shares([before for before, _ in pairs], [now for _, now in pairs])
    return Estimate(0.0 - gained.value, 0.0 - gained.high, 0.0 - gained.low, gained.count)


def evidence_of(
    results: Results,
    config: Config | AgentConfig,
    hashes: Mapping[str, str],
    undefended: Mapping[str, bool] | None = None,
) -> Evidence:
    """Everything that a pack says of a test.

    Args:
        results: What was measured.
        config: What was asked for and stated.
        hashes: What `hash_inputs` gave before the test.
        undefended: What `read_undefended` gave.
    """
    stated, loss = config.evidence, _clean_loss(results, undefended)
    gaps = tuple(_gaps(results, config, measured={"clean_cost"} if loss.defined else set()))
    machine = {name: value for name, value in environment().items() if name != "processors"}
    summary = {
        "format": FORMAT,
        "unpoison": __version__,
        "system": {
            "name": results.run.get("name", ""),
            "stated": stated.system,
            "versions": stated.versions,
        },
        "tester": stated.tester,
        "date": results.finished or results.run.get("started"),
        "test": {
            "started": results.run.get("started"),
            "finished": results.finished,
            "complete": results.complete,
            "questions": results.examples,
            "machine": machine,
            "sha256": dict(hashes),
            "configuration": config.digest(),
        },
        "attacker": {**describe_attacker(config), "budget": describe_budget(config, results)},
        "results": [_result(cell, agent=results.of_agents) for cell in results.table() if cell.poisons],
        "clean_use": {
            "figures": _figures(next(cell for cell in results.table() if not cell.poisons)),
            "accuracy_lost_by_the_defense": loss.to_dict(),
            "cost_of_the_defense": stated.clean_cost,
        },
        "removal": {
            "planted": results.planted,
            "removed": results.removed,
            "accepted": results.accepted,
            "remaining": [{"canary": canary, "reason": reason} for canary, reason in results.remaining],
        },
        "fallbacks": [fallback.model_dump() for fallback in stated.fallbacks],
        "monitoring": stated.monitoring,
        "retest": stated.retest,
        "residual_risk": {"measured": list(_residual_risks(results, config)), "stated": stated.residual_risk},
        "standards": [risk._asdict() for risk in findings_by_standard(results, stated)],
        "gaps": list(gaps),
    }
    return Evidence(summary, gaps)


def members_of(
    evidence: Evidence, results: Results, config: Config | AgentConfig, secrets: Secrets
) -> dict[str, bytes]:
    """The files of a pack by name, without secrets."""
    configuration = _without_secrets(config.model_dump(mode="json", by_alias=True))
    page = redteam_page(results, list(evidence_sections(evidence.summary)))
    return {
        "evidence.json": _json(secrets.mask(evidence.summary)),
        "configuration.json": _json(secrets.mask(configuration)),
        "results.json": _json(secrets.mask(results.to_dict())),
        "results.csv": str(secrets.mask(results.to_csv())).encode(),
        "report.html": str(secrets.mask(page)).encode(),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()


def _without_secrets(value: Any, name: str = "") -> Any:
    """A configuration whose texts that are called like secrets are left out, unless they name a variable."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(member, str(key)) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_secrets(member, name) for member in value]
    return LEFT_OUT if isinstance(value, str) and SENSITIVE.search(name) and not VARIABLE.search(value) else value


def _figures(cell: Cell) -> dict[str, Any]:
    return {name: estimate.to_dict() for name, estimate in cell.figures.items() if estimate.defined}


def _result(cell: Cell, *, agent: bool) -> dict[str, Any]:
    tries = [trial.tries for trial in cell.trials if trial.tries]
    return {
        "attack": cell.attack,
        "poisons": cell.poisons,
        "adaptive": adapts(cell.attack, agent=agent),
        "asked": cell.expected,
        "failed": cell.failed,
        "figures": _figures(cell),
        **({"most_tries": max(tries)} if tries else {}),
    }


def _residual_risks(results: Results, config: Config | AgentConfig) -> Iterator[str]:
    """What the figures leave possible."""
    measured = [cell for cell in results.table() if cell.poisons and cell.figures["asr"].defined]
    what = "tasks" if results.of_agents else "questions"
    for cell in sorted(measured, key=lambda cell: (-cell.figures["asr"].high, cell.id))[:3]:
        won = cell.figures["asr"]
        yield (
            f"{cell.id} won {won.hits} of {won.count} {what}; the true share may be as high as {100 * won.high:.0f} % "
            "(95 %)"
        )
    if not measured:
        yield "no attack was measured, so nothing is known of the risk"
    if not any(adapts(spec, agent=results.of_agents) for spec in config.attacks):
        yield "no adaptive attack was tried: who knows the defense does better than these figures"
    if any(0 < cell.figures["asr"].count < FEW for cell in measured):
        yield f"with fewer than {FEW} {what} the intervals are wide"
    if results.remaining:
        yield f"{len(results.remaining)} planted documents may still be in the system"
    yield "attacks that were not tried may do better; success is judged by the words of an answer"


def _gaps(results: Results, config: Config | AgentConfig, measured: set[str]) -> Iterator[str]:
    stated = config.evidence
    if not results.complete:
        yield "the test is not complete: questions failed, were not asked, or documents may remain"
    for name, sentence in OPEN.items():
        if name not in measured and not getattr(stated, name):
            yield f"{sentence} (evidence.{name})"
    yield from (f"a fallback was not tested: {one.what}" for one in stated.fallbacks if one.tested is None)

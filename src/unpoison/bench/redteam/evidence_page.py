"""What an evidence pack says, as sections of its page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from unpoison.report.document import Section

__all__ = ["evidence_sections"]


def _in_words(clean_use: Mapping[str, Any]) -> str:
    """Such as "2.0 % [0.1 to 5.0], 200 questions"; "" where it was not measured."""
    loss = clean_use["accuracy_lost_by_the_defense"]
    if loss["value"] is None:
        return ""
    value, low, high = (100 * loss[name] for name in ("value", "low", "high"))
    return f"{value:.1f} % [{low:.1f} to {high:.1f}], {loss['count']} questions"


def evidence_sections(summary: Mapping[str, Any]) -> Iterator[Section]:
    """The parts of the page that a report without evidence does not have."""
    attacker, system, test = summary["attacker"], summary["system"], summary["test"]
    hashes = [f"SHA-256 of the {name}: {value}" for name, value in test["sha256"].items()]
    yield Section(
        "evidence",
        "System, tester, date",
        notes=[
            *(
                f"{name}: {value}"
                for name, value in {**system, "versions": None, **system["versions"]}.items()
                if value
            ),
            f"tester: {summary['tester'] or 'not stated'}",
            f"date: {summary['date']}",
            *hashes,
        ],
    )
    yield Section(
        "attacker",
        "Attacker",
        notes=[
            f"can {attacker['can']}",
            f"cannot {attacker['cannot']}",
            f"budget: {json.dumps(attacker['budget'])}",
            *(f"{one['attack']}: {json.dumps(one, ensure_ascii=False)}" for one in attacker["attacks"]),
        ],
    )
    yield Section(
        "standards",
        "Findings by standard",
        "A heading says where a finding belongs, not that a clause is met.",
        [f"{risk['id']} {risk['name']}: {risk['finding']}" for risk in summary["standards"]],
    )
    yield Section(
        "residual-risk",
        "Residual risk, fallbacks, monitoring",
        notes=[
            *summary["residual_risk"]["measured"],
            *(f"fallback: {one['what']}, tested: {one['tested'] or 'no'}" for one in summary["fallbacks"]),
            *(
                f"{title}: {value}"
                for title, value in (
                    ("monitoring", summary["monitoring"]),
                    ("to be tested again", summary["retest"]),
                    ("residual risk, stated", summary["residual_risk"]["stated"]),
                    ("accuracy lost by the defense, measured", _in_words(summary["clean_use"])),
                    ("cost of the defense, stated", summary["clean_use"]["cost_of_the_defense"]),
                )
                if value
            ),
        ],
    )
    yield Section("gaps", "What is open", notes=summary["gaps"])

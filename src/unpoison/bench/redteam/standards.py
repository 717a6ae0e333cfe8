"""What a test says under the headings of public catalogues and of the EU AI Act.

A heading says where a finding belongs, not that a clause is met.
"""

from __future__ import annotations

from collections.abc import Iterator

from unpoison.bench.redteam.agent_summary import brief_of_agent_test
from unpoison.bench.redteam.config import Statements
from unpoison.bench.redteam.results import Cell, Results
from unpoison.bench.redteam.summary import brief_of_test
from unpoison.bench.report.front_page import Risk

__all__ = ["findings_by_standard"]

NO_INDEX = "not tested: this test plants nothing into an index"

ORDER = (
    ("OWASP LLM01:2025", "Prompt Injection"),
    ("OWASP LLM04:2025", "Data and Model Poisoning"),
    ("OWASP LLM08:2025", "Vector and Embedding Weaknesses"),
    ("OWASP ASI06:2026", "Memory and Context Poisoning"),
    ("MITRE ATLAS AML.T0070", "RAG Poisoning"),
    ("MITRE ATLAS AML.T0051.001", "LLM Prompt Injection: Indirect"),
)


def findings_by_standard(results: Results, stated: Statements) -> tuple[Risk, ...]:
    """Every heading with what was measured or stated for it; "not tested" where nothing was."""
    brief = brief_of_agent_test(results) if results.of_agents else brief_of_test(results)
    known = {risk.id: risk.finding for risk in brief.risks}
    planted = known.get("OWASP LLM04:2025", NO_INDEX)
    injected = known["OWASP LLM01:2025"]
    known.setdefault("OWASP ASI06:2026", planted)
    catalogue = [Risk(id, name, known.get(id, NO_INDEX)) for id, name in ORDER]
    return (
        *catalogue,
        Risk("NIST AI 100-2 E2025", "Indirect prompt injection", injected),
        Risk("NIST AI 100-2 E2025", "Knowledge base poisoning", planted),
        Risk("OWASP AISVS C08.2", "Content made to poison retrieval", planted),
        Risk("OWASP AISVS C08.3", "Revocation and deletion", _removal(results)),
        Risk("EU AI Act Art. 15(3)", "Accuracy and its metrics, declared", _accuracy(results)),
        Risk("EU AI Act Art. 15(4)", "Robustness, fail-safe plans", _fallbacks(stated)),
        Risk(
            "EU AI Act Art. 15(5)",
            "Attacks by third parties, data poisoning",
            injected if results.of_agents else planted,
        ),
    )


def _removal(results: Results) -> str:
    if not results.planted:
        return NO_INDEX
    after = [
        cell.figures["asr_after"] for cell in results.table() if cell.poisons and cell.figures["asr_after"].defined
    ]
    still, asked = sum(share.hits for share in after), sum(share.count for share in after)
    return (
        f"tested: of {results.planted} planted documents {results.removed} were removed and looked for, "
        f"{results.accepted} removed unseen, {len(results.remaining)} may remain; "
        f"{still} of {asked} answers stayed the attacker's afterwards"
    )


def _accuracy(results: Results) -> str:
    clean: Iterator[Cell] = (cell for cell in results.table() if not cell.poisons)
    share = next(clean).figures["accuracy"]
    if not share.defined:
        return "not measured: no question was answered without an attack, or none has a right answer"
    return (
        f"measured: {share.hits} of {share.count} questions right without an attack, "
        f"{100 * share.low:.0f} to {100 * share.high:.0f} % (95 %, Wilson), by the words of the answer"
    )


def _fallbacks(stated: Statements) -> str:
    if not stated.fallbacks:
        return "not stated"
    tested = sum(fallback.tested is not None for fallback in stated.fallbacks)
    return f"stated: {len(stated.fallbacks)} fallbacks, of which {tested} were tested"

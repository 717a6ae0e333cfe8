"""`--fail-if` of `evaluate` and `redteam`: gates, and what a pipeline reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison.bench.evaluation.gates import (
    Gate,
    GateResult,
    MeasuredCell,
    Worse,
    as_junit,
    check_gates,
    gate_alerts,
    read_gate,
)
from unpoison.bench.evaluation.measures import Measure
from unpoison.cli.common import say
from unpoison.errors import OptionError
from unpoison.io.output import check_writable
from unpoison.report.sarif import Alert, alerts_log

__all__ = ["GateOptions"]

MAX_SHOWN = 20
"""Failed gates that are named."""

OF_ANSWERS = ("asr", "accuracy", "exact_match", "em_within", "abstained", "judged_", "graded")
"""How the figures begin that only a generator's answers have."""


@dataclass(frozen=True)
class GateOptions:
    """Gates of a run, parsed before it starts, so that a typo costs no measurement.

    Attributes:
        gates: Bounds, and comparisons with earlier runs.
        junit, sarif: Files to write.
    """

    gates: tuple[Gate | Worse, ...]
    junit: Path | None = None
    sarif: Path | None = None

    @classmethod
    def of(
        cls,
        measures: Mapping[str, Measure[Any]],
        fail_if: Iterable[str] | None,
        junit: Path | None = None,
        sarif: Path | None = None,
    ) -> GateOptions:
        """Read the options.

        Raises:
            OptionError, UnknownNameError: No such gate.
            InputError: An earlier run that cannot be read.
            OSError: A file that cannot be written.
        """
        gates = tuple(read_gate(text, measures) for text in fail_if or ())
        for path in filter(None, (junit, sarif)):
            check_writable(path)
        return cls(gates, junit, sarif)

    def need_generator(self, generators: Iterable[str | None]) -> None:
        """Refuse gates on answers where no scenario has a generator that gives any.

        Raises:
            OptionError: There is one.
        """
        if any(generators):
            return
        for gate in self.gates:
            if isinstance(gate, Gate) and gate.measure.startswith(OF_ANSWERS):
                raise OptionError(
                    f"--fail-if {gate.text!r} needs answers, and no generator gives any; add -g, such as -g reader"
                )

    def conclude(
        self,
        cells: Sequence[MeasuredCell],
        problems: Sequence[str],
        code: int,
        artifact: str,
        alerts: Sequence[Alert] = (),
    ) -> int:
        """Report failures, write the files, and return the exit code.

        Args:
            cells: What was measured.
            problems: What could not be, as sentences.
            code: The exit code without any gate.
            artifact: The file that alerts are shown at.
            alerts: Further ones.

        Returns:
            1 where a gate failed, 2 where anything else went wrong; without gates `code`.

        Raises:
            InputError: A gate that applies to nothing; the files are still written.
        """
        findings, error = list[GateResult](), None
        try:
            findings += check_gates(self.gates, cells)
        except ValueError as problem:  # InputError
            problems, error = [*problems, str(problem)], problem
        if self.junit is not None:
            self.junit.write_text(as_junit(findings, problems), encoding="utf-8")
        if self.sarif is not None:
            raised = [*gate_alerts(findings, problems), *alerts]
            self.sarif.write_text(alerts_log(raised, artifact), encoding="utf-8")
        if error is not None:
            raise error
        if not self.gates:
            return code
        failed = [finding for finding in findings if finding.failed]
        for finding in failed[:MAX_SHOWN]:
            say(f"gate failed: {finding.rule}: {finding.message}")
        if len(failed) > MAX_SHOWN:
            say(f"and {len(failed) - MAX_SHOWN:,} more")
        if not failed:
            say(f"all {len(findings):,} checks passed")
        return 1 if failed else 2 if code else 0

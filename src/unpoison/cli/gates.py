"""What `evaluate` and `redteam` share for pipelines: gates, a comparison with the last run, JUnit XML and SARIF."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison.bench.evaluation.gates import (
    Alert,
    Gate,
    GateResult,
    MeasuredCell,
    as_junit,
    as_sarif,
    check_gates,
    gate_alerts,
)
from unpoison.bench.evaluation.measures import Measure
from unpoison.bench.evaluation.regressions import check_regressions, read_measured
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report import Report
from unpoison.bench.report.exports import check_format
from unpoison.bench.report.model import is_baseline
from unpoison.cli.common import say
from unpoison.errors import OptionError
from unpoison.io.output import check_writable

__all__ = ["Checks", "check_outputs", "measured_cells"]

MAX_SHOWN = 20
"""Failed gates that are named."""

OF_ANSWERS = ("asr", "accuracy", "exact_match", "em_within", "abstained", "judged_", "graded")
"""How the figures begin that only a generator's answers have."""


@dataclass(frozen=True)
class Checks:
    """What a run is held against, read before it begins: a slip of the pen costs no measurement.

    Attributes:
        gates: Bounds.
        earlier: The cells of the last run, None where nothing is compared.
        measures: All figures by name.
        junit, sarif: Files to write.
    """

    gates: tuple[Gate, ...]
    earlier: list[MeasuredCell] | None
    measures: Mapping[str, Measure[Any]]
    junit: Path | None = None
    sarif: Path | None = None

    @classmethod
    def of(
        cls,
        measures: Mapping[str, Measure[Any]],
        fail_if: Sequence[str] | None,
        against: Path | None,
        junit: Path | None,
        sarif: Path | None,
    ) -> Checks:
        """Read the options.

        Raises:
            OptionError, UnknownNameError: No such gate.
            InputError: An earlier run that cannot be read.
            OSError: A file that cannot be written.
        """
        gates = tuple(Gate.of(text, measures) for text in fail_if or ())
        earlier = None if against is None else read_measured(against)
        for path in (junit, sarif):
            if path is not None:
                check_writable(path)
        return cls(gates, earlier, measures, junit, sarif)

    def need_generator(self, scenarios: Iterable[Scenario]) -> None:
        """Refuse gates on answers where no scenario has a generator that gives any.

        Raises:
            OptionError: There is one.
        """
        if any(scenario.generator for scenario in scenarios):
            return
        for gate in self.gates:
            if gate.measure.startswith(OF_ANSWERS):
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
        """Say what failed, write the files, and give the exit code.

        Args:
            cells: What was measured.
            problems: What could not be, as sentences.
            code: The exit code without any gate.
            artifact: The file that alerts are shown at.
            alerts: Further ones.

        Returns:
            1 where a gate failed or something became worse, 2 where anything else went wrong; without gates `code`.

        Raises:
            InputError: A gate or comparison that applies to nothing; the files are written all the same.
        """
        findings, error = list[GateResult](), None
        try:
            findings += check_gates(self.gates, cells, self.measures)
            if self.earlier is not None:
                findings += check_regressions(self.earlier, cells, self.measures)
        except ValueError as problem:  # InputError
            problems, error = [*problems, str(problem)], problem
        if self.junit is not None:
            captions = [cell.caption for cell in cells]
            self.junit.write_text(as_junit(findings, captions, problems), encoding="utf-8")
        if self.sarif is not None:
            all_alerts = [*gate_alerts(findings, problems), *alerts]
            self.sarif.write_text(as_sarif(all_alerts, artifact), encoding="utf-8")
        if error is not None:
            raise error
        return self._exit_code(findings, code)

    def _exit_code(self, findings: Sequence[GateResult], code: int) -> int:
        if not self.gates and self.earlier is None:
            return code
        failed = [finding for finding in findings if finding.failed]
        for finding in failed[:MAX_SHOWN]:
            say(f"gate failed: {finding.rule}: {finding.message}")
        if len(failed) > MAX_SHOWN:
            say(f"and {len(failed) - MAX_SHOWN:,} more")
        if not failed:
            say(f"all {len(findings):,} checks passed")
        return 1 if failed else 2 if code else 0


def measured_cells(report: Report) -> list[MeasuredCell]:
    """The cells of an evaluation."""
    return [
        MeasuredCell(
            summary.id,
            f"{summary.scenario.defense}, {report.caption(summary.scenario)}",
            summary.figures,
            clean=summary.scenario.clean,
            baseline=is_baseline(summary.scenario.defense),
        )
        for summary in report.summaries
    ]


def check_outputs(reports: Sequence[Path], *others: Path | None) -> None:
    """See early that files can be written, and that every report has a format; none is left behind.

    Raises:
        OptionError: A suffix that names no format.
        OSError: A file that cannot be written.
    """
    for path in reports:
        check_format(path)
    for path in (*reports, *filter(None, others)):
        check_writable(path)

"""How a run was measured, as a paper's reviewer asks: data, splits, prompts, models, compute, statistics, failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unpoison.bench.evaluation.records import Record
from unpoison.bench.evaluation.specs import attack_name
from unpoison.bench.evaluation.workbench import style_of
from unpoison.bench.report.model import Report, short_name
from unpoison.errors import UnpoisonError
from unpoison.models.prompts import Style, answer_prompt
from unpoison.report.document import Table

__all__ = ["methods_tables", "methods_terms"]


def methods_tables(report: Report) -> list[Table]:
    """Tables of the data, of the settings and of what the run cost; those without a row are left out."""
    return [table for table in (data_table(report), settings_table(report), compute_table(report)) if table.rows]


def data_table(report: Report) -> Table:
    """Every file that was read: what it is, its terms, how many of its questions were asked, and its hash."""
    asked: dict[str, int] = {}
    for summary in report.summaries:
        data = summary.scenario.data
        asked[data] = max(asked.get(data, 0), summary.expected)
    rows = []
    manifest = report.run.manifest
    sources: dict[str, Any] = {
        **manifest.get("data", {}),
        **{path: {"digest": digest} for path, digest in manifest.get("corpora", {}).items()},
    }
    for spec, source in sources.items():
        digest = str(source["digest"])
        rows.append(
            (
                short_name(spec),
                "built in" if spec in ("sample", "timeline") else "a file",
                str(source.get("questions", "-")),
                str(len(source["left_out"])) if "left_out" in source else "-",
                str(asked.get(spec, "-")),
                digest.removeprefix("sha256:")[:16],
            )
        )
    columns = ("data", "what it is", "questions", "rows left out", "asked", "SHA-256")
    hints = (
        "",
        "",
        "usable",
        "malformed; Problems lists them",
        "at most",
        "first 16",
    )
    return Table("Data statement", columns, tuple(rows), hints)


def settings_table(report: Report) -> Table:
    """Each setting of the run with all of its values."""
    scenarios = [summary.scenario for summary in report.summaries]
    attacks = [attack_name(scenario.attack) for scenario in scenarios if scenario.attacked]
    given: dict[str, Sequence[object]] = {
        "defense": [scenario.defense for scenario in scenarios],
        "attack, and whose words it plants": attacks,
        "encoder": [scenario.encoder for scenario in scenarios],
        "retriever": [scenario.retriever for scenario in scenarios],
        "generator": [scenario.generator or "none" for scenario in scenarios],
        "NLI model": [scenario.nli or "none" for scenario in scenarios],
        "passages per question": [scenario.k for scenario in scenarios],
        "policy": [scenario.policy for scenario in scenarios if not scenario.clean],
        "seed": [scenario.seed for scenario in scenarios],
        "questions at most": [scenario.limit for scenario in scenarios if scenario.limit is not None],
    }
    rows = [(name, "; ".join(map(str, dict.fromkeys(values)))) for name, values in given.items() if values]
    return Table("Settings", ("setting", "values"), tuple(rows))


def compute_table(report: Report) -> Table:
    """What every defense cost over all of its scenarios: calls, tokens, seconds."""
    rows = []
    for defense in report.defenses:
        records = [
            record
            for cell in report.run.cells
            if cell.scenario.defense == defense
            for record in cell.records
            if not record.failed
        ]
        failed = sum(len(cell.failures) for cell in report.run.cells if cell.scenario.defense == defense)
        rows.append(
            (
                defense,
                f"{len(records):,}",
                f"{failed:,}",
                *(_total(records, name, "{:,.0f}") for name in ("calls", "prompt_tokens", "completion_tokens")),
                *(_total(records, name, "{:,.1f}") for name in ("screening_seconds", "seconds")),
            )
        )
    if report.defenses:
        every = [record for cell in report.run.cells for record in cell.usable]
        failures = sum(len(cell.failures) for cell in report.run.cells)
        totals = [_total(every, name, "{:,.0f}") for name in ("calls", "prompt_tokens", "completion_tokens")]
        totals += [_total(every, name, "{:,.1f}") for name in ("screening_seconds", "seconds")]
        rows.append(("all", f"{len(every):,}", f"{failures:,}", *totals))
    columns = ("defense", "questions", "failed", "calls", "tokens in", "tokens out", "seconds screening", "seconds")
    hints = ("", "measured, over all scenarios", "", "prompts sent, cached ones too", "", "", "wall time", "wall time")
    return Table("Compute", columns, tuple(rows), hints, breadth=7)


def _total(records: Sequence[Record], name: str, form: str) -> str:
    """The sum of a field over those records that have it; a hyphen where none has."""
    values = [value for record in records if (value := getattr(record, name)) is not None]
    return form.format(sum(values)) if values else "-"


def methods_terms(report: Report) -> list[tuple[str, Sequence[str]]]:
    """Sentences on machine, prompts, intervals, corrections, splits and failures."""
    return [
        ("Machine", list(_machine(report))),
        ("Prompts", list(_prompts(report))),
        ("Intervals", list(_INTERVALS)),
        ("Many comparisons", list(_corrections(report))),
        ("Splits", list(_splits())),
        ("Failures", list(_failures(report))),
    ]


_INTERVALS = (
    "95 %, two-sided: Wilson's for shares of questions, a bootstrap over questions for pooled shares and means.",
    "They say how much the figure would move with other questions of the same kind, not with other data or models.",
)


def _machine(report: Report) -> Iterator[str]:
    manifest = report.run.manifest
    names = ("platform", "python", "processors", "started", "finished")
    yield "; ".join(f"{name} {manifest[name]}" for name in names if manifest.get(name) is not None)
    if manifest.get("peak_memory"):
        yield f"peak memory {manifest['peak_memory'] / 1e6:,.0f} MB"
    if versions := manifest.get("versions"):
        yield "versions: " + ", ".join(f"{name} {version}" for name, version in versions.items())


def _prompts(report: Report) -> Iterator[str]:
    """Each style in words, and plain RAG's prompt as it is sent, with names where the question and passages stand."""
    styles = dict.fromkeys(summary.scenario.style for summary in report.summaries if summary.scenario.generator)
    if not styles:
        yield "no generator was asked"
    for spec in styles:
        yield f"{spec}: {Style.of(spec).description}"
        scenario = next(summary.scenario for summary in report.summaries if summary.scenario.style == spec)
        try:
            prompt = answer_prompt("QUESTION", ["PASSAGE 1", "PASSAGE 2"]).with_style(style_of(scenario))
        except UnpoisonError as error:
            yield f"the prompt was fetched and is no longer here: {error}"
        else:
            yield "plain RAG: " + " ".join(" / ".join(m["content"] for m in prompt.messages()).split())


def _corrections(report: Report) -> Iterator[str]:
    families: dict[tuple[object, str], int] = {}
    for comparison in report.comparisons:
        key = (report.caption(comparison.scenario), comparison.measure)
        families[key] = families.get(key, 0) + 1
    if not families:
        yield "no two defenses were compared"
        return
    sizes = sorted(families.values())
    yield (
        f"{len(report.comparisons):,} paired comparisons in {len(families):,} families of {sizes[0]} to {sizes[-1]}: "
        "one family for all pairs of defenses of a scenario and measure, corrected by Holm's method."
    )
    yield "McNemar's exact test where every value is a yes or no, else a paired bootstrap; scenarios are not pooled."
    yield f"{sum(comparison.differs for comparison in report.comparisons):,} of them have a corrected p below 0.05."


def _splits() -> Iterator[str]:
    yield (
        "All questions are test questions; nothing is fitted during a run, and nothing shipped was fitted on the texts "
        "that are only tested on."
    )


def _failures(report: Report) -> Iterator[str]:
    done, expected = report.questions
    failed = sum(summary.failed for summary in report.summaries)
    yield f"{failed:,} of {done:,} measured questions failed, {expected - done:,} of {expected:,} were not measured."
    broken = [cell for cell in report.run.cells if cell.error is not None]
    if broken:
        yield f"{len(broken)} scenarios could not begin: {broken[0].error}"
    yield "A failed question counts in no figure but its own; 'Problems' lists every failure."

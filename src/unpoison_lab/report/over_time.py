"""A study over time as a report: one HTML page, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.report.document import Section, Table, document, markdown_table, markdown_text
from unpoison_lab.evaluation.differences import codes
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.presets import StreamPreset
from unpoison_lab.evaluation.streams import StreamResult, StreamStudy, step_context
from unpoison_lab.report.tables import SAME, figure

__all__ = ["WRITERS", "as_json", "as_markdown", "page", "study_summary", "study_tables"]


class Share(NamedTuple):
    """A measure over time: heading, function and meaning."""

    title: str
    of: Callable[[StreamResult, int | None], Estimate]
    meaning: str


SHARES: Mapping[str, Share] = {
    "accuracy": Share("accuracy", StreamResult.accuracy, "answers that are right at their time"),
    "attack_success": Share("ASR", StreamResult.attack_success, "answers that the attacker wanted"),
}


def study_summary(study: StreamStudy) -> str:
    """The measurement in one line."""
    models = ", ".join(f"{kind} {spec}" for kind, spec in study.models.items())
    counts = f"{len(study.timelines)} questions, {study.steps} steps, {study.changes} genuine changes"
    return f"{study.data}: {counts}; {models}."


def study_tables(study: StreamStudy, preset: StreamPreset | None = None) -> list[Table]:
    """The published numbers beside the measured ones, a table for each attack, and the answer changes of the data.

    A defense with memory follows the same defense without (RADAR, Table 17).
    """
    columns = ("method", *(f"{share.title} %" for share in SHARES.values()))
    hints = ("a defense and its state", *(share.meaning for share in SHARES.values()))
    tables = [] if preset is None else list(_published(preset, study))
    for attack, results in study.results.items():
        rows = tuple(
            (method, *(figure(share.of(result, None), MEASURES["asr"], short=True) for share in SHARES.values()))
            for method, result in results.items()
        )
        tables.append(Table(f"attack: {attack}", columns, rows, hints))
    return [*tables, _changes(study)]


CHANGES = {"a change": 77.8, "no change": 22.2, "exactly 1": 26.2, "2 or more": 51.6}
"""RADAR's Table 18: shares of its 500 questions, in percent. Its answers differ between 68.3 % of adjacent years."""


def _changes(study: StreamStudy) -> Table:
    """How often right answers change in the data, beside RADAR's Table 18."""
    counts = [sum(one.is_change(step) for step in range(len(one))) for one in study.timelines]
    pairs = study.steps - len(study.timelines)
    shares = (
        sum(count > 0 for count in counts),
        counts.count(0),
        counts.count(1),
        sum(count > 1 for count in counts),
    )
    rows = [
        (name, f"{theirs:.1f}", f"{100 * share / max(len(counts), 1):.1f}")
        for (name, theirs), share in zip(CHANGES.items(), shares, strict=True)
    ]
    rows.append(("adjacent steps that differ", "68.3", f"{100 * study.changes / max(pairs, 1):.1f}"))
    return Table("answer changes of the data", ("questions with", "RADAR, Table 18 %", "here %"), tuple(rows))


def _published(preset: StreamPreset, study: StreamStudy) -> Iterator[Table]:
    """Each published number with the one measured for it, in percent."""
    methods = list(dict.fromkeys(number.method for number in preset.published))
    for measure, share in SHARES.items():
        rows = list[tuple[str, ...]]()
        theirs = {(n.method, n.attack): n.value for n in preset.published if n.measure == measure}
        attacks = [attack for attack in preset.attacks if any((method, attack) in theirs for method in methods)]
        for method in methods:
            printed = [f"{100 * theirs[method, attack]:.2f}" for attack in attacks]
            if method in preset.lacking:
                rows.append((method, *printed, "none"))
            for name in preset.variants_of(method):
                results = [study.results.get(attack, {}).get(name) for attack in attacks]
                ours = [
                    "" if result is None else f" \u2192 {100 * share.of(result, None).value:.1f}" for result in results
                ]
                differs = codes(["data: of this run", *preset.differs, *preset.method_differs[name]])
                rows.append((name, *map("".join, zip(printed, ours)), differs))
        last = [codes(_of_attack(preset, study, attack)) for attack in attacks]
        title = f"{preset.source}: {share.title}, published \u2192 measured, %"
        yield Table(title, ("", *attacks, SAME), (*rows, (SAME, *last, "")))


def _of_attack(preset: StreamPreset, study: StreamStudy, attack: str) -> Iterator[str]:
    results = study.results.get(attack, {})
    asked = {record.timeline for result in results.values() for record in result.records}
    if not asked:
        yield "none: no question can be attacked so"
        return
    yield from preset.attack_differs[attack]
    if len(asked) < len(study.timelines):
        yield f"questions: {len(asked)} of {len(study.timelines)}; the others cannot be attacked so"
    lengths = [len(step_context(step)) for one in study.timelines if one.id in asked for step in one.steps]
    if any(length < (preset.attacks[attack][1] or 0) for length in lengths):
        yield "position: behind the last passage where there are fewer"


def page(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """The whole report as HTML; it opens from disk, asks the network for nothing and runs no script."""
    notes = [] if preset is None else preset.describe()
    sections = [
        Section("results", "All steps together", notes=notes, tables=study_tables(study, preset)),
        Section("problems", "Left out", notes=study.left_out),
    ]
    lead = [
        study_summary(study),
        "Every question is asked at each of its times, with one poisoned passage at every step or without. Shares are "
        "in percent with 95 % intervals. Point at a heading for its meaning.",
    ]
    return document("Evaluation over time", sections, lead=lead)


def as_markdown(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """The tables, for a repository or an issue."""
    lines = [*([] if preset is None else preset.describe()), *(f"left out: {line}" for line in study.left_out)]
    parts = ["# Evaluation over time", markdown_text(study_summary(study))]
    parts += ["\n".join(f"- {markdown_text(line)}" for line in lines)] if lines else []
    return "\n\n".join([*parts, *map(markdown_table, study_tables(study, preset))]) + "\n"


def as_json(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """Every figure as one object; undefined values are null."""
    published = None if preset is None else [asdict(number) for number in preset.published]
    document = {
        "data": study.data,
        **study.models,
        "questions": len(study.timelines),
        "steps": study.steps,
        "changes": study.changes,
        "left_out": study.left_out,
        "preset": None if preset is None else {"name": preset.name, "published": published},
        "results": [
            {
                "attack": attack,
                "method": name,
                **asdict(study.methods[name]),
                **{measure: share.of(result, None).to_dict() for measure, share in SHARES.items()},
                "by_step": {
                    measure: [share.of(result, step).to_dict() for step in range(result.steps)]
                    for measure, share in SHARES.items()
                },
            }
            for attack, results in study.results.items()
            for name, result in results.items()
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


WRITERS: Mapping[str, Callable[[StreamStudy, StreamPreset | None], str]] = {
    ".html": page,
    ".md": as_markdown,
    ".json": as_json,
}
"""The forms of a report by the suffix of its file."""

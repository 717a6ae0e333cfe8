"""Runs scenarios: the unit of work is one question under one scenario, and finished units are never repeated.

Every file is named by a hash of its inputs, so a killed run or a larger grid reuses earlier results. Numbers do not
depend on the order of work or on interruptions; only times differ.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.core.answers import Answer, Call
from unpoison.core.codec import to_row
from unpoison.core.passages import as_passages, as_query
from unpoison.core.registry import own_code
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import OptionError, UnpoisonError
from unpoison.io.output import Journal, read_rows, write_json, write_rows
from unpoison.runtime.driver import Limits, run, sum_of_reported
from unpoison.utils.checks import at_least
from unpoison.utils.threads import parallel_map
from unpoison_lab.attacks.base import Attack
from unpoison_lab.evaluation.poisoning import CraftedPoison, Staged, craft_all
from unpoison_lab.evaluation.runs import Cell, Record, Run, environment, file_of, lock_folder, moment, read_cell
from unpoison_lab.evaluation.scenarios import Scenario, sees_context, takes
from unpoison_lab.evaluation.workbench import Workbench

__all__ = ["Runner", "measure_question"]

Progress = Callable[[int, int, str], None]
"""Called with (units done, total units, description)."""


class Runner:
    """Executes scenarios in a folder. Questions that failed in an earlier run are measured again.

    Args:
        folder: Created if missing; earlier results of the same scenarios are reused.
        scenarios: The cells, in the order of the tables.
        jobs: Questions at the same time, for generators behind a network.
        models: Ready-made models by the option strings of the scenarios.
        limits: Bounds on the model calls of one answer.
        vectors: Where encoders remember their vectors; in the folder by default. Several runs may share a file.
        progress: Called after every finished unit.
        command: The command line, for the manifest.

    Raises:
        OptionError: No scenarios, or fewer than one job.
    """

    def __init__(
        self,
        folder: str | Path,
        scenarios: Iterable[Scenario],
        *,
        jobs: int = 1,
        models: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        vectors: str | Path | None = None,
        progress: Progress = lambda done, total, doing: None,
        command: Sequence[str] = (),
    ) -> None:
        self.folder = Path(folder)
        self.scenarios = tuple(dict.fromkeys(scenarios))
        if not self.scenarios:
            raise OptionError("there is nothing to run; give at least one scenario")
        self.jobs = at_least("jobs", jobs, 1)
        self.bench = Workbench(self.folder, models, limits, vectors=vectors)
        self._progress = progress
        self._command = list(command)
        self._done = self._total = 0

    def run(self) -> Run:
        """Run the missing units and return all results.

        Raises:
            InputError: A data or corpus file cannot be read, or another process runs in the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(self.folder):
            return self._run()

    def _run(self) -> Run:
        cells = [read_cell(self.folder, self._cell(scenario)) for scenario in self.scenarios]
        started, resumed = moment(), sum(len(cell.usable) for cell in cells)
        self._total = sum(cell.expected for cell in cells)
        self._write_manifest(cells, started, resumed)
        for number, cell in enumerate(cells):
            cells[number] = self._measure(cell)
        manifest = self._write_manifest(cells, started, resumed, finished=moment())
        return Run(self.folder, manifest, tuple(cells))

    def obstacles(self) -> list[str]:
        """Why scenarios cannot begin, such as a missing extra or an option that does not exist.

        Raises:
            InputError: A data or corpus file cannot be read.
            UnpoisonError: No scenario with an attack and a defense can begin, so nothing would be learned.
        """
        for scenario in self.scenarios:
            self.bench.digests(scenario)
        problems, hopeful = dict[str, UnpoisonError](), False
        tried = dict.fromkeys(replace(scenario, data="", corpus="", limit=None) for scenario in self.scenarios)
        compared = [s for s in tried if s.attacked and not s.undefended] or [s for s in tried if not s.undefended]
        for scenario in compared or tried:
            try:
                self.bench.defense(scenario)
                self.bench.architecture(scenario)
                if scenario.attacked:
                    self.bench.attack(scenario)
            except UnpoisonError as error:
                problems.setdefault(str(error), error)
            else:
                hopeful = True
        if problems and not hopeful:
            raise next(iter(problems.values()))
        return list(problems)

    def _cell(self, scenario: Scenario) -> Cell:
        digests = self.bench.digests(scenario)
        return Cell(
            scenario.identifier(digests),
            scenario,
            self._contexts_id(scenario),
            len(self.bench.examples(scenario)),
        )

    def _measure(self, cell: Cell) -> Cell:
        """The cell with all its records."""
        settled = {record.example for record in cell.records if not record.failed}
        self._advance(len(settled), cell)
        if cell.expected == 0:
            return replace(cell, error=f"{cell.scenario.data} holds no usable question")
        if len(settled) == cell.expected:
            return cell
        try:
            staged = [question for question in self._stage_cell(cell) if question.example not in settled]
            defense, plain = self.bench.defense(cell.scenario), self.bench.architecture(cell.scenario)
        except UnpoisonError as error:
            self._advance(cell.expected - len(settled), cell)
            return replace(cell, error=str(error))
        self._remember(cell.scenario, staged)
        measure = partial(measure_question, defense=defense, plain=plain, final=cell.scenario.final)
        with Journal(file_of(self.folder, "records", cell.id)) as journal:
            for record in parallel_map(measure, staged, self.jobs):
                journal.append(to_row(record, sparse=Record.__slots__))
                self._advance(1, cell)
        return read_cell(self.folder, cell)

    def _advance(self, units: int, cell: Cell) -> None:
        self._done += units
        scenario = cell.scenario
        what = "clean" if scenario.clean else f"{scenario.attack} x {scenario.poisons}"
        self._progress(self._done, self._total, f"{scenario.defense}, {what}")

    def _remember(self, scenario: Scenario, staged: Sequence[Staged]) -> None:
        """Encode all texts at once, so that latencies never include encoding."""
        if takes("defenses", scenario.defense, "encoder"):
            texts = [passage.text for question in staged for passage in question.context.passages]
            queries = [question.context.query for question in staged]
            self.bench.remember(self.bench.encoder(scenario.encoder), queries, texts)

    def _stage_cell(self, cell: Cell) -> list[Staged]:
        """The questions under attack: loaded from disk, or crafted and placed now."""
        path = file_of(self.folder, "contexts", cell.contexts)
        earlier = [Staged.from_dict(row) for row in read_rows(path)]
        if earlier and not any(question.error for question in earlier):
            return earlier
        scenario, bench = cell.scenario, self.bench
        attack = bench.attack(scenario) if scenario.attacked else None
        crafted = self._craft_texts(scenario, attack) if attack else {}
        staged = bench.stage_questions(scenario, bench.examples(scenario), attack, crafted)
        write_rows(path, (question.to_dict() for question in staged))
        return staged

    def _craft_texts(self, scenario: Scenario, attack: Attack) -> dict[str, CraftedPoison]:
        return craft_all(
            attack,
            {e.id: partial(self.bench.target, scenario, attack, e) for e in self.bench.examples(scenario)},
            scenario.poisons,
            file_of(self.folder, "poisons", identifier(self._attack_key(scenario))),
            jobs=self.jobs,
            step=lambda: self._progress(self._done, self._total, f"crafting {scenario.attack} x {scenario.poisons}"),
        )

    def _attack_key(self, scenario: Scenario) -> dict[str, Any]:
        """The inputs of crafted texts; not every attack sees the competing passages."""
        data, corpus = self.bench.digests(scenario)
        key: dict[str, Any] = {"data": data, "attack": scenario.attack}
        if not scenario.attacked:
            return key
        key |= {"poisons": scenario.poisons, "prefix": scenario.prefix, "seed": scenario.seed}
        if code := own_code(scenario.attack):
            key["code"] = code
        if takes("attacks", scenario.attack, "generator"):
            key |= {"generator": scenario.generator, "style": scenario.style}
        if takes("attacks", scenario.attack, "encoder"):
            key["encoder"] = scenario.target_encoder
        if sees_context(scenario.attack):
            key |= {"k": scenario.k, "corpus": corpus}
        return key

    def _contexts_id(self, scenario: Scenario) -> str:
        placed = {
            name: getattr(scenario, name)
            for name in ("policy", "positions", "triggered", "k", "retriever", "owned", "limit")
        }
        corpus = self.bench.corpus_digest(scenario.corpus)
        return identifier({**self._attack_key(scenario), **placed, "corpus": corpus})

    def _write_manifest(
        self, cells: Sequence[Cell], started: str, resumed: int, finished: str | None = None
    ) -> dict[str, Any]:
        sources = {scenario.data: self.bench.data(scenario.data) for scenario in self.scenarios}
        manifest = {
            "unpoison": __version__,
            "command": self._command,
            "started": started,
            "finished": finished,
            "resumed": resumed,
            **environment(),
            "data": {
                spec: {
                    "digest": loaded.digest,
                    "questions": len(loaded),
                    "left_out": [str(problem) for problem in loaded.problems],
                }
                for spec, loaded in sources.items()
            },
            "corpora": {
                scenario.corpus: self.bench.corpus_digest(scenario.corpus)
                for scenario in self.scenarios
                if scenario.corpus
            },
            "cells": [
                {
                    **{name: getattr(cell, name) for name in ("id", "contexts", "expected", "error")},
                    "scenario": cell.scenario.to_dict(),
                }
                for cell in cells
            ],
        }
        write_json(self.folder / "manifest.json", manifest)
        return manifest


def identifier(content: Mapping[str, Any]) -> str:
    """A short hash of JSON values and of this package's version."""
    text = json.dumps([__version__, dict(content)], sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def measure_question(staged: Staged, defense: Defense, plain: Vanilla | None, final: int | None = None) -> Record:
    """The record of a defense for one question.

    Args:
        staged: Its input.
        defense: Screens, and answers if it has a method of its own.
        plain: Answers from the kept passages for all others; an architecture other than plain for every defense. None
            measures the screening only.
        final: How many of the kept passages it reads.
    """
    context = staged.context
    blank = Record(
        example=staged.example,
        correct=staged.correct,
        wanted=staged.wanted,
        injected=context.injected,
        reached=staged.reached,
        poison=tuple(sorted(context.poison)),
        gold=tuple(sorted(context.gold)),
        foreign=tuple(sorted(context.foreign)),
        final=final,
    )
    if staged.error is not None:
        return replace(blank, stage="attack", error=staged.error)
    try:
        screening, answer, calls, screened, whole = _run_defense(staged, defense, plain, final)
    except Exception as error:  # third-party code; one bad question must not end a long run
        message = str(error) if isinstance(error, UnpoisonError) else f"{type(error).__name__}: {error}"
        return replace(blank, stage="defense", error=message, unanswered=plain is not None)
    prompts = [call for call in calls if call.kind == "generate"]
    return replace(
        blank,
        verdicts=screening.verdicts,
        notes=screening.evidence.notes,
        answer=None if answer is None else answer.text,
        abstained=None if answer is None else answer.abstained,
        status=None if answer is None else answer.status,
        guarantee=None if answer is None else answer.guarantee,
        screening_seconds=round(screened, 6),
        seconds=round(whole, 6),
        calls=sum(call.items for call in prompts),
        prompt_tokens=sum_of_reported(call.prompt_tokens for call in prompts),
        completion_tokens=sum_of_reported(call.completion_tokens for call in prompts),
    )


def _run_defense(
    staged: Staged, defense: Defense, plain: Vanilla | None, final: int | None
) -> tuple[Screening, Answer | None, tuple[Call, ...], float, float]:
    """The screening, the answer, all calls, and the seconds of the screening and of the whole."""
    query, passages = as_query(staged.context.query), as_passages(staged.context.passages)
    began = time.perf_counter()
    if plain is not None and type(plain) is Vanilla and defense.answers_itself:
        own = defense.answer(query, passages)
        whole = time.perf_counter() - began
        return own.screening, own, own.calls, whole, whole
    screening, calls = run(defense.shell.screen_flow(query, passages), defense.models, defense.limits)
    screened = time.perf_counter() - began
    if plain is None:
        return screening, None, calls, screened, screened
    if passages and not screening.kept:
        answer = Answer("I don't know.", screening, abstained=True)
    else:
        answer = plain.answer(query, screening.read[:final])
    return screening, answer, (*calls, *answer.calls), screened, time.perf_counter() - began

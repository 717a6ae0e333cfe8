"""`unpoison ask`: answers in spite of poisoned passages.

Examples:
  unpoison ask -d trustrag -g openai:gpt-4o-mini retrieved.jsonl
  unpoison ask -g reader --guarantee 2 retrieved.jsonl
  unpoison ask -d radar -g reader --json retrieved.jsonl > answers.jsonl
  unpoison ask -d radar -g reader --stream --beliefs sqlite:beliefs.db timeline
  unpoison ask -g openai:gpt-4o-mini --cache replies.db retrieved.jsonl

With --output each answer is kept in OUTPUT.part, and after an interruption the same command resumes. With --stream,
--learn or beliefs it begins anew.

Exit status: 0 when every row was answered, 1 when some rows failed, 2 when none could be.
"""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import typer

from unpoison.batch import BatchScreener
from unpoison.beliefs import BeliefStore, open_beliefs
from unpoison.cli import options
from unpoison.cli.common import RowCounts, cache_replies, say, status_of_sources
from unpoison.cli.display import show_answer
from unpoison.cli.options import from_here, option
from unpoison.cli.screen import in_parts, is_file, one_by_one
from unpoison.core import registry
from unpoison.core.answers import Answer
from unpoison.defenses.base import Defense
from unpoison.defenses.vote import need_proof, withhold_unproved
from unpoison.errors import OptionError
from unpoison.io.files import open_source
from unpoison.io.output import Writer
from unpoison.io.rows import Row, open_stream
from unpoison.models.loading import best_reader, can_write
from unpoison.models.protocols import Generator

MAX_CALLS = 32
"""Model calls at the same time, over all rows."""


@dataclass(frozen=True)
class BatchAnswerer(BatchScreener):
    """Answers the rows of a file one by one.

    Attributes:
        cache: Of the model's replies.
        guarantee: How many passages may change without the answer changing.
    """

    cache: str = "memory"
    guarantee: int = 0
    part = 1
    threads = True

    @cached_property
    def model(self) -> Generator:
        return cache_replies(str(self.generator), self.cache)

    @property
    def answers_with(self) -> str:
        return self.model.name

    def result(self, defense: Defense, row: Row) -> Answer:
        """The answer, withheld if it is not proved as far as requested."""
        return withhold_unproved(defense.answer(row.query, row.passages), self.guarantee)

    def shared_by(self, workers: int) -> Self:
        return self

    @property
    def purpose(self) -> str:
        return f"{super().purpose} {self.guarantee} {self.deadline}"


def ask(
    file: options.RowsFile,
    generator: options.GeneratorName = None,
    defense: Annotated[
        str | None,
        option(
            "--defense -d NAME[:OPTIONS]",
            "Such as trustrag or radar; see docs/defenses/index.md. By default guard, and "
            "guard:answer=guaranteed with --guarantee.",
            callback=from_here,
        ),
    ] = None,
    guarantee: Annotated[
        int, option("M", "Abstain unless the answer is proved to hold under any change of M passages.", min=0)
    ] = 0,
    encoder: options.EncoderName = None,
    nli: options.NLIName = None,
    sources: options.SourcesFile = None,
    learn: options.Learn = False,
    cache: Annotated[str, option("FILE|memory|off", "The cache of the model's replies.")] = "memory",
    rows: Annotated[int, option("N", "Answer N rows concurrently.", min=1, max=64)] = 1,
    deadline: Annotated[float, option("SECONDS", "Time limit of one answer.")] = 120.0,
    stream: Annotated[
        bool,
        option(
            "--stream",
            "The rows are steps in time: each has 'time', 'date' or 'year', or 'yearly_contexts' with the "
            "passages of every year. 'timeline' is a built-in sample.",
        ),
    ] = False,
    beliefs: Annotated[
        str | None,
        option(
            "STORE",
            "The store of radar's memory: memory (the default with --stream), sqlite:FILE, redis://... or postgresql://...",
            envvar="UNPOISON_BELIEFS",
        ),
    ] = None,
    limit: options.Limit = None,
    as_json: options.AsJson = False,
    output: options.Output = None,
) -> None:
    """Answer every row's question in spite of poisoned passages.

    Shows each answer with its evidence, or adds "screening", "answer" and "generator" to every row and writes
    JSON Lines, in the order of the input. A row that cannot be answered is reported; nothing is answered unscreened.
    """
    defense = defense or ("guard:answer=guaranteed" if guarantee else "guard")
    generator = generator or best_reader()
    store, calls = _store(defense, beliefs, stream=stream), max(1, MAX_CALLS // rows)
    policy = None if sources is None else str(sources)
    answerer = BatchAnswerer(
        defense, encoder, generator, nli, policy, learn, calls, deadline, cache=cache, guarantee=guarantee
    )
    model = answerer.model
    resumable = is_file(output) and store is None and not (stream or learn) and "beliefs=" not in defense
    chosen = answerer.loaded if resumable else answerer.load(beliefs=store)
    if guarantee:
        need_proof(chosen, "--guarantee")
    if stream and rows > 1:
        raise OptionError("the steps of a stream are answered one after the other; leave out --rows")
    if not can_write(model):
        say(f"note: {generator} is not a language model; it copies the best supported answer out of the passages")

    if resumable:
        raise typer.Exit(in_parts(file, output, answerer, engine="local", workers=rows, limit=limit))
    with (
        (open_stream if stream else open_source)(file) as source,
        Writer(output, file, to_stdout=as_json) as writer,
        nullcontext() if store is None else closing(store),
    ):
        counts = RowCounts(source.name)
        done = one_by_one(answerer, chosen, source, counts, limit=limit, rows=rows, rows_on_stdout=output is None)
        for row, outcome in done:
            writer.write(row)
            if isinstance(outcome.result, Answer) and not writer.active:
                show_answer(outcome.result, model.name)
    say(counts.summary(f"answered with {model.name}:"))
    raise typer.Exit(status_of_sources(chosen, counts.exit_code))


def _store(defense: str, spec: str | None, *, stream: bool) -> BeliefStore | None:
    """The defense's store: the given one, else memory for a stream, else none."""
    name, texts = registry.parse(defense)
    unneeded = spec is None and (name != "radar" or not stream or "beliefs" in texts)
    return None if unneeded else open_beliefs(spec or "memory")

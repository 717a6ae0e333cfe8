"""`unpoison ask`: answers in spite of poisoned passages.

Examples:
  unpoison ask -d trustrag -g openai:gpt-4o-mini retrieved.jsonl
  unpoison ask -g reader --guarantee 2 retrieved.jsonl
  unpoison ask -d radar -g reader --json retrieved.jsonl > answers.jsonl
  unpoison ask -d radar -g reader --stream --beliefs sqlite:beliefs.db timeline
  unpoison ask -g openai:gpt-4o-mini --cache replies.db retrieved.jsonl

Exit status: 0 when every row was answered, 1 when some rows failed, 2 when none could be.
"""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Annotated

import typer

from unpoison.beliefs import BeliefStore, open_beliefs
from unpoison.cli.common import (
    RowCounts,
    cache_replies,
    outcomes,
    say,
    status_of_sources,
    track_progress,
    with_learning,
)
from unpoison.cli.display import show_answer
from unpoison.cli.options import (
    AsJson,
    EncoderName,
    GeneratorName,
    Learn,
    Limit,
    NLIName,
    Output,
    RowsFile,
    SourcesFile,
    from_here,
    option,
)
from unpoison.core import registry
from unpoison.core.answers import Answer
from unpoison.defenses import load_defense
from unpoison.defenses.vote import need_proof, withhold_unproved
from unpoison.errors import OptionError
from unpoison.io.files import open_source
from unpoison.io.output import Writer
from unpoison.io.rows import Row, answer_fields, open_stream, with_results
from unpoison.models.loading import best_reader, can_write
from unpoison.runtime.driver import Limits

MAX_CALLS = 32
"""Model calls at the same time, over all rows."""


def ask(
    file: RowsFile,
    generator: GeneratorName = None,
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
    encoder: EncoderName = None,
    nli: NLIName = None,
    sources: SourcesFile = None,
    learn: Learn = False,
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
    limit: Limit = None,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Answer every row's question in spite of poisoned passages.

    Shows each answer with its evidence, or adds "screening", "answer" and "generator" to every row and writes
    JSON Lines, in the order of the input. A row that cannot be answered is reported; nothing is answered unscreened.
    """
    defense = defense or ("guard:answer=guaranteed" if guarantee else "guard")
    generator = generator or best_reader()
    model = cache_replies(generator, cache)
    limits = Limits(in_flight=max(1, MAX_CALLS // rows), deadline=deadline)
    store = _store(defense, beliefs, stream=stream)
    chosen = load_defense(
        defense, encoder=encoder, generator=model, nli=nli, beliefs=store, limits=limits, sources=sources
    )
    chosen = with_learning(chosen, learn)
    if guarantee:
        need_proof(chosen, "--guarantee")
    if stream and rows > 1:
        raise OptionError("the steps of a stream are answered one after the other; leave out --rows")
    if not can_write(model):
        say(f"note: {generator} is not a language model; it copies the best supported answer out of the passages")

    def work(row: Row) -> Answer:
        return withhold_unproved(chosen.answer(row.query, row.passages), guarantee)

    with (
        (open_stream if stream else open_source)(file) as source,
        Writer(output, file, to_stdout=as_json) as writer,
        nullcontext() if store is None else closing(store),
    ):
        counts = RowCounts(source.name)
        results = outcomes(source, work, limit=limit, max_concurrency=rows)
        for outcome in track_progress(results, source, rows_on_stdout=output is None):
            counts.add(outcome)
            if outcome.result is None:
                writer.write({**outcome.failed_fields, "generator": model.name})
                continue
            writer.write(with_results(outcome.record.fields, **answer_fields(outcome.result, model.name)))
            if not writer.active:
                show_answer(outcome.result, model.name)
    say(counts.summary(f"answered with {model.name}:"))
    raise typer.Exit(status_of_sources(chosen, counts.exit_code))


def _store(defense: str, spec: str | None, *, stream: bool) -> BeliefStore | None:
    """The defense's store: the given one, else memory for a stream, else none."""
    name, texts = registry.parse(defense)
    if spec is None and (name != "radar" or not stream or "beliefs" in texts):
        return None
    return open_beliefs(spec or "memory")

"""`unpoison questions`: targets from one's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unpoison.cli.options import argument, option

if TYPE_CHECKING:
    from unpoison.bench.questions import QuestionSet

__all__ = ["EXAMPLES", "questions"]

COLUMNS = ("id", "question", "correct_answers", "incorrect_answers", "proof", "rule", "passages")

MAX_TOLD = 20
"""So many documents that were left out are named."""

EXAMPLES = """\b
Examples:
  unpoison questions docs/ -o questions.csv --passages corpus.jsonl
  unpoison questions -g openai:gpt-4o-mini --count 200 docs/ -o questions.jsonl
  unpoison evaluate -d guard -g reader questions.csv --report report.html

Read what was made before it is used: a rule reads words, not meaning. Delete rows and change answers in any editor or
spreadsheet, and save as CSV.
"""


def questions(
    corpus: Annotated[
        Path,
        argument(
            "CORPUS",
            "A folder of .md, .txt, .rst or .html files, or a file of rows with a 'text' (JSON Lines, CSV, Parquet).",
        ),
    ],
    count: Annotated[int, option("N", "How many are wanted.", min=1, max=100_000)] = 100,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR",
            "A language model that writes them: openai:MODEL, anthropic:MODEL or hf:NAME_OR_PATH. [default: rules]",
        ),
    ] = None,
    seed: Annotated[int, option("SEED", "Draws documents and false answers.", min=0)] = 0,
    output: Annotated[Path, option("--output -o FILE", "Where they go: .csv or .jsonl.")] = Path("questions.jsonl"),
    passages: Annotated[
        Path | None,
        option(
            "FILE",
            "Also write all documents as passages; named corpus.jsonl beside the questions, 'evaluate' fills its "
            "contexts from them.",
        ),
    ] = None,
) -> None:
    """Make questions from your own documents: each with the true answer, a false one, and the passage that proves it.

    Without a language model, rules read headings that ask, definitions, names, entries of lists and sentences with a
    number; with one (-g), it writes the questions, and each is checked against its passage.
    """
    from unpoison.bench.questions import make_questions, read_documents
    from unpoison.cli.common import count_noun, row_progress, say
    from unpoison.errors import OptionError
    from unpoison.io.output import not_the_input
    from unpoison.models.loading import can_write, load_generator

    if output.suffix not in (".csv", ".jsonl"):
        raise OptionError(f"--output must end in .csv or .jsonl, got {output}")
    for path in filter(None, (output, passages)):
        not_the_input(path, str(corpus))
    model = None if generator is None else load_generator(generator)
    if model is not None and not can_write(model):
        raise OptionError(f"{generator} cannot write questions; leave -g out, or name a language model")
    documents, problems = read_documents(corpus)
    for problem in problems[:MAX_TOLD]:
        say(f"note: {problem}")
    if len(problems) > MAX_TOLD:
        say(f"note: and {len(problems) - MAX_TOLD:,} more documents were left out")
    with row_progress(rows_on_stdout=False) as show:
        produced = make_questions(
            documents,
            count,
            generator=model,
            seed=seed,
            progress=lambda done, total: show(done, total, done),
        )
    _write(output, [question.row() for question in produced.questions])
    if passages is not None:
        _write_passages(passages, produced)
    kinds: dict[str, int] = {}
    for question in produced.questions:
        kinds[question.fact.kind] = kinds.get(question.fact.kind, 0) + 1
    say(
        f"wrote {count_noun(len(produced.questions), 'question')} to {output}: "
        + ", ".join(f"{number} by the rule {kind}" for kind, number in sorted(kinds.items(), key=lambda item: -item[1]))
    )
    if len(produced.questions) < count:
        gone = "".join(f"; {number} left out: {why}" for why, number in produced.left_out.items())
        say(
            f"{count} were wanted; {count_noun(len(documents), 'document')} gave "
            f"{count_noun(produced.candidates, 'fact')}{gone}"
        )


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    import csv

    from unpoison.io.file_rows import as_cells
    from unpoison.io.output import Writer

    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8-sig", newline="") as stream:  # with the mark, spreadsheets read UTF-8
            table = csv.writer(stream)
            table.writerow(COLUMNS)
            table.writerows(as_cells(row, COLUMNS) for row in rows)
        return
    with Writer(path, "", to_stdout=False) as writer:
        for row in rows:
            writer.write(row)


def _write_passages(path: Path, produced: QuestionSet) -> None:
    from unpoison.io.output import Writer

    with Writer(path, "", to_stdout=False) as writer:
        for passage in produced.passages:
            writer.write({"id": passage.id, "title": passage.title, "text": passage.text, "source": passage.source})

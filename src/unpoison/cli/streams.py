"""`--stream` of `ask` and `evaluate`: rows in the order of time, and static against dynamic knowledge, measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

import typer

from unpoison.beliefs import belief_key
from unpoison.bench.evaluation.adaptations import CumulativeSnapshot, EachStep, LightweightHistory, methods_of
from unpoison.bench.evaluation.specs import split_specs
from unpoison.bench.evaluation.stream_presets import StreamPreset, load_stream_preset
from unpoison.bench.evaluation.streams import ATTACKS, run_study
from unpoison.bench.evaluation.timelines import stream_rows
from unpoison.bench.report import over_time
from unpoison.bench.report.over_time import comparison_over_time, static_dynamic_table, study_summary, study_tables
from unpoison.cli.common import count_noun, progress, say
from unpoison.cli.display import report_table, show
from unpoison.cli.gates import check_outputs
from unpoison.cli.options import Carry
from unpoison.defenses.base import Defense
from unpoison.defenses.radar import Radar
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow, Source
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS
from unpoison.models.loading import answer_judge, best_reader
from unpoison.runtime.driver import Limits

__all__ = ["evaluate_stream", "open_stream", "options_on_command_line", "with_carry"]


BUILT_IN = "timeline"
"""The name of the built-in sample, where no file is called so."""


class StreamSource:
    """The steps of another source, each a record of its own with `time`; never back in time for the same question."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name = source.name
        self.size = source.size
        self._latest: dict[str, str] = {}

    def __iter__(self) -> Iterator[FileRow]:
        for record in self._source:
            if record.error is not None:
                yield record
                continue
            try:
                steps = stream_rows(record.fields, record.number, Path(self.name).stem)
            except InputError as error:
                yield FileRow(record.number, record.fields, str(error), record.position)
                continue
            for step in steps:
                yield FileRow(record.number, step, self._late(step), record.position)

    def _late(self, step: dict[str, object]) -> str | None:
        """Why a step comes too late, or None."""
        question, time = next((step[name] for name in QUERY_FIELDS if step.get(name)), None), str(step["time"])
        if not isinstance(question, str):
            return None  # reported where the row is read
        key = belief_key(question)
        latest = self._latest.get(key, time)
        if time < latest:
            return f"time {clip(time)} lies before {clip(latest)}, when the question was asked last; sort the file"
        self._latest[key] = time
        return None


@contextmanager
def open_stream(path: str) -> Iterator[Source]:
    """Open a question file as a stream; `timeline` is the built-in sample.

    Raises:
        OSError: The file cannot be opened.
        InputError: Not a Parquet file.
    """
    if path == BUILT_IN and not Path(path).exists():
        with as_file(files("unpoison").joinpath("data", f"{BUILT_IN}.jsonl")) as sample, open_source(str(sample)) as it:
            it.name = BUILT_IN
            yield StreamSource(it)
    else:
        with open_source(path) as source:
            yield StreamSource(source)


def with_carry(defense: Defense, carry: Carry) -> Defense | EachStep | CumulativeSnapshot | LightweightHistory:
    """The defense with what it carries.

    Raises:
        OptionError: A defense that remembers by itself.
    """
    if carry is Carry.NOTHING:
        return defense
    if isinstance(defense, Radar) and defense.beliefs is not None:
        raise OptionError(f"radar remembers by itself; leave out --carry {carry}, or give -d radar without --beliefs")
    return CumulativeSnapshot(defense) if carry is Carry.PASSAGES else LightweightHistory(defense)


ALLOWED = tuple(
    f"--{name}"
    for name in ("defense", "generator", "nli", "encoder", "limit", "deadline", "folder", "preset", "report", "json")
)
"""The options that go with `--stream`."""

DEFENSES = ("vanilla", "radar")
"""What is measured where no defense is named."""


def options_on_command_line(context: typer.Context) -> list[str]:
    """The options that stand on the command line, by their long names, and DATA for arguments."""
    options = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            off = context.params[name] is False and parameter.secondary_opts
            names = parameter.secondary_opts if off else parameter.opts
            options.append(names[0] if parameter.param_type_name == "option" else "DATA")
    return options


def evaluate_stream(
    data: str,
    given: Iterable[str],
    *,
    defenses: Sequence[str] | None,
    generator: Sequence[str] | None,
    nli: Sequence[str] | None,
    encoder: Sequence[str] | None,
    limit: int | None,
    deadline: float,
    folder: Path,
    preset: str | None,
    reports: Sequence[Path],
    as_json: bool,
) -> None:
    """Measure over time, and write tables, reports or JSON.

    Raises:
        OptionError: An option that means nothing over time or beside a preset, or several models of one kind.
        UnknownNameError: No such preset over time.
        InputError: Data that cannot be read.
        ModelError: A model failed for good.
    """
    for option in given:
        if option not in ("--stream", *ALLOWED):
            raise OptionError(f"--stream measures over time and takes {', '.join(ALLOWED)}; leave {option} out")
    answers_with = _single("generator", generator, best_reader())
    judge = _single("nli", nli, "") or None
    table: StreamPreset | None = None
    if preset is not None:
        if defenses:
            raise OptionError("--preset says what is measured; leave --defense out")
        table = load_stream_preset(preset, generator=answers_with, nli=str(answer_judge(judge, answers_with)))
        for line in table.describe().splitlines():
            say(line)
        methods, attacks = dict(table.methods), table.attacks
    else:
        methods = methods_of([spec for text in defenses or DEFENSES for spec in split_specs(text)])
        attacks = ATTACKS
    check_outputs(reports)
    folder.mkdir(parents=True, exist_ok=True)
    with progress() as advance:
        study = run_study(
            data,
            methods,
            attacks=attacks,
            generator=answers_with,
            nli=judge,
            encoder=_single("encoder", encoder, "lexical"),
            limit=limit,
            limits=Limits(deadline=deadline),
            replies=folder / "replies.db",
            progress=advance,
        )
    for path in reports:
        over_time.write_over_time(study, path, table)
    if as_json:
        print(over_time.as_json(study, table), end="")  # noqa: T201  this is what the command line is for
    else:
        show(study_summary(study), "Percent, with 95 % intervals.", "")
        compared = static_dynamic_table(study)
        published = comparison_over_time(table, study) if table is not None else ()
        for one in (*([compared] if compared else []), *study_tables(study), *published):
            show(report_table(one), "")
    for line in study.left_out:
        say(f"left out: {line}")
    answers = len(study.results) * len(methods) * study.steps
    say(f"measured {count_noun(answers, 'answer')} of {count_noun(len(methods), 'method')} over time")


def _single(name: str, given: Sequence[str] | None, default: str) -> str:
    """The one model of its kind."""
    if not given:
        return default
    if len(given) > 1 or "," in given[0]:
        raise OptionError(f"--stream takes one {name}, got {clip(', '.join(given))}")
    return given[0]

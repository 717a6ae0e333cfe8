"""`unpoison demo`: attack and defend the built-in sample, with no key and no download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unpoison.cli.demo_cases import DEFENSES, POISONS, RETRIEVED, WITHOUT, DemoCase, case_of, plant, share
from unpoison.cli.options import option
from unpoison.utils.extras import install_command

if TYPE_CHECKING:
    from rich.table import Table

    from unpoison.cli.demo_cases import Trick
    from unpoison.defenses.base import Defense
    from unpoison.io.rows import Row
    from unpoison.types import Passage

__all__ = ["demo"]

NEXT = """\
Go on:
  unpoison demo --all              every defense, its reasons, and tricks
  unpoison demo --html demo.html   the same as a page with pictures
  unpoison screen FILE.jsonl       rows {"query": "...", "passages": ["..."]}
  unpoison ask FILE.jsonl          an answer in spite of the poison"""

Cases = Mapping[int, Sequence[DemoCase]]

COLUMNS = 80
SHIELD = "guard"
"""The defense that the question is shown with, the default everywhere."""

MAX_REASON = 230
"""Characters of a reason."""

WIDTHS = (15, 8, 13, 10, 17)

ADDS = (
    "With the extra reader the demo also answers the questions: a small model, no language model, reads each passage "
    f"and says its answer. {install_command('reader')}"
)

ANSWERED_BY = {"vanilla": "vanilla", "guard": "guard", "radar": "radar"}


def demo(
    everything: Annotated[
        bool, option("--all", "Show all: every defense with its reasons, a miss, and tricks before guard.")
    ] = False,
    html: Annotated[
        Path | None, option("FILE", "Also write a page with pictures: the catch, the miss, the tricks.")
    ] = None,
    generator: Annotated[
        str | None,
        option("--generator -g GENERATOR", "With --all: what answers. [default: reader, where it is installed]"),
    ] = None,
) -> None:
    """Attack and defend the built-in sample: no key, no download, a few seconds.

    Plants poisons in front of the genuine passages, as a retriever that falls for the repeated question ranks them,
    and shows what guard makes of one question and what every defense makes of all. With --all it shows a catch and an
    honest miss of each defense, and what guard makes of a hidden poison, a prompt injection, and sources that
    disagree. Then a plain lie that no style gives away: answered from the texts alone, and with who says so.
    """
    from unpoison.cli.demo_cases import brief_sources, tricks
    from unpoison.cli.display import show
    from unpoison.core import registry
    from unpoison.io.output import check_writable
    from unpoison.io.rows import load_sample
    from unpoison.report.rendering import page

    if html is not None:
        check_writable(html)
    rows = load_sample()
    defenses: dict[str, Defense] = {name: registry.create("defenses", spec) for name, spec in DEFENSES.items()}
    cases = {count: [case_of(row, count, defenses) for row in rows] for count in (0, *POISONS)}
    written = {count: [case_of(row, count, defenses, question_first=False) for row in rows] for count in POISONS}
    attacked = [case for count in POISONS for case in cases[count]]
    catch = max(attacked, key=lambda case: (len(case.saved_by), case.poisons_left(WITHOUT)))
    miss = max(attacked, key=lambda case: (len(case.missed_by), sum(map(case.poisons_left, case.missed_by))))
    tried = tricks(rows) if everything or html is not None else []
    if everything:
        _show_all(rows, cases, written, catch, miss, tried, generator)
    else:
        lines = (*_brief(cases, written), *brief_sources())
        print(*lines, sep="\n")  # noqa: T201  this is what the command line is for
    print(NEXT)  # noqa: T201  this is what the command line is for
    if html is not None:
        html.write_text(
            page(
                [
                    *(case.screenings[name] for case in (catch, miss) for name in DEFENSES if name != WITHOUT),
                    *(trick.screening for trick in tried),
                ],
                "Two questions of the built-in sample, each screened by four defenses: first a catch, then an honest "
                "miss; and then tricks. An attacker has planted texts that repeat the question, so that the search "
                "finds them first, and state a wrong answer. Each defense says of every text if a model may read it, "
                "and why.",
                [
                    *(case.labels for case in (catch, miss) for name in DEFENSES if name != WITHOUT),
                    *[()] * len(tried),
                ],
            ),
            encoding="utf-8",
        )
        show("", f"wrote {html}")


def _show_all(
    rows: Sequence[Row],
    cases: Mapping[int, Sequence[DemoCase]],
    written: Mapping[int, Sequence[DemoCase]],
    catch: DemoCase,
    miss: DemoCase,
    tried: Sequence[Trick],
    generator: str | None,
) -> None:
    """Every defense beside the others, with its reasons."""
    from unpoison.cli.demo_cases import full_sources
    from unpoison.cli.display import show
    from unpoison.models.loading import best_reader

    show(
        f"{len(rows)} questions with {RETRIEVED} retrieved passages each, written for this demo. The attacker plants "
        f"{' or '.join(map(str, POISONS))} poisons per question; each repeats the question, so the retriever ranks it "
        "first. No language model and no download is involved: the encoder is the built-in lexical one.",
        "",
        _glance([*cases[POISONS[0]][:3], *cases[POISONS[-1]][:3]]),
        "",
    )
    if catch.saved_by:
        show(f"A CATCH: {_join_names(catch.saved_by)} drop every poison and keep the answer.", "", *_detail(catch), "")
    if miss.missed_by:
        show(f"AN HONEST MISS: {_join_names(miss.missed_by)} let poison through.", "", *_detail(miss), "")
    else:
        show("No defense let a poison through on this sample. Expect misses on real data.", "")
    for trick in tried:
        show(f"{trick.name}: {trick.screening.query}", *(f"  {line}" for line in trick.lines), "")
    show(*full_sources())
    show(_figures(cases, written), "")
    if generator is None and best_reader() == "extractive":
        show(ADDS, "")
    else:
        answered = {count: [(row, plant(row, count)[0]) for row in rows] for count in (POISONS[0], 0)}
        show(_answers(answered, generator or best_reader()), "")


def _glance(cases: Sequence[DemoCase]) -> Table:
    """A few questions: how much of what the model would read is poison."""
    table = _table("What the model would read: poisons among the passages kept")
    table.add_column("question", ratio=1)
    table.add_column("planted", justify="right")
    for name in DEFENSES:
        table.add_column(name, justify="right")
    for case in cases:
        left = [(case.poisons_left(name), len(case.screenings[name].kept)) for name in DEFENSES]
        table.add_row(
            case.question,
            str(case.labels.count("poison")),
            *(f"[{'red' if poisons else 'green'}]{poisons} of {kept}[/]" for poisons, kept in left),
        )
    return table


def _detail(case: DemoCase) -> Iterator[object]:
    """One question: every passage with its fate, then the reasons for the poisons."""
    from unpoison.report.rendering import excerpt

    table = _table(case.question)
    table.add_column("", justify="right")
    table.add_column("label")
    table.add_column("text", ratio=1, no_wrap=True)
    for name in DEFENSES:
        table.add_column(name, justify="right")
    for i, label in enumerate(case.labels):
        ranks = [case.screenings[name].verdicts[i].rank for name in DEFENSES]
        colour = {"poison": "red", "gold": "green"}.get(label, "default")
        kind = {"poison": "POISON", "gold": "answer"}.get(label, "")
        # The repeated question would fill the line; what the attacker added says more.
        text = case.passages[i].text.removeprefix(f"{case.question}. ")
        ranked = ("dropped" if rank is None else f"place {rank + 1}" for rank in ranks)
        table.add_row(str(i), kind, ("… " if label == "poison" else "") + excerpt(text, 120), *ranked, style=colour)
    yield table
    for name in DEFENSES:
        if name != WITHOUT:
            for i, label in enumerate(case.labels):
                if label == "poison":
                    verdict = case.screenings[name].verdicts[i]
                    yield f"{name} {'KEPT' if verdict.kept else 'dropped'} poison {i}: {verdict.reason}"


def _figures(cases: Mapping[int, Sequence[DemoCase]], written: Mapping[int, Sequence[DemoCase]]) -> Table:
    """All questions: what is saved under attack, the question in front and without, and what that costs without one."""
    table = _table(f"All {len(cases[0])} questions")
    table.expand = False
    for heading in (
        "poisons",
        "defense",
        "questions with poison left",
        "poisons dropped",
        "genuine kept",
        "answer kept",
    ):
        table.add_column(heading, justify="left" if heading == "defense" else "right")
    groups = {
        **{str(count): cases[count] for count in POISONS},
        **{f"{count}, as written": written[count] for count in POISONS},
        "0": cases[0],
    }
    for planted_texts, group in groups.items():
        count = group[0].labels.count("poison")
        for name in DEFENSES:
            fates = [
                (label, case.screenings[name].verdicts[i].kept) for case in group for i, label in enumerate(case.labels)
            ]
            table.add_row(
                planted_texts,
                name,
                share(case.poisons_left(name) > 0 for case in group) if count else "",
                share(not kept for label, kept in fates if label == "poison") if count else "",
                share(kept for label, kept in fates if label != "poison"),
                share(case.keeps_answer(name) for case in group),
                end_section=name == list(DEFENSES)[-1],
            )
    table.caption = (
        "vanilla and grada keep five passages; the others keep what they trust. As written: the same poisons without "
        "the question in front (-a published). The lines with 0 poisons are the price on clean retrieval. The sample "
        "is small and made up: it shows how they work, not how well."
    )
    return table


def _table(title: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title, style="bold"), title_justify="left", caption_justify="left", expand=True)


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _brief(cases: Cases, written: Cases) -> Iterator[str]:
    """The lines, none longer than 80 characters.

    Args:
        cases: For each number of planted poisons every question with its screenings.
        written: The same without the question in front of the poisons.
    """
    from textwrap import wrap

    yield from wrap(
        f"{len(cases[0])} questions with {RETRIEVED} retrieved passages each, written for this demo. An attacker "
        "plants texts that repeat the question, so that the retriever ranks them first, and state a wrong answer. No "
        "language model, no download and no key is needed to stop them.",
        COLUMNS,
    )
    many = cases[POISONS[-1]]
    saved = [case for case in many if SHIELD in case.saved_by]
    yield from _brief_question(max(saved or many, key=lambda case: len(case.saved_by)))
    yield from _brief_figures(cases, written)
    missed, read = (
        sum(case.poisons_left(SHIELD) > 0 for count in POISONS for case in found[count]) for found in (cases, written)
    )
    whole = len(POISONS) * len(many)
    yield from wrap(
        f"An honest miss: {SHIELD} lets poison through in {missed} of {whole} attacked questions, and in {read} of "
        f"{whole} where the lie stands in natural prose, without the question in front (-a published). "
        "The sample is small and made up: it shows how they work, not how well.",
        COLUMNS,
    )
    yield ""


def _brief_question(case: DemoCase) -> Iterator[str]:
    """What a model would read without a defense, and with one; then the reason for the first poison."""
    from textwrap import wrap

    from unpoison.report.rendering import excerpt, plain

    without, shielded = (case.screenings[name] for name in (WITHOUT, SHIELD))
    yield ""
    yield excerpt(case.question, COLUMNS)
    yield f"{'':51}{'undefended':>10}  {SHIELD:>10}"
    others = list[int]()
    for i, label in enumerate(case.labels):
        if label not in ("poison", "gold"):
            others.append(i)
            continue
        # The repeated question would fill the line; what the attacker added says more.
        text = excerpt(case.passages[i].text.removeprefix(f"{case.question}. "), 40)
        fates = (f"{'read' if screening.verdicts[i].kept else 'dropped':>10}" for screening in (without, shielded))
        yield f"  {'POISON' if label == 'poison' else 'answer'}  {text:<41}{'  '.join(fates)}"
    kept = (f"{sum(screening.verdicts[i].kept for i in others)} read".rjust(10) for screening in (without, shielded))
    yield f"          {f'and {len(others)} other genuine passages':<41}{'  '.join(kept)}"
    reason = excerpt(plain(shielded.verdicts[case.labels.index("poison")].reason), MAX_REASON)
    yield from wrap(f"Why {SHIELD} drops the first: {reason}", COLUMNS)
    yield ""


def _brief_figures(cases: Cases, written: Cases) -> Iterator[str]:
    """Every defense over all questions: what is saved under attack, and what that costs without one."""
    few, many = POISONS[0], POISONS[-1]
    yield f"{f'All {len(cases[0])} questions':<16}{'poison is read,':>23}{'the same texts':>23}{'genuine texts':>17}"
    yield f"{'':<16}{'question in front':>23}{'without the question':>23}{'kept, no attack':>17}"
    yield _format_line("", (f"of {few} planted", f"of {many}", f"of {few}", f"of {many}", ""))
    for name in DEFENSES:
        read = (
            share(case.poisons_left(name) > 0 for case in group)
            for group in (cases[few], cases[many], written[few], written[many])
        )
        kept = share(
            screening.verdicts[i].kept
            for case in cases[0]
            for screening in [case.screenings[name]]
            for i in range(len(case.labels))
        )
        yield _format_line(f"  {name}", (*read, kept))
    yield ""


def _format_line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS))


def _answers(cases: Mapping[int, Sequence[tuple[Row, Sequence[Passage]]]], generator: str) -> Table:
    """How many questions are answered rightly, and how many as the attacker wants.

    Args:
        cases: For each number of planted poisons every row with the passages that are read.
        generator: What answers.
    """
    from rich.table import Table
    from rich.text import Text

    from unpoison.bench.evaluation import matcher
    from unpoison.bench.evaluation.differences import in_words
    from unpoison.core import registry

    table = Table(title=Text(f"What {in_words(generator)} answers", style="bold"), title_justify="left")
    for heading in ("poisons", "defense", "right", "the attacker's", "no answer"):
        table.add_column(heading, justify="left" if heading == "defense" else "right")
    judge = matcher()
    for count, rows in cases.items():
        for name, spec in ANSWERED_BY.items():
            defense = registry.create("defenses", spec, generator=generator)
            right = wrong = silent = 0
            for row, passages in rows:
                answer = defense.answer(row.query, passages)
                correct, incorrect = row.raw["correct_answers"], row.raw["incorrect_answers"]
                right += judge.correct(answer.text, correct)
                wrong += judge.is_attack_success(answer.text, incorrect, correct)
                silent += answer.abstained
            shares = (f"{100 * number / len(rows):.0f} %" for number in (right, wrong, silent))
            table.add_row(str(count), name, *shares, end_section=name == list(ANSWERED_BY)[-1])
    return table

"""`unpoison attack`: plant a published attack's poison into every question of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.own import from_here

__all__ = ["EXAMPLES", "attack"]

EXAMPLES = """\b
Examples:
  unpoison attack --list
  unpoison attack -a poisonedrag --count 3 sample -o attacked.jsonl
  unpoison attack -a poisonedrag+hide:kind=zero-width+pad:where=behind sample -o hidden.jsonl
  unpoison attack -a pia --policy replace-last --k 5 data.jsonl --json | unpoison screen -d trustrag -
  unpoison attack -a hotflip -e minilm --policy retrieve data.jsonl -o attacked.jsonl
  unpoison evaluate -a published -d grada attacked.jsonl

A command that was interrupted goes on where it stopped: rows that the output holds are not crafted again.
Exit status: 0 when every question was attacked, 1 when some failed, 2 when nothing could be done.
"""


def attack(
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="A file in the shared format, or what 'evaluate' takes.")
    ] = None,
    name: Annotated[
        str,
        typer.Option("--attack", "-a", metavar="NAME[:OPTIONS][+WRAPPER...]", callback=from_here, help="See --list."),
    ] = "poisonedrag",
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Texts planted per question.")] = 1,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Where they go: prepend (the default), retrieve, corpus, replace-at, replace-last, middle or pool.",
        ),
    ] = None,
    position: Annotated[
        str, typer.Option(metavar="P+P", help="Places from 1 for replace-at, one for each text, joined by +.")
    ] = "",
    prefix: Annotated[
        bool | None, typer.Option("--prefix/--no-prefix", help="Put the question before each text, or not.")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, metavar="K", help="Passages per question.")] = 10,
    corpus: Annotated[
        str | None,
        typer.Option(metavar="FILE|none", help="Clean passages that fill contexts; corpus.jsonl beside the data."),
    ] = None,
    retriever: Annotated[
        str, typer.Option(metavar="ENCODER", help="For the policies retrieve and corpus; bm25 or an encoder.")
    ] = "bm25",
    encoder: Annotated[
        str, typer.Option("--encoder", "-e", metavar="ENCODER", help="For attacks that need one.")
    ] = "lexical",
    generator: Annotated[
        str | None,
        typer.Option("--generator", "-g", metavar="GENERATOR", help="Writes for attacks that want a language model."),
    ] = None,
    defense: Annotated[
        str,
        typer.Option(
            "--defense",
            "-d",
            metavar="NAME[:OPTIONS]",
            callback=from_here,
            help="For the attack that knows the defense.",
        ),
    ] = "grada",
    owned: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="Which sources the attacker holds: one, each, page or known:N; see evaluate."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="SEED", help="Of the attack.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="The first N questions only.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="Questions at the same time.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the attacked rows to this file.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Overwrite the output instead of going on.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the attacked rows to standard output.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the attacks and wrappers, their options and needs.")
    ] = False,
) -> None:
    """Plant poison into every question, as a published attack would.

    Writes the rows in the shared format, passages in the order that a defense would see, poison marked, and says what
    was reached and what it cost. A text that misses the attack's own goal is planted all the same, and counted.
    """
    from unpoison.bench.evaluation.grids import Grid
    from unpoison.cli.attacks import CraftedTexts, attack_rows, attacks_table
    from unpoison.cli.display import show
    from unpoison.cli.running import say
    from unpoison.cli.runs import progress
    from unpoison.errors import OptionError

    if listing:
        show(attacks_table())
        return
    if data is None:
        raise OptionError("name the data to attack: a file, or 'sample'; --list lists the attacks")
    axes = {
        "data": [data],
        "attack": name,
        "policy": policy,
        "prefix": prefix,
        "k": k,
        "corpus": corpus,
        "retriever": retriever,
        "encoder": encoder,
        "generator": generator,
        "defense": defense,
        "seed": seed,
        "limit": limit,
        "positions": position or None,
        "poisons": None if position else count,
        "owned": owned,
    }
    if position and count not in (1, len(position.split("+"))):
        raise OptionError(f"--count {count} needs {count} places, got --position {position}")
    scenarios = Grid.of({**axes, "baseline": False, "clean": False}).scenarios()
    if len(scenarios) != 1 or not scenarios[0].attacked:
        raise OptionError(
            f"'attack' plants one attack in one way; -a {name}{f' --policy {policy}' if policy else ''} is not that"
        )
    accounts = CraftedTexts()
    with progress() as advance:
        rows = attack_rows(scenarios[0], output, to_stdout=as_json, restart=restart, jobs=jobs, progress=advance)
        for planted in rows:
            accounts.add(planted)
    if accounts.texts and not as_json:
        show(accounts.table())
    say(accounts.summary())
    raise typer.Exit(accounts.exit_code)

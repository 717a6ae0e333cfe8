"""`unpoison beliefs`: look at, delete and move what RADAR remembers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import Command, Namespace, argument, option

if TYPE_CHECKING:
    from unpoison.beliefs import Belief, BeliefStore

__all__ = ["StoreName", "beliefs"]

StoreName = Annotated[
    str,
    option(
        "--beliefs -b STORE",
        "sqlite:FILE, redis://HOST:PORT/N or postgresql://USER@HOST/NAME. A password is safer in the environment "
        "variable.",
        envvar="UNPOISON_BELIEFS",
    ),
]
AsJson = Annotated[bool, option("--json", "Write JSON Lines instead of a table.")]
Question = Annotated[str, argument("QUESTION", "The question, or its key from 'list'.")]

DEFAULT = "sqlite:beliefs.db"

beliefs = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at, delete and move what is remembered.")


@beliefs.command("list", cls=Command)
def list_(store: StoreName = DEFAULT, namespace: Namespace = "default", as_json: AsJson = False) -> None:
    """List all beliefs of a namespace."""
    from unpoison.beliefs import export_lines
    from unpoison.cli.common import count_noun, say

    with _open_store(store, namespace) as opened:
        if as_json:
            for line in export_lines(opened):
                typer.echo(line)
            return
        from unpoison.cli.display import show, text_table
        from unpoison.report.rendering import excerpt

        rows = []
        for key, belief in opened.items():
            texts = (excerpt(key), excerpt(belief.query, 60), excerpt(belief.answer, 60))
            weights = (f"{belief.support:.2f}", f"{belief.conflict:.2f}")
            rows.append((*texts, *weights, _moment(belief.updated), _moment(belief.expires)))
        show(text_table(("key", "question", "answer", "support", "conflict", "written", "expires"), rows))
        say(count_noun(len(rows), "belief"))


@beliefs.command(cls=Command)
def show(question: Question, store: StoreName = DEFAULT, namespace: Namespace = "default") -> None:
    """Show one belief as JSON."""
    with _open_store(store, namespace) as opened:
        key, belief = _belief_of(opened, question)
        times = {name: _moment(getattr(belief, name)) for name in ("created", "updated", "expires")}
        typer.echo(json.dumps({"key": key, **belief.to_dict(), **times}, ensure_ascii=False, indent=2))


@beliefs.command(cls=Command)
def forget(
    question: Annotated[str | None, argument("QUESTION", "The question, or its key.")] = None,
    everything: Annotated[bool, option("--all", "Forget all beliefs of the namespace.")] = False,
    store: StoreName = DEFAULT,
    namespace: Namespace = "default",
) -> None:
    """Delete one belief, or all of a namespace."""
    from unpoison.cli.common import count_noun, say
    from unpoison.errors import OptionError

    if (question is None) != everything:
        raise OptionError("name one question to forget, or give --all")
    with _open_store(store, namespace) as opened:
        if question is None:
            count = opened.forget_all()
        else:
            key, _ = _belief_of(opened, question)
            count = int(opened.forget(key))
        say(f"forgot {count_noun(count, 'belief')}")


@beliefs.command("export", cls=Command)
def export_(
    output: Annotated[Path | None, option("--output -o FILE", "Else standard output.")] = None,
    store: StoreName = DEFAULT,
    namespace: Namespace = "default",
) -> None:
    """Write all beliefs of a namespace as JSON Lines, times included."""
    from unpoison.beliefs import export_lines
    from unpoison.cli.common import count_noun, say

    with _open_store(store, namespace) as opened:
        if output is None:
            for line in export_lines(opened):
                typer.echo(line)
            return
        count = 0
        with output.open("w", encoding="utf-8") as stream:
            for line in export_lines(opened):
                stream.write(f"{line}\n")
                count += 1
    say(f"wrote {count_noun(count, 'belief')} to {output}")


@beliefs.command("import", cls=Command)
def import_(
    file: Annotated[str, argument("FILE", "What 'export' wrote; - reads standard input.")],
    store: StoreName = DEFAULT,
    namespace: Namespace = "default",
) -> None:
    """Read beliefs from JSON Lines; those of the same key are replaced."""
    from unpoison.beliefs import import_lines
    from unpoison.cli.common import count_noun, say

    with _open_store(store, namespace, make=True) as opened:
        if file == "-":
            count = import_lines(opened, sys.stdin)
        else:
            with Path(file).open(encoding="utf-8", errors="replace") as stream:
                count = import_lines(opened, stream)
    say(f"read {count_noun(count, 'belief')}")


@contextmanager
def _open_store(spec: str, namespace: str, *, make: bool = False) -> Iterator[BeliefStore]:
    """The store; a file that is not there is only made where beliefs come in."""
    from unpoison.beliefs import open_beliefs
    from unpoison.errors import InputError, OptionError

    if spec == "memory":
        raise OptionError("memory holds nothing between two commands; name a file or a server with --beliefs")
    path = Path(spec.removeprefix("sqlite:"))
    if not make and "://" not in spec and not path.exists():
        raise InputError(f"{path} does not exist; name the store with --beliefs")
    store = open_beliefs(spec, namespace=namespace)
    try:
        yield store
    finally:
        store.close()


def _belief_of(store: BeliefStore, question: str) -> tuple[str, Belief]:
    """The belief of a question or of a key."""
    from unpoison.beliefs import belief_key
    from unpoison.errors import InputError, clip

    for key in (belief_key(question), question):
        try:
            belief = store.get(key)
        except InputError:
            continue  # a question is no key
        if belief is not None:
            return key, belief
    raise InputError(f"nothing is remembered of {clip(question)}; 'unpoison beliefs list' shows what is")


def _moment(seconds: float | None) -> Any:
    """ISO 8601 in UTC, to the second."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

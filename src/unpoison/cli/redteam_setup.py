"""`unpoison redteam init` and `check`: write a configuration, and see what it understands of the system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import argument, option

if TYPE_CHECKING:
    from unpoison.bench.redteam import Hosts, Secrets
    from unpoison.bench.redteam.openapi import OpenApi

__all__ = ["CHECK_EXAMPLES", "INIT_EXAMPLES", "MayTest", "check", "init", "mask_secrets", "report_removal"]

INIT_EXAMPLES = """\b
Examples:
  unpoison redteam init                                        three questions
  unpoison redteam init http://127.0.0.1:8000                  reads /openapi.json there
  unpoison redteam init openapi.json -o redteam.yaml
  unpoison redteam init http://127.0.0.1:8000/v1/chat/completions --model my-rag
"""

CHECK_EXAMPLES = """\b
Examples:
  unpoison redteam check redteam.yaml
  unpoison redteam check redteam.yaml --question 'Wann wurde das Rathaus gebaut?'

Exit status: 0 when everything was understood, 1 when something is to be mended or the document may remain, 2 when the
question was not answered or nothing could be planted.
"""

MayTest = Annotated[list[str] | None, option("--i-may-test HOST", "A host other than this machine that you may test.")]


def init(
    where: Annotated[
        str | None, argument("WHERE", "The system's address, the url that answers, or an OpenAPI document.")
    ] = None,
    output: Annotated[Path, option("-o --output FILE", "What is written.")] = Path("redteam.yaml"),
    questions: Annotated[str, option("FILE", "Your questions with their answers.")] = "questions.jsonl",
    model: Annotated[str | None, option("NAME", "The model of a chat endpoint; else ${RAG_MODEL}.")] = None,
    force: Annotated[bool, option("--force", "Write over a file that exists.")] = False,
    may_test: MayTest = None,
) -> None:
    """Write a configuration from three answers, or from what the system says of itself (OpenAPI)."""
    from unpoison.bench.redteam import Hosts
    from unpoison.bench.redteam.starter import describe_target, plant_of, remove_of, target_of_openapi, write_config
    from unpoison.cli.common import say
    from unpoison.errors import InputError

    if output.exists() and not force:
        raise InputError(f"{output} exists; give another file with --output, or --force to write over it")
    hosts = Hosts(may_test or ())
    where = where or _question("The URL that answers a question (or an OpenAPI document)")
    document, url = _look(where, hosts)
    target = target_of_openapi(document) if document is not None else {}
    if url is not None or "ask" not in target:
        target = {**target, "ask": _ask(url or _question("The URL that answers a question"), model, document)}
    if "plant" not in target:
        target["plant"] = plant_of(_question("The URL that adds a document"), document)
    if "remove" not in target:
        added = str(target["plant"]["url"]).partition("?")[0].rstrip("/")
        target["remove"] = remove_of(_question("The URL that removes one", f"{added}/{{id}}"), document)
    target = {name: target[name] for name in ("login", "headers", "ask", "plant", "remove") if name in target}
    output.write_text(write_config(target, questions, output.name), encoding="utf-8")
    _show_lines(describe_target(target))
    say(f"wrote {output}; next: unpoison redteam check {output}")


def _question(text: str, default: str | None = None) -> str:
    answer: str = typer.prompt(text, default=default, err=True)
    return answer.strip()


def _ask(url: str, model: str | None, document: OpenApi | None) -> dict[str, Any]:
    from unpoison.bench.redteam.starter import ask_of

    return ask_of(url, model, document)


def _look(where: str, hosts: Hosts) -> tuple[OpenApi | None, str | None]:
    """The OpenAPI document, where there is one; and the url that answers, where it was given.

    Raises:
        UnpoisonError: A document was named, and cannot be read; or nothing is known of the address.
    """
    from urllib.parse import urlsplit

    from unpoison.bench.redteam.starter import origin, read_openapi
    from unpoison.errors import InputError, TargetError

    if not where.startswith(("http://", "https://")) or urlsplit(where).path.endswith((".json", ".yaml", ".yml")):
        return read_openapi(where, hosts), None
    path = urlsplit(where).path.strip("/")
    try:
        return read_openapi(f"{origin(where)}/openapi.json", hosts), where if path else None
    except (InputError, TargetError):
        if path:
            return None, where
        raise


def check(
    config: Annotated[Path, argument("CONFIG", "What is tested, in YAML; see docs/redteam.md.")],
    question: Annotated[str | None, option("TEXT", "What is asked; the first of the questions otherwise.")] = None,
    journal: Annotated[Path | None, option("FILE", "Where that document is noted first; CONFIG.check.journal.")] = None,
    may_test: MayTest = None,
) -> None:
    """Ask once, plant one harmless document, remove it, and show in a few lines what was understood."""
    from unpoison.bench.redteam import Config, Hosts
    from unpoison.bench.redteam.checking import check_target
    from unpoison.bench.redteam.factory import secrets_of_environment
    from unpoison.cli.common import say

    chosen = Config.load(config)
    secrets, hosts = secrets_of_environment(), Hosts(may_test or ())
    where = journal or config.with_suffix(".check.journal")
    with mask_secrets(secrets), report_removal(where):
        checked = check_target(chosen, where, secrets=secrets, hosts=hosts, question=question)
    _show_lines(checked.lines)
    for problem in checked.problems:
        say(problem)
    if checked.remaining:
        say(f"the document {checked.remaining} may remain; run: unpoison redteam clean {where}")
    raise typer.Exit(1 if checked.problems or checked.remaining else 0)


def _show_lines(lines: Any) -> None:
    from unpoison.cli.display import show
    from unpoison.report.rendering import excerpt

    show(*(f"{what}: {excerpt(text, 500)}" for what, text in lines))


@contextmanager
def mask_secrets(secrets: Secrets) -> Iterator[None]:
    """Errors without secrets: whatever fails inside, no message shows one."""
    from unpoison.errors import TargetError, UnpoisonError

    try:
        yield
    except UnpoisonError as error:
        message = str(error)
        hidden = str(secrets.mask(message))
        if hidden == message:
            raise
        raise TargetError(hidden) from None


@contextmanager
def report_removal(journal: Path) -> Iterator[None]:
    """Say after Ctrl-C whether anything is left."""
    from unpoison.cli.common import say

    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; what was planted is taken back, or else: unpoison redteam clean {journal}")
        raise

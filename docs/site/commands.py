"""The reference of the command line, one page for each command, read from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

FOLDER = "reference/commands"


def command_pages() -> dict[str, str]:
    """Pages as Markdown by their path below `docs`."""
    from typer.main import get_command

    from unpoison.cli import app

    root: Any = get_command(app)
    pages = {f"{FOLDER}/{name}.md": "\n".join(_page(name, command)) for name, command in root.commands.items()}
    rows = [f"| [{name}]({name}.md) | {_cell(_summary(command))} |" for name, command in root.commands.items()]
    index = [
        "# Command line",
        "Made from the program when this site was built: what `unpoison COMMAND --help` says.",
        "\n".join(["| command | what it does |", "| --- | --- |", *rows]),
    ]
    return {f"{FOLDER}/index.md": "\n\n".join(index), **pages}


def _page(name: str, command: Any) -> Iterator[str]:
    yield f"# unpoison {name}\n"
    yield from _described(name, command)
    for inner, part in getattr(command, "commands", {}).items():
        yield f"\n## unpoison {name} {inner}\n"
        yield from _described(f"{name} {inner}", part)


def _described(name: str, command: Any) -> Iterator[str]:
    """Usage, help, arguments, options and examples of one command."""
    from click import Context

    context = Context(command, info_name=f"unpoison {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```\nunpoison {name} {usage}\n```\n"
    yield f"{_prose(command.help or '')}\n"
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    records = [record for parameter in shown if (record := parameter.get_help_record(context))]
    if records:
        yield "| argument or option | what it does |\n| --- | --- |"
        yield from (f"| `{_code(left)}` | {_cell(right)} |" for left, right in records)
        yield ""
    if command.epilog:
        yield from _epilog(command.epilog)


def _epilog(text: str) -> Iterator[str]:
    """Examples as code, prose behind them as prose; a mark for "no rewrapping" is left out."""
    for block in cleandoc(text.replace("\b", "")).split("\n\n"):
        lines = [line.rstrip() for line in block.splitlines() if line.strip()]
        if any(line.startswith("  ") for line in lines):
            code = "\n".join(line.strip() for line in lines if line.startswith("  "))
            yield "\n".join(f"{line}\n" for line in lines if not line.startswith("  "))
            yield f"```\n{code}\n```\n"
        else:
            yield f"{_prose(' '.join(lines))}\n"


def _summary(command: Any) -> str:
    return command.short_help or cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")


def _prose(text: str) -> str:
    return cleandoc(text.replace("\b", "")).replace("<", "&lt;").replace("*", "\\*")


def _code(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")

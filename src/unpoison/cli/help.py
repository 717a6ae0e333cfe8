"""How the help of a command looks: arguments by their names alone, options in sections."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from unpoison.errors import OptionError
from unpoison.utils.checks import new_name

__all__ = ["Command"]

REST = "Options"
"""The section of options without one of their own (`rich_help_panel`)."""


class Command(TyperCommand):
    """A command whose help has one section for each `rich_help_panel`, in the order in which they begin.

    Typer draws panels with rich only, whose help is twice as long; and it adds the type to an argument whose name
    already says what it is.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parameters = self.get_params(ctx)
        known = {option for parameter in parameters for option in parameter.opts}
        for option in (arg.partition("=")[0] for arg in args):
            if not option.startswith("-") or option in known:
                continue
            existing = None if "--defense" in known else ()
            if answer := new_name(option, ctx.command_path, existing, flag="-d NAME:"):
                raise OptionError(answer)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, sections = list[tuple[str, str]](), dict[str, list[tuple[str, str]]]()
        for parameter in self.get_params(ctx):
            if ctx.auto_envvar_prefix:  # every option has a variable of its own: one sentence says how they are called
                vars(parameter)["show_envvar"] = False
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(((parameter.metavar or parameter.name or "").upper(), record[1]))
            else:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or REST, []).append(record)
        for title, records in {"Arguments": arguments, **sections}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

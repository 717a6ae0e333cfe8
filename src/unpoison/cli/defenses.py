"""`unpoison defenses`: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from unpoison.cli.options import option

__all__ = ["defenses"]


def defenses(
    as_json: Annotated[bool, option("--json", "Write JSON Lines instead of a table.")] = False,
) -> None:
    """List the defenses: what each does, its options with their defaults, the models it needs, and its source.

    "needs" is what it cannot screen without; "calls" is how often an answer asks the generator, k being the number
    of passages.

    Options are set after a colon: grada:alpha=0.3,keep=3. Defenses that other packages add by the entry point
    "unpoison.defenses" are listed too.
    """
    from unpoison.core import registry

    described = [_describe(name) for name in registry.names("defenses")]
    if as_json:
        for row in described:
            typer.echo(json.dumps(row, ensure_ascii=False, default=str))
        return
    from unpoison.cli.display import show, text_table

    rows = []
    for row in described:
        options = "\n".join(option["described"] for option in row.get("options", ()))
        what = "\n\n".join(filter(None, (row["summary"], row["source"])))
        needs = ", ".join(row["needs"]) or "nothing"
        calls = f"\n\ncalls: {row['calls']}" if row["calls"] else ""
        rows.append((row["name"], what, options, needs + calls))
    show(text_table(("name", "what it does", "options", "needs"), rows, show_lines=True))


def _describe(name: str) -> dict[str, Any]:
    from unpoison.core import registry

    try:
        defense = registry.find("defenses", name)
        options = registry.options(defense)
    except Exception as error:  # somebody else's broken package must not hide the others
        unknown = {"needs": [], "calls": "", "source": "", "options": []}
        return {"name": name, "summary": f"cannot be loaded: {error}", **unknown}
    return {
        "name": name,
        "summary": getattr(defense, "summary", ""),
        "needs": list(getattr(defense, "needs", ())),
        "calls": getattr(defense, "calls", ""),
        "source": getattr(defense, "source", ""),
        "options": [
            {"name": option.name, "default": option.default, "described": option.described} for option in options
        ],
    }

"""What the playground shows as text to take along: as Python, as a command with `curl`, as a row of a file."""

from __future__ import annotations

import json
from collections import defaultdict
from shlex import quote
from typing import Any, NamedTuple

from unpoison.core import registry
from unpoison.models.loading import can_write
from unpoison.serve.schemas import PlayRequest
from unpoison.sources.policy import is_exact
from unpoison.utils.plain_text import without_invisible

__all__ = ["ADDRESS", "Copies", "copies_of"]

ADDRESS = "http://127.0.0.1:8000"
"""Stands in the command for the service; the page puts in where it is itself."""


MAX_COPIED = 300_000
"""Characters of a row that is shown: escaped in three ways, one becomes up to 35."""

TOO_MUCH = "The passages are too long, or nested too deep, to be shown here."


class Copies(NamedTuple):
    """The three texts; what nobody sees stands in them as escapes."""

    python: str
    curl: str
    row: str


def copies_of(body: PlayRequest, defense: str, generator: str | None, *, keyed: bool) -> Copies:
    """What does again what the page does.

    Args:
        body: What it asked. Sources that no list of a policy can name are left out of the policy.
        defense: The option string of the defense.
        generator: The name of what it reads and answers with.
        keyed: Whether the service asks for a key.
    """
    lists: dict[str, list[str]] = defaultdict(list)
    for origin, level in body.trust.items():
        if is_exact(origin):  # a passage may call its source *, which in a policy is everybody
            lists[level].append(origin)
    try:
        sent: list[Any] = [
            one if isinstance(one, str) else one.model_dump(mode="json", exclude_unset=True) for one in body.passages
        ]
    except ValueError:  # metadata that are nested deeper than any text can show
        return Copies(TOO_MUCH, TOO_MUCH, TOO_MUCH)
    row = {"query": body.query, "passages": sent}
    whole = _dump(row)
    if len(whole) > MAX_COPIED:
        return Copies(TOO_MUCH, TOO_MUCH, TOO_MUCH)
    python = _python(body, sent, lists, defense, generator)
    return Copies(python, _curl(body, row, lists, answers=generator is not None, keyed=keyed), whole)


def _dump(value: object) -> str:
    return json.dumps(value)  # in ASCII: what nobody sees is seen


def _literal(value: object) -> str:
    text = repr(value)
    return text if without_invisible(text) == text else ascii(value)


def _python(
    body: PlayRequest, sent: list[Any], lists: dict[str, list[str]], defense: str, generator: str | None
) -> str:
    name, options = registry.parse(defense)
    known = generator is not None and not can_write(generator)  # another model's name is not what it is loaded by
    given = f", generator={_literal(generator)}" * known + ", sources=Sources(policy)" * bool(lists)
    if body.threshold is not None and name == "guard":
        changed = {**options, "threshold": str(body.threshold)}
        defense = f"{name}:{','.join(f'{option}={value}' for option, value in changed.items())}"
    lines = [
        "from unpoison.defenses.loading import load_defense",
        *["from unpoison.sources import Sources"] * bool(lists),
        "",
        f"query = {_literal(body.query)}",
        "passages = [",
        *(f"    {_literal(one)}," for one in sent),
        "]",
        *[f"policy = {_literal(dict(lists))}"] * bool(lists),
        f"defense = load_defense({_literal(defense)}{given})",
        "print(defense.screen(query, passages).explain())",
        *["print(defense.answer(query, passages).text)"] * known,
    ]
    return "\n".join(lines)


def _curl(body: PlayRequest, row: dict[str, Any], lists: dict[str, list[str]], *, answers: bool, keyed: bool) -> str:
    content = row | ({} if body.defense is None else {"defense": body.defense})
    policy = [f"# the service was started with --sources FILE, which holds: {_dump(lists)}"] * bool(lists)
    address = f"{ADDRESS}/v1/{'answer' if answers else 'screen'}"
    key = ' -H "Authorization: Bearer $UNPOISON_API_KEY"' * keyed
    command = f"curl -s {address}{key} -H 'Content-Type: application/json' -d {quote(_dump(content))}"
    return "\n".join([*policy, command])

"""`unpoison verify`: whether an evidence pack is as it was signed, and by whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import argument, option

if TYPE_CHECKING:
    from unpoison.io.signed_zip import Verification

__all__ = ["EXAMPLES", "verify"]

EXAMPLES = """\b
Examples:
  unpoison verify out.zip --key public.pem
  unpoison verify out.zip --json

Exit status: 0 when it is signed and nothing was changed, 1 when something was changed, is missing or was added, or
nobody has signed it, 2 when it cannot be read or is no evidence pack.
"""


def verify(
    pack: Annotated[Path, argument("PACK", "The zip that 'unpoison redteam --evidence' wrote.")],
    key: Annotated[Path | None, option("--key PUBLIC.pem", "The public key of whoever must have signed it.")] = None,
    as_json: Annotated[bool, option("--json", "Write one JSON object instead.")] = False,
) -> None:
    """Check an evidence pack: every file by its SHA-256, and the signature. Nothing is unpacked."""
    from unpoison.cli.common import say
    from unpoison.cli.display import show
    from unpoison.io import signed_zip
    from unpoison.io.signing_keys import read_public_key
    from unpoison.report.rendering import excerpt

    found = signed_zip.verify(pack, None if key is None else read_public_key(key))
    if as_json:
        fields = {"valid": found.valid, "signer": found.signer, "problems": found.problems, "notes": found.notes}
        typer.echo(json.dumps(fields, indent=1))
    else:
        show(*(excerpt(line, 400) for line in _lines(found, pack)))
        for sentence in (*found.problems, *found.notes):
            say(sentence)
    raise typer.Exit(0 if found.valid else 1)


def _lines(found: Verification, pack: Path) -> Iterator[str]:
    if not found.valid:
        yield f"{pack}: NOT VALID"
    else:
        yield f"{pack}: valid, {len(found.members)} files as they were signed"
    if found.signer is not None:
        yield f"signed by the key SHA256:{found.signer}"
    if found.valid:
        summary = _summary(found)
        for name in ("tester", "date", "system"):
            if summary.get(name):
                yield f"{name}, as it states: {summary[name]}"


def _summary(found: Verification) -> dict[str, Any]:
    """What the pack says of itself; nothing where it is no JSON."""
    try:
        summary = json.loads(found.members["evidence.json"])
        system = summary["system"]
        return {**summary, "system": system["stated"] or system["name"]}
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}

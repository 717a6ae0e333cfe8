"""`unpoison keys`: a new key for the service, and the lines of the key file that let it in."""

from __future__ import annotations

from typing import Annotated

import typer

from unpoison.cli.options import argument, option

__all__ = ["EXAMPLES", "keys"]

EXAMPLES = """\b
Examples:
  unpoison keys search-team >> keys.toml
  unpoison keys chat --scope answer --rate 5 --burst 20 >> keys.toml
  unpoison keys prometheus --scope none >> keys.toml
  unpoison serve --keys keys.toml

The key itself is shown once, on standard error; the file has its SHA-256. A running service reads the file again when
it changes: to rotate a key, add a new one, give it to its user, and remove the old one. Any valid key may read
/metrics.
"""


def keys(
    name: Annotated[str, argument("NAME", "Whose key it is; stands in logs and metrics.")],
    scope: Annotated[
        list[str] | None, option("SCOPE", "What it allows: screen, answer or none. [default: screen and answer]")
    ] = None,
    rate: Annotated[float | None, option("N", "Requests a second. [default: any number]")] = None,
    burst: Annotated[float | None, option("N", "Requests at once after a pause. [default: a second's worth]")] = None,
) -> None:
    """Make a key for 'unpoison serve --keys': its lines for the file, and the key itself on standard error."""
    import json
    import secrets

    from unpoison.cli.common import say
    from unpoison.serve.keys import SCOPES, Key, digest

    scopes = frozenset(scope or SCOPES) - {"none"}
    text = secrets.token_urlsafe(32)
    key = Key(name, digest(text), scopes, rate, burst)
    typer.echo(f'[[key]]\nname = "{key.name}"\nsha256 = "{key.digest}"')
    typer.echo(f"scopes = {json.dumps(sorted(key.scopes))}")
    for field, value in (("rate", key.rate), ("burst", key.burst)):
        if value is not None:
            typer.echo(f"{field} = {value:g}")
    typer.echo()
    say(f"the key of {name}, shown this once: {text}")

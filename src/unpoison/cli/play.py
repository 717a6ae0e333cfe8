"""`unpoison play`: the playground, on this machine alone."""

from __future__ import annotations

from typing import Annotated

from unpoison.cli.options import EncoderName, SourcesFile, from_here, option

__all__ = ["EXAMPLES", "play"]

EXAMPLES = """\b
Examples:
  unpoison play
  unpoison play --open --sources sources.yaml
  unpoison play -d guard -d vote -g extractive

'unpoison serve' has the same page at /, unless --without-playground is given.
"""

UNREAD = "The reader is not installed: verdicts, but no claims and no answers; install the extra reader, or give -g"


def play(
    defense: Annotated[
        list[str] | None,
        option("--defense -d NAME[:OPTIONS]", "As for 'unpoison serve'. [default: guard]", callback=from_here),
    ] = None,
    generator: Annotated[
        str | None,
        option("--generator -g GENERATOR", "What reads and answers. [default: reader, where it is installed]"),
    ] = None,
    encoder: EncoderName = None,
    sources: SourcesFile = None,
    port: Annotated[int, option("PORT", "Of this machine; 0 for a free one.", min=0, max=65535)] = 0,
    show: Annotated[bool, option("--open", "Open the page in the browser of this machine.")] = False,
) -> None:
    """Try texts, sources and defenses on a page in your browser: verdicts as you type, and who says what."""
    import webbrowser

    from unpoison.cli.common import say
    from unpoison.cli.serve import LOOPBACK, build_defenses
    from unpoison.models.loading import best_reader
    from unpoison.runtime.driver import Limits
    from unpoison.serve import Bounds, create_app
    from unpoison.serve import serve as run
    from unpoison.serve.sockets import address, listen
    from unpoison.sources import Sources

    if generator is None and best_reader() == "extractive":
        say(UNREAD)
    elif generator is None:
        generator = best_reader()
    bounds = Bounds()
    limits = Limits(deadline=bounds.timeout)
    known = Sources.of(sources) or Sources()
    made = build_defenses(defense or ["guard"], encoder=encoder, generator=generator, limits=limits, sources=known)
    app = create_app(made, bounds=bounds, hosts=LOOPBACK)
    with listen("127.0.0.1", port) as listening:
        say(f"the playground is at {address(listening)}/ (Ctrl-C ends it)")
        if show:
            webbrowser.open(f"{address(listening)}/")
        run(app, listening=listening, bounds=bounds, log_level="warning")

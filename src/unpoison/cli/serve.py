"""`unpoison serve`: defenses over HTTP.

Examples:
  unpoison serve
  unpoison serve --play --sources sources.yaml
  unpoison serve -d guard -d trustrag:stages=1 -e minilm --port 8000
  unpoison serve -g openai:gpt-4o-mini --limit timeout=120 --limit in_flight=8
  UNPOISON_API_KEY=... unpoison serve --host 0.0.0.0 --on-poison demote
  unpoison serve --host 0.0.0.0 --keys keys.txt --workers 4

Every option can be set in the environment, as UNPOISON_SERVE_ON_POISON=demote. So can UNPOISON_BELIEFS (the store
of radar: sqlite:FILE, redis://... or postgresql://...) and OTEL_EXPORTER_OTLP_ENDPOINT.

The playground is at /, the description of the interface at /openapi.json. Requests give a key as "Authorization: Bearer
KEY": that of the environment variable UNPOISON_API_KEY, or one of --keys; without either, only this machine is served.

Limits: passages (of a request), characters (of a passage), total (of all passages), body (bytes), timeout, wait,
max_concurrency, threads, in_flight, retries, grace.
"""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.beliefs import open_beliefs
from unpoison.cli.common import say
from unpoison.cli.options import EncoderName, Learn, NLIName, SourcesFile, from_here, option
from unpoison.core import registry
from unpoison.defenses import make_defense
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError
from unpoison.models.loading import best_reader, load_encoder, load_generator, load_nli
from unpoison.runtime.driver import Limits
from unpoison.scan.audit_log import AuditLog
from unpoison.sources import Sources
from unpoison.utils.extras import install_command
from unpoison.utils.tracing import export_spans

if TYPE_CHECKING:
    from fastapi import FastAPI

    from unpoison.serve.admission import Keys
    from unpoison.serve.bounds import Bounds


KEY = "UNPOISON_API_KEY"
"""The environment variable with the key; other users could read it on a command line."""

BELIEFS = "UNPOISON_BELIEFS"
"""The environment variable with the store of beliefs of radar; an address may hold a password."""

TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""OpenTelemetry's environment variable for the address of the collector."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

UNREAD = f"""The reader is not installed: verdicts, but no claims and no answers. {install_command("reader")}"""


class OnPoison(StrEnum):
    """How /rerank handles a document that the defense drops."""

    DROP = "drop"
    DEMOTE = "demote"
    MONITOR = "monitor"


listen_option = partial(option, rich_help_panel="Address")
caller_option = partial(option, rich_help_panel="Access and replies")
"""The sections of the help."""


def serve(
    defense: Annotated[
        list[str] | None,
        option(
            "--defense -d NAME[:OPTIONS]",
            "A defense that requests may name; the first is the default; may be repeated. [default: guard]",
            callback=from_here,
        ),
    ] = None,
    encoder: EncoderName = None,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR", "For /v1/answer and for defenses that ask a model; see 'unpoison ask --help'."
        ),
    ] = None,
    nli: NLIName = None,
    sources: SourcesFile = None,
    learn: Learn = False,
    play: Annotated[
        bool, option("--play", "Open the playground in the browser, on a free port, with the reader if installed.")
    ] = False,
    limit: Annotated[list[str] | None, option("NAME=N", "A limit, such as passages=200; may be repeated.")] = None,
    audit_log: Annotated[
        Path | None, option("FILE", "Write every verdict to this file, for 'unpoison audit'; it rotates.")
    ] = None,
    host: Annotated[str, listen_option("ADDRESS", "An address; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, listen_option("PORT", "0 for a free one.", min=0, max=65535)] = 8000,
    root_path: Annotated[str, listen_option("PATH", "The path under which a proxy serves it, such as /unpoison.")] = "",
    workers: Annotated[int, listen_option("N", "Processes; each loads its own models.", min=1, max=256)] = 1,
    keys: Annotated[
        Path | None, caller_option("FILE", "Keys: lines with a SHA-256 and a name, as sha256sum writes them.")
    ] = None,
    without_key: Annotated[
        bool, caller_option("--without-key", "Allow unauthenticated access from other hosts.")
    ] = False,
    on_poison: Annotated[
        OnPoison | None,
        caller_option(
            "",
            "How /rerank handles a dropped document: omit it, put it last with score 0, or only count it. "
            "By default it is omitted if fewer documents are requested than were sent, else put last.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, caller_option("NAME", "A host name of the service. [default: this machine's, or any]")
    ] = None,
) -> None:
    """Serve defenses over HTTP: screenings, answers, /rerank for gateways, metrics, and a playground.

    Nothing listens outside this machine unless --host says so. The log holds no texts.
    """
    from unpoison.serve import Bounds  # the extra may be missing
    from unpoison.serve.server import address, listen
    from unpoison.serve.server import serve as run

    public = host not in LOOPBACK
    allowed = load_keys(keys)
    if allowed is None and public:
        open_to_all = f"{host} may be reached by others, and no key is asked for"
        if not without_key:
            raise OptionError(f"{open_to_all}; set {KEY}, give --keys, or say --without-key")
        say(f"warning: {open_to_all}")
    if play and generator is None:
        generator = best_reader() if best_reader() != "extractive" else None
        if generator is None:
            say(UNREAD)
    bounds = Bounds.of(limit or ())
    models = {"encoder": encoder, "generator": generator, "nli": nli, "sources": sources, "learn": learn}
    hosts = tuple(allow_host or (() if public else (*LOOPBACK, "[::1]")))
    rest: dict[str, Any] = {"keys": allowed, "hosts": hosts, "on_poison": on_poison and on_poison.value}
    specs = defense or ["guard"]
    make = partial(make_app, specs, models, audit_log=audit_log, bounds=bounds, root_path=root_path, **rest)
    listening = listen(host, 0 if play and port == 8000 else port)
    if play:
        say(f"the playground is at {address(listening)}/ (Ctrl-C ends it)")
        webbrowser.open(f"{address(listening)}/")
    if status := run(make, listening, bounds=bounds, workers=workers):
        raise typer.Exit(status)


def load_keys(path: Path | None) -> Keys | None:
    """The keys of the environment and of a file, None for neither.

    Raises:
        OptionError: The environment variable is blank.
        InputError: The file cannot be used.
    """
    from unpoison.serve.admission import Keys

    text = os.environ.get(KEY)
    if text is not None and not text.strip():
        raise OptionError(f"{KEY} is empty; set it to a key, or unset it to serve without one")
    found = [*([Keys.of(text)] if text is not None else []), *([Keys.read(path)] if path is not None else [])]
    return found[0] | found[-1] if found else None


def make_app(
    specs: Sequence[str], models: Mapping[str, Any], *, audit_log: Path | None, bounds: Bounds, **rest: Any
) -> FastAPI:
    """The application with its models; each process makes its own.

    Args:
        specs: Option strings of defenses.
        models: The values of --encoder, --generator, --nli, --sources and --learn.
        audit_log: A file for verdicts.
        bounds: Limits.
        **rest: Of `create_app`.

    Raises:
        UnpoisonError: A model, a store or an option that cannot be used.
    """
    from unpoison.serve import create_app

    if os.environ.get(TRACES):
        export_spans()
    defenses = _load_defenses(specs, models, bounds)
    audit = None if audit_log is None else AuditLog(audit_log)
    return create_app(defenses, bounds=bounds, audit=audit, **rest)


def _load_defenses(specs: Sequence[str], models: Mapping[str, Any], bounds: Bounds) -> dict[str, Defense]:
    """The defenses by their option strings, each with those of the models that it takes.

    Raises:
        OptionError: A model that none of them takes.
    """
    if models["learn"] and models["sources"] is None:
        raise OptionError("--learn writes into the history of --sources; give that file as well")
    store, loaders = os.environ.get(BELIEFS), {"encoder": load_encoder, "generator": load_generator, "nli": load_nli}
    given: dict[str, Any] = {name: models[name] and load(models[name]) for name, load in loaders.items()}
    given |= {"sources": Sources.of(models["sources"]), "learn": models["learn"]}
    limits = Limits(in_flight=bounds.in_flight, deadline=bounds.timeout, retries=bounds.retries)
    given |= {"beliefs": store and open_beliefs(store), "limits": limits}
    taken = {spec: registry.parameters(registry.find("defenses", registry.parse(spec)[0])) for spec in specs}
    for name in ("encoder", "nli", "sources"):
        if given[name] is not None and not any(name in arguments for arguments in taken.values()):
            raise OptionError(f"none of {', '.join(specs)} takes --{name}; leave it out")
    return {spec: make_defense(spec, **given) for spec in specs}

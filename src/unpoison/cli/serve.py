"""`unpoison serve`: defenses over HTTP."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import EncoderCache, EncoderName, Namespace, NLIName
from unpoison.cli.own import from_here
from unpoison.cli.settings import read_settings

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense
    from unpoison.driver import Limits
    from unpoison.service.keys import Keys

__all__ = ["EXAMPLES", "serve"]

KEY = "UNPOISON_API_KEY"
"""The environment variable with the key; on a command line every user of the machine could read it."""

LISTENING, CALLERS, LIMITS, LOGS = "Where it listens", "Who may call, and what they get", "How much", "Logs"
"""Sections of the options."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

EXAMPLES = f"""\b
Examples:
  unpoison serve
  unpoison serve -d guard -d trustrag:stages=1 -e minilm --port 8000
  unpoison serve -g openai:gpt-4o-mini --nli cross:cross-encoder/nli-deberta-v3-base --timeout 120
  {KEY}=... unpoison serve --host 0.0.0.0 --on-poison demote
  unpoison serve --host 0.0.0.0 --keys keys.toml

Every option can stand in a TOML file (--config), as on-poison = "demote", and in the environment, as
UNPOISON_SERVE_ON_POISON=demote; the command line counts before the environment, and that before the file.

The inspector is at /, the description of the interface at /openapi.json. Requests give a key as "Authorization: Bearer
KEY": that of the environment variable {KEY}, or one of --keys; without either, none is asked for.
"""


class OnPoison(StrEnum):
    """What /rerank does with a document that the defense drops."""

    DROP = "drop"
    DEMOTE = "demote"
    MONITOR = "monitor"


class Level(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Texts(StrEnum):
    """What the audit log holds in place of texts."""

    HASH = "hash"
    KEEP = "keep"


def serve(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", is_eager=True, callback=read_settings, help="Options from a TOML file."),
    ] = None,
    defense: Annotated[
        list[str] | None,
        typer.Option(
            "--defense",
            "-d",
            callback=from_here,
            metavar="NAME[:OPTIONS]",
            help="Requests may name it; the first is their default. Give the option once for each. [default: guard]",
        ),
    ] = None,
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator",
            "-g",
            metavar="GENERATOR",
            help="For /v1/answer and for defenses that ask a model; see 'unpoison ask --help'.",
        ),
    ] = None,
    nli: NLIName = None,
    cache: Annotated[
        str, typer.Option(metavar="FILE|memory|off", help="Where to remember the model's replies.")
    ] = "memory",
    beliefs: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            envvar=["UNPOISON_SERVE_BELIEFS", "UNPOISON_BELIEFS"],
            help="Where radar remembers: memory, sqlite:FILE, redis://... or postgresql://...; UNPOISON_BELIEFS too.",
        ),
    ] = None,
    namespace: Namespace = "default",
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", rich_help_panel=LISTENING, help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", rich_help_panel=LISTENING, help="0 for a free one.")
    ] = 8000,
    unix_socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", rich_help_panel=LISTENING, help="Listen on a unix socket instead, for its owner and group."
        ),
    ] = None,
    root_path: Annotated[
        str,
        typer.Option(
            metavar="PATH", rich_help_panel=LISTENING, help="The path under which a proxy serves it, such as /unpoison."
        ),
    ] = "",
    workers: Annotated[
        int,
        typer.Option(
            min=1, max=256, metavar="N", rich_help_panel=LISTENING, help="Processes; each loads the models for itself."
        ),
    ] = 1,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=CALLERS,
            help="Keys with names, scopes and rates; see 'unpoison keys --help'.",
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="redis://...",
            rich_help_panel=CALLERS,
            help="Where the requests of keys are counted. [default: in each process]",
        ),
    ] = None,
    drain: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            rich_help_panel=LISTENING,
            help="How long to serve on after SIGTERM, while /readyz says no.",
        ),
    ] = 5.0,
    grace: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", rich_help_panel=LISTENING, help="How long requests in work may take then."
        ),
    ] = 20.0,
    on_poison: Annotated[
        OnPoison,
        typer.Option(
            rich_help_panel=CALLERS,
            help="What /rerank does with a dropped document: leave it out, put it last with score 0, or only count it.",
        ),
    ] = OnPoison.DROP,
    allow_options: Annotated[
        bool,
        typer.Option(
            "--allow-options",
            rich_help_panel=CALLERS,
            help="Let requests set some options, such as grada:keep, but only to be stricter.",
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=CALLERS,
            help="A name by which the service may be called; on a loopback address only that machine's names are "
            "allowed otherwise.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", rich_help_panel=CALLERS, help="A web origin whose pages may call the service (CORS)."
        ),
    ] = None,
    mcp: Annotated[
        bool,
        typer.Option(
            "--mcp", rich_help_panel=CALLERS, help="Offer the tools of the Model Context Protocol to agents, at /mcp."
        ),
    ] = False,
    max_body: Annotated[
        int, typer.Option(min=1, metavar="BYTES", rich_help_panel=LIMITS, help="Bytes of one request.")
    ] = 8 * 1024 * 1024,
    max_passages: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Passages of one request.")
    ] = 1000,
    max_characters: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Characters of one passage.")
    ] = 20_000,
    max_dimensions: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Numbers of one embedding.")
    ] = 8192,
    at_once: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", rich_help_panel=LIMITS, help="Requests in work, or waiting for one of the threads."
        ),
    ] = 64,
    wait: Annotated[
        float,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            rich_help_panel=LIMITS,
            help="How long more wait to be among them before they get a 503.",
        ),
    ] = 1.0,
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=LIMITS,
            help="Short requests computed side by side, and as many long ones.",
        ),
    ] = 1,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="SECONDS", rich_help_panel=LIMITS, help="The longest that one request may take."
        ),
    ] = 60.0,
    in_flight: Annotated[
        int,
        typer.Option(
            min=1, max=1024, metavar="N", rich_help_panel=LIMITS, help="Model calls at the same time, for one request."
        ),
    ] = 16,
    retries: Annotated[
        int, typer.Option(min=0, metavar="N", rich_help_panel=LIMITS, help="Try a failed call again, up to N times.")
    ] = 2,
    otel: Annotated[
        bool, typer.Option("--otel", rich_help_panel=LOGS, help="Send traces by OTLP, to OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = False,
    log_level: Annotated[
        Level, typer.Option(rich_help_panel=LOGS, help="How much to log, as JSON lines on standard error.")
    ] = Level.INFO,
    log_dropped: Annotated[
        bool,
        typer.Option(
            "--log-dropped", rich_help_panel=LOGS, help="Quote the question and what was dropped of it in the log."
        ),
    ] = False,
    audit_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=LOGS,
            help="Write every verdict to this file, for 'unpoison audit'; it rotates.",
        ),
    ] = None,
    audit_texts: Annotated[
        Texts,
        typer.Option(
            rich_help_panel=LOGS, help="What stands there for questions and texts: keyed hashes, or themselves."
        ),
    ] = Texts.HASH,
    audit_size: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="BYTES",
            rich_help_panel=LOGS,
            help="A file of the audit log that would be larger is put aside.",
        ),
    ] = 64 * 2**20,
    audit_files: Annotated[
        int,
        typer.Option(
            min=1, max=1000, metavar="N", rich_help_panel=LOGS, help="Files of the audit log; the oldest is deleted."
        ),
    ] = 8,
) -> None:
    """Serve defenses over HTTP: screenings, answers, /rerank for gateways, metrics, and an inspector page.

    Nothing listens outside this machine unless --host says so. The log holds no texts unless --log-dropped is given.
    """
    from contextlib import closing, nullcontext
    from functools import partial

    from unpoison import tracing
    from unpoison.at_rest.audit_log import AuditLog
    from unpoison.beliefs import open_beliefs
    from unpoison.cli.running import cached_generator, make_encoder, say
    from unpoison.driver import Limits
    from unpoison.models.loading import load_encoder, load_nli
    from unpoison.service import Bounds, create_app
    from unpoison.service import serve as run
    from unpoison.service.rates import LocalRates, RedisRates
    from unpoison.service.sockets import listen, unlinked
    from unpoison.service.workers import inherited, supervise

    listening = inherited()
    if listening is None and workers > 1:
        listening = listen(host, port, unix_socket)
        status = supervise(workers, listening, patience=drain + grace + 5, log_level=log_level.value)
        unlinked(listening, unix_socket)
        raise typer.Exit(status)
    if otel:
        tracing.exported()
    public = unix_socket is None and host not in LOOPBACK
    allowed = _keys(keys)
    if allowed is None and public:
        say(f"warning: {host} may be reached by others and no key is asked for; set {KEY}, or give --keys")
    bounds = Bounds(
        body=max_body,
        passages=max_passages,
        characters=max_characters,
        dimensions=max_dimensions,
        at_once=at_once,
        wait=wait,
        threads=threads,
        timeout=timeout,
    )
    vectors = make_encoder(encoder, encoder_cache)
    store = None if beliefs is None else open_beliefs(beliefs, namespace=namespace)
    given = {
        "encoder": load_encoder(vectors) if isinstance(vectors, str) else vectors,
        "generator": None if generator is None else cached_generator(generator, cache),
        "nli": None if nli is None else load_nli(nli),
        "beliefs": store,
        "limits": Limits(in_flight=in_flight, deadline=timeout, retries=retries),
    }
    audit = None
    if audit_log is not None:
        audit = AuditLog(audit_log, texts=audit_texts.value, size=audit_size, files=audit_files)
    with nullcontext() if store is None else closing(store), audit or nullcontext():
        specs = defense or ["guard"]
        _all_used(specs, given)
        make = partial(_made, given)
        app = create_app(
            {spec: make(spec) for spec in specs},
            bounds=bounds,
            on_poison=on_poison.value,
            keys=allowed,
            rates=LocalRates(1 / workers) if rates is None else RedisRates(rates, 1 / workers),
            root_path=root_path,
            mcp=mcp,
            hosts=allow_host or (() if public or unix_socket else (*LOOPBACK, "[::1]")),
            origins=allow_origin or (),
            make=make if allow_options else None,
            log_dropped=log_dropped,
            audit=audit,
        )
        socket = listening or listen(host, port, unix_socket)
        try:
            run(app, listening=socket, bounds=bounds, drain=drain, grace=grace, log_level=log_level.value)
        finally:
            socket.close() if listening else unlinked(socket, unix_socket)


def _keys(path: Path | None) -> Keys | None:
    """The keys of the environment and of a file, None for neither."""
    from unpoison.errors import OptionError
    from unpoison.service.keys import Key, KeyFile, Keys

    text = os.environ.get(KEY)
    if text is not None and not text.strip():
        raise OptionError(f"{KEY} is empty; set it to a key, or unset it to serve without one")
    own = () if text is None else (Key.of(text.strip()),)
    if path is not None:
        return KeyFile(path, own)
    return Keys(own) if own else None


def made_defenses(
    specs: list[str], *, encoder: str | None, generator: str | None, limits: Limits
) -> dict[str, Defense]:
    """The defenses of option strings, with the models of a command line that they take."""
    from unpoison.models.loading import load_encoder, load_generator

    given = {
        "encoder": None if encoder is None else load_encoder(encoder),
        "generator": None if generator is None else load_generator(generator),
        "limits": limits,
    }
    return {spec: _made(given, spec) for spec in specs}


def _accepted(spec: str) -> frozenset[str]:
    """The arguments of the class that an option string names."""
    import inspect

    from unpoison import registry

    return frozenset(inspect.signature(registry.find("defenses", registry.parse(spec)[0])).parameters)


def _made(given: dict[str, Any], spec: str) -> Defense:
    """The defense of an option string, with the models of the command line that it takes."""
    from unpoison.defenses.loading import load_defense

    accepted = _accepted(spec)
    return load_defense(spec, **{name: value for name, value in given.items() if name in accepted})


def _all_used(specs: list[str], given: dict[str, Any]) -> None:
    from unpoison.errors import OptionError

    accepted = frozenset[str]().union(*map(_accepted, specs))
    for name in ("encoder", "nli", "beliefs"):
        if given[name] is not None and name not in accepted:
            raise OptionError(f"none of {', '.join(specs)} takes --{name}; leave it out")

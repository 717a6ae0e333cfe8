"""`unpoison serve`: defenses over HTTP."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import (
    EncoderCache,
    EncoderName,
    InjectionModel,
    Learn,
    Namespace,
    NLIName,
    SourcesFile,
    from_here,
    option,
    read_settings,
)

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense, SourcesOption
    from unpoison.runtime.driver import Limits
    from unpoison.serve.keys import Keys

__all__ = ["EXAMPLES", "KEY", "build_defense", "build_defenses", "check_used", "load_keys", "serve"]


KEY = "UNPOISON_API_KEY"
"""The environment variable with the key; on a command line every user of the machine could read it."""

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

The playground is at /, the description of the interface at /openapi.json. Requests give a key as "Authorization: Bearer
KEY": that of the environment variable {KEY}, or one of --keys; without either, only this machine is served.
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


listen_option = partial(option, rich_help_panel="Where it listens")
caller_option = partial(option, rich_help_panel="Who may call, and what they get")
limit_option = partial(option, rich_help_panel="How much")
log_option = partial(option, rich_help_panel="Logs")
"""The sections of the help, in which options stand together."""


def serve(
    config: Annotated[
        Path | None, option("FILE", "Options from a TOML file.", is_eager=True, callback=read_settings)
    ] = None,
    defense: Annotated[
        list[str] | None,
        option(
            "--defense -d NAME[:OPTIONS]",
            "Requests may name it; the first is their default. Give the option once for each. [default: guard]",
            callback=from_here,
        ),
    ] = None,
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    sources: SourcesFile = None,
    learn: Learn = False,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR", "For /v1/answer and for defenses that ask a model; see 'unpoison ask --help'."
        ),
    ] = None,
    nli: NLIName = None,
    injection_model: InjectionModel = None,
    cache: Annotated[str, option("FILE|memory|off", "Where to remember the model's replies.")] = "memory",
    beliefs: Annotated[
        str | None,
        option(
            "STORE",
            "Where radar remembers: memory, sqlite:FILE, redis://... or postgresql://...; UNPOISON_BELIEFS too.",
            envvar=["UNPOISON_SERVE_BELIEFS", "UNPOISON_BELIEFS"],
        ),
    ] = None,
    namespace: Namespace = "default",
    host: Annotated[str, listen_option("ADDRESS", "The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, listen_option("PORT", "0 for a free one.", min=0, max=65535)] = 8000,
    unix_socket: Annotated[
        Path | None, listen_option("PATH", "Listen on a unix socket instead, for its owner and group.")
    ] = None,
    root_path: Annotated[str, listen_option("PATH", "The path under which a proxy serves it, such as /unpoison.")] = "",
    workers: Annotated[int, listen_option("N", "Processes; each loads the models for itself.", min=1, max=256)] = 1,
    keys: Annotated[
        Path | None, caller_option("FILE", "Keys with names, scopes and rates; see 'unpoison keys --help'.")
    ] = None,
    without_key: Annotated[
        bool,
        caller_option(
            "--without-key",
            "Serve whoever reaches an address that is not of this machine alone, without asking for a key.",
        ),
    ] = False,
    rates: Annotated[
        str | None, caller_option("redis://...", "Where the requests of keys are counted. [default: in each process]")
    ] = None,
    drain: Annotated[
        float, listen_option("SECONDS", "How long to serve on after SIGTERM, while /readyz says no.", min=0)
    ] = 5.0,
    grace: Annotated[float, listen_option("SECONDS", "How long requests in work may take then.", min=0)] = 20.0,
    on_poison: Annotated[
        OnPoison | None,
        caller_option(
            "",
            "What /rerank does with a dropped document: leave it out, put it last with score 0, or only count it. "
            "By default it is left out; where `texts` are sent (TEI), put last.",
        ),
    ] = None,
    allow_options: Annotated[
        bool,
        caller_option("--allow-options", "Let requests set some options, such as grada:keep, but only to be stricter."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        caller_option(
            "NAME",
            "A name by which the service may be called; on a loopback address only that machine's names are "
            "allowed otherwise.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, caller_option("URL", "A web origin whose pages may call the service (CORS).")
    ] = None,
    mcp: Annotated[
        bool, caller_option("--mcp", "Offer the tools of the Model Context Protocol to agents, at /mcp.")
    ] = False,
    without_playground: Annotated[
        bool, caller_option("--without-playground", "Serve no page at / to try things out on.")
    ] = False,
    max_body: Annotated[int, limit_option("BYTES", "Bytes of one request.", min=1)] = 8 * 1024 * 1024,
    max_passages: Annotated[int, limit_option("N", "Passages of one request.", min=1)] = 1000,
    max_characters: Annotated[int, limit_option("N", "Characters of one passage.", min=1)] = 20_000,
    max_dimensions: Annotated[int, limit_option("N", "Numbers of one embedding.", min=1)] = 8192,
    at_once: Annotated[int, limit_option("N", "Requests in work, or waiting for one of the threads.", min=1)] = 64,
    wait: Annotated[
        float, limit_option("SECONDS", "How long more wait to be among them before they get a 503.", min=0.001)
    ] = 1.0,
    threads: Annotated[
        int, limit_option("N", "Short requests computed side by side, and as many long ones.", min=1)
    ] = 1,
    timeout: Annotated[float, limit_option("SECONDS", "The longest that one request may take.", min=0.001)] = 60.0,
    in_flight: Annotated[
        int, limit_option("N", "Model calls at the same time, for one request.", min=1, max=1024)
    ] = 16,
    retries: Annotated[int, limit_option("N", "Try a failed call again, up to N times.", min=0)] = 2,
    otel: Annotated[bool, log_option("--otel", "Send traces by OTLP, to OTEL_EXPORTER_OTLP_ENDPOINT.")] = False,
    log_level: Annotated[Level, log_option("", "How much to log, as JSON lines on standard error.")] = Level.INFO,
    log_dropped: Annotated[
        bool, log_option("--log-dropped", "Quote the question and what was dropped of it in the log.")
    ] = False,
    audit_log: Annotated[
        Path | None, log_option("FILE", "Write every verdict to this file, for 'unpoison audit'; it rotates.")
    ] = None,
    audit_texts: Annotated[
        Texts, log_option("", "What stands there for questions and texts: keyed hashes, or themselves.")
    ] = Texts.HASH,
    audit_size: Annotated[
        int, log_option("BYTES", "A file of the audit log that would be larger is put aside.", min=1)
    ] = 64 * 2**20,
    audit_files: Annotated[int, log_option("N", "Files of the audit log; the oldest is deleted.", min=1, max=1000)] = 8,
) -> None:
    """Serve defenses over HTTP: screenings, answers, /rerank for gateways, metrics, and a playground.

    Nothing listens outside this machine unless --host says so. The log holds no texts unless --log-dropped is given.
    """
    from contextlib import closing, nullcontext
    from functools import partial

    from unpoison.beliefs import open_beliefs
    from unpoison.cli.common import cache_replies, make_encoder, say
    from unpoison.errors import OptionError
    from unpoison.models.loading import load_encoder, load_injection_model, load_nli
    from unpoison.runtime.driver import Limits
    from unpoison.scan.audit_log import AuditLog
    from unpoison.serve import Bounds, create_app
    from unpoison.serve import serve as run
    from unpoison.serve.keys import LocalRates, RedisRates
    from unpoison.serve.sockets import close_socket, inherit_socket, listen, supervise
    from unpoison.sources import Sources
    from unpoison.utils import tracing

    public = unix_socket is None and host not in LOOPBACK
    allowed = load_keys(keys)
    if allowed is None and public:
        open_to_all = f"{host} may be reached by others, and no key is asked for"
        if not without_key:
            raise OptionError(f"{open_to_all}; set {KEY}, give --keys, or say --without-key")
        say(f"warning: {open_to_all}")
    listening = inherit_socket()
    if listening is None and workers > 1:
        shared = listen(host, port, unix_socket)
        status = supervise(workers, shared, patience=drain + grace + 5, log_level=log_level.value)
        close_socket(shared, unix_socket)
        raise typer.Exit(status)
    if otel:
        tracing.export_spans()
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
        "generator": None if generator is None else cache_replies(generator, cache),
        "nli": None if nli is None else load_nli(nli),
        "injection_model": None if injection_model is None else load_injection_model(injection_model),
        "beliefs": store,
        "sources": Sources.of(sources),
        "learn": learn,
        "limits": Limits(in_flight=in_flight, deadline=timeout, retries=retries),
    }
    audit = None
    if audit_log is not None:
        audit = AuditLog(audit_log, texts=audit_texts.value, size=audit_size, files=audit_files)
    with nullcontext() if store is None else closing(store), audit or nullcontext():
        specs = defense or ["guard"]
        check_used(specs, given)
        make = partial(build_defense, given)
        app = create_app(
            {spec: make(spec) for spec in specs},
            bounds=bounds,
            on_poison=None if on_poison is None else on_poison.value,
            keys=allowed,
            rates=LocalRates(1 / workers) if rates is None else RedisRates(rates, 1 / workers),
            root_path=root_path,
            mcp=mcp,
            hosts=allow_host or (() if public or unix_socket else (*LOOPBACK, "[::1]")),
            origins=allow_origin or (),
            make=make if allow_options else None,
            log_dropped=log_dropped,
            audit=audit,
            playground=not without_playground,
        )
        socket = listening or listen(host, port, unix_socket)
        try:
            run(app, listening=socket, bounds=bounds, drain=drain, grace=grace, log_level=log_level.value)
        finally:
            socket.close() if listening else close_socket(socket, unix_socket)


def load_keys(path: Path | None) -> Keys | None:
    """The keys of the environment and of a file, None for neither."""
    from unpoison.errors import OptionError
    from unpoison.serve.keys import Key, KeyFile, Keys

    text = os.environ.get(KEY)
    if text is not None and not text.strip():
        raise OptionError(f"{KEY} is empty; set it to a key, or unset it to serve without one")
    own = () if text is None else (Key.of(text.strip()),)
    if path is not None:
        return KeyFile(path, own)
    return Keys(own) if own else None


def build_defenses(
    specs: list[str], *, encoder: str | None, generator: str | None, limits: Limits, sources: SourcesOption = None
) -> dict[str, Defense]:
    """The defenses of option strings, with the models of a command line that they take."""
    from unpoison.models.loading import load_encoder, load_generator
    from unpoison.sources import Sources

    given = {
        "encoder": None if encoder is None else load_encoder(encoder),
        "generator": None if generator is None else load_generator(generator),
        "limits": limits,
        "sources": Sources.of(sources),
    }
    return {spec: build_defense(given, spec) for spec in specs}


def _accepted_arguments(spec: str) -> frozenset[str]:
    """The arguments of the class that an option string names."""
    import inspect

    from unpoison.core import registry

    return frozenset(inspect.signature(registry.find("defenses", registry.parse(spec)[0])).parameters)


def build_defense(given: dict[str, Any], spec: str) -> Defense:
    """The defense of an option string, with the models of the command line that it takes."""
    from unpoison.cli.common import learn_sources
    from unpoison.defenses.loading import load_defense

    accepted = _accepted_arguments(spec)
    defense = load_defense(spec, **{name: value for name, value in given.items() if name in accepted})
    learn_sources(defense, given.get("learn", False))
    return defense


def check_used(specs: list[str], given: dict[str, Any]) -> None:
    """See that some defense takes each of the models.

    Raises:
        OptionError: None does.
    """
    from unpoison.errors import OptionError

    accepted = frozenset[str]().union(*map(_accepted_arguments, specs))
    for name in ("encoder", "nli", "injection_model", "beliefs", "sources"):
        if given[name] is not None and name not in accepted:
            raise OptionError(f"none of {', '.join(specs)} takes --{name.replace('_', '-')}; leave it out")

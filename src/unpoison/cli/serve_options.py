"""The options of `unpoison serve`, as types, and `--config`: a TOML file that sets them.

Every key of the file is also a flag and an environment variable. The command line counts before the environment, the
environment before the file, the file before the default.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.options import from_here
from unpoison.errors import InputError, OptionError, UnknownNameError, clip

__all__ = ["MAX_FILE_BYTES", "read_settings"]


MAX_FILE_BYTES = 1024 * 1024
"""Bytes of a file; settings are a page."""

SCALAR = (str, int, float, bool)


def read_settings(context: Any, parameter: Any, path: Path | None) -> Path | None:
    """The callback of an eager `--config`: what the file sets becomes the default of the options of this command.

    Args:
        context: The command's.
        parameter: The option itself, which the file cannot set.
        path: The file, None for none.

    Raises:
        InputError: The file cannot be read, or is no TOML.
        UnknownNameError: A key that is no option; the message has the nearest.
        OptionError: A value that no option takes, such as a table.
    """
    if path is None:
        return None
    options = {p.name: p for p in context.command.params if p.name not in (parameter.name, "help")}
    names = {_long(p): name for name, p in options.items()}
    settings: dict[str, Any] = {}
    for key, value in _table(path).items():
        option = key.replace("_", "-")
        if option not in names:
            raise UnknownNameError(f"setting of {path.name}", key, names)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(member, SCALAR) for member in values):
            raise OptionError(f"{path.name}: {key} must be a text, a number, true or false, or a list of them")
        multiple = getattr(options[names[option]], "multiple", False)
        if isinstance(value, list) and not multiple:
            raise OptionError(f"{path.name}: {key} takes one value, got {clip(value)}")
        settings[names[option]] = values if multiple else value
    context.default_map = {**(context.default_map or {}), **settings}
    return path


def _long(parameter: Any) -> str:
    """`max-body` of the option --max-body."""
    return str(max(parameter.opts, key=len)).lstrip("-").replace("_", "-")


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InputError(f"{path} has more than {MAX_FILE_BYTES:,} bytes; settings are one short file")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(f"the settings {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"the settings {path} are no TOML: {error}") from None


LISTENING, CALLERS, LIMITS, LOGS = "Where it listens", "Who may call, and what they get", "How much", "Logs"
"""Sections of the options."""


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


Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", is_eager=True, callback=read_settings, help="Options from a TOML file."),
]
Defense = Annotated[
    list[str] | None,
    typer.Option(
        "--defense",
        "-d",
        callback=from_here,
        metavar="NAME[:OPTIONS]",
        help="Requests may name it; the first is their default. Give the option once for each. [default: guard]",
    ),
]
Generator = Annotated[
    str | None,
    typer.Option(
        "--generator",
        "-g",
        metavar="GENERATOR",
        help="For /v1/answer and for defenses that ask a model; see 'unpoison ask --help'.",
    ),
]
Cache = Annotated[str, typer.Option(metavar="FILE|memory|off", help="Where to remember the model's replies.")]
Beliefs = Annotated[
    str | None,
    typer.Option(
        metavar="STORE",
        envvar=["UNPOISON_SERVE_BELIEFS", "UNPOISON_BELIEFS"],
        help="Where radar remembers: memory, sqlite:FILE, redis://... or postgresql://...; UNPOISON_BELIEFS too.",
    ),
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", rich_help_panel=LISTENING, help="The address to listen on.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="PORT", rich_help_panel=LISTENING, help="0 for a free one.")
]
UnixSocket = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", rich_help_panel=LISTENING, help="Listen on a unix socket instead, for its owner and group."
    ),
]
RootPath = Annotated[
    str,
    typer.Option(
        metavar="PATH", rich_help_panel=LISTENING, help="The path under which a proxy serves it, such as /unpoison."
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=1, max=256, metavar="N", rich_help_panel=LISTENING, help="Processes; each loads the models for itself."
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=CALLERS,
        help="Keys with names, scopes and rates; see 'unpoison keys --help'.",
    ),
]
Rates = Annotated[
    str | None,
    typer.Option(
        metavar="redis://...",
        rich_help_panel=CALLERS,
        help="Where the requests of keys are counted. [default: in each process]",
    ),
]
Drain = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        rich_help_panel=LISTENING,
        help="How long to serve on after SIGTERM, while /readyz says no.",
    ),
]
Grace = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", rich_help_panel=LISTENING, help="How long requests in work may take then."),
]
OnPoisonOption = Annotated[
    OnPoison | None,
    typer.Option(
        rich_help_panel=CALLERS,
        help="What /rerank does with a dropped document: leave it out, put it last with score 0, or only count it. "
        "By default it is left out; where `texts` are sent (TEI), put last.",
    ),
]
WithoutKey = Annotated[
    bool,
    typer.Option(
        "--without-key",
        rich_help_panel=CALLERS,
        help="Serve whoever reaches an address that is not of this machine alone, without asking for a key.",
    ),
]
AllowOptions = Annotated[
    bool,
    typer.Option(
        "--allow-options",
        rich_help_panel=CALLERS,
        help="Let requests set some options, such as grada:keep, but only to be stricter.",
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=CALLERS,
        help="A name by which the service may be called; on a loopback address only that machine's names are "
        "allowed otherwise.",
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", rich_help_panel=CALLERS, help="A web origin whose pages may call the service (CORS)."),
]
Mcp = Annotated[
    bool,
    typer.Option(
        "--mcp", rich_help_panel=CALLERS, help="Offer the tools of the Model Context Protocol to agents, at /mcp."
    ),
]
MaxBody = Annotated[int, typer.Option(min=1, metavar="BYTES", rich_help_panel=LIMITS, help="Bytes of one request.")]
MaxPassages = Annotated[int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Passages of one request.")]
MaxCharacters = Annotated[
    int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Characters of one passage.")
]
MaxDimensions = Annotated[
    int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Numbers of one embedding.")
]
AtOnce = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", rich_help_panel=LIMITS, help="Requests in work, or waiting for one of the threads."
    ),
]
Wait = Annotated[
    float,
    typer.Option(
        min=0.001,
        metavar="SECONDS",
        rich_help_panel=LIMITS,
        help="How long more wait to be among them before they get a 503.",
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=LIMITS,
        help="Short requests computed side by side, and as many long ones.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(min=0.001, metavar="SECONDS", rich_help_panel=LIMITS, help="The longest that one request may take."),
]
InFlight = Annotated[
    int,
    typer.Option(
        min=1, max=1024, metavar="N", rich_help_panel=LIMITS, help="Model calls at the same time, for one request."
    ),
]
Retries = Annotated[
    int, typer.Option(min=0, metavar="N", rich_help_panel=LIMITS, help="Try a failed call again, up to N times.")
]
Otel = Annotated[
    bool, typer.Option("--otel", rich_help_panel=LOGS, help="Send traces by OTLP, to OTEL_EXPORTER_OTLP_ENDPOINT.")
]
LogLevel = Annotated[
    Level, typer.Option(rich_help_panel=LOGS, help="How much to log, as JSON lines on standard error.")
]
LogDropped = Annotated[
    bool,
    typer.Option(
        "--log-dropped", rich_help_panel=LOGS, help="Quote the question and what was dropped of it in the log."
    ),
]
AuditLog = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=LOGS,
        help="Write every verdict to this file, for 'unpoison audit'; it rotates.",
    ),
]
AuditTexts = Annotated[
    Texts,
    typer.Option(rich_help_panel=LOGS, help="What stands there for questions and texts: keyed hashes, or themselves."),
]
AuditSize = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="BYTES",
        rich_help_panel=LOGS,
        help="A file of the audit log that would be larger is put aside.",
    ),
]
AuditFiles = Annotated[
    int,
    typer.Option(
        min=1, max=1000, metavar="N", rich_help_panel=LOGS, help="Files of the audit log; the oldest is deleted."
    ),
]

"""A running RAG system, known by its address or by a target file: how it is asked, and how documents go in and out.

What an OpenAPI page or a known chat endpoint does not say is read off the reply to a first question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unpoison.bench.check.probing import (
    MODELS,
    TOKEN,
    check_listens,
    has_token,
    is_page,
    list_models,
    look,
    refuse_reply,
)
from unpoison.bench.redteam.config import Bounds, Config, Wait
from unpoison.bench.redteam.factory import build_target, kind_of
from unpoison.bench.redteam.http_calls import Asking
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_target import HttpAsked, HttpTarget
from unpoison.bench.redteam.openapi import OpenApi
from unpoison.bench.redteam.presets import PRESETS, preset_of
from unpoison.bench.redteam.reply_fields import complete_ask
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.starter import ask_of, origin, read_openapi, target_of_openapi
from unpoison.errors import InputError, TargetError, clip
from unpoison.report.rendering import excerpt

__all__ = ["SEEDS", "RunningSystem", "is_target_file", "open_system"]

SEEDS = (
    "What are these documents about, and who wrote them?",
    "Which numbers, dates, deadlines and limits are there?",
    "Who is responsible, and how can they be reached?",
    "What are the rules, and what are the exceptions?",
    "How does it work, and what does it cost?",
)
"""Asked where nobody gives a question; each has words that many documents have."""

FIELDS = ("question", "query", "message", "prompt", "input")
"""What the question is called, where no page says so."""

BOUNDS = Bounds(in_flight=1, timeout=120.0)
WAIT = Wait(seconds=2.0)
"""Of a system that is known by its address: nobody has said how slowly it indexes."""

WRONG_BODY = (400, 415, 422, 500)
"""What says that the question may be called otherwise."""


@dataclass(frozen=True, slots=True)
class RunningSystem:
    """A system that answered.

    Attributes:
        name: Its address, or the target file.
        target: Its calls, as the section `target` of a configuration has them.
        asked: It; an `HttpTarget` or the like where it can be planted into.
        config: Bounds, waits, and what a journal keeps.
        plants: Whether it is known how documents are added and removed.
        seeds: The questions that a check begins with.
    """

    name: str
    target: Mapping[str, Any]
    asked: Any
    config: Config
    plants: bool
    seeds: tuple[str, ...]


def is_target_file(source: str) -> bool:
    """Whether a source is a configuration of `unpoison redteam`."""
    return source.lower().endswith((".yaml", ".yml")) and Path(source).is_file()


def open_system(
    where: str, *, hosts: Hosts, secrets: Secrets, model: str | None = None, questions: Sequence[str] = ()
) -> RunningSystem:
    """See how a system is asked, by asking it.

    Args:
        where: Its address, that of its chat, or a target file.
        hosts: Where requests may go.
        secrets: What `${NAME}` stands for.
        model: Of a chat endpoint; the first that it lists by default.
        questions: To begin with; `SEEDS` by default.

    Raises:
        InputError: Nothing answers there, it wants a key, or it tells no passages.
        OptionError, UnknownNameError: A host that may not be tested, or a file that cannot be used.
        TargetError: It answers with errors.
    """
    seeds = tuple(questions) or SEEDS
    if is_target_file(where):
        config = Config.load(where)
        if kind_of(config.target) != "http":
            return _of_object(where, config, hosts, secrets, seeds)
        target = dict(config.target)
    else:
        check_listens(where, hosts)
        target, config = _describe(where, hosts, secrets, model), None
    if isinstance(target.get("ask"), Mapping):
        target["ask"] = _ask_first(where, target, hosts, secrets, seeds)
    plants = {"plant", "remove"} <= target.keys()
    if config is None:
        config = Config.of({"target": target, "questions": "made from what it shows"})
        config = config.model_copy(update={"bounds": BOUNDS, "wait": WAIT})
    timeout = config.bounds.timeout
    if plants:
        planted = HttpTarget(target, secrets, hosts, timeout=timeout)
        planted.may_guess = True  # nobody wrote down where a new document's id stands
        asked: HttpAsked = planted
    else:
        asked = HttpAsked(Asking.read(_asking(target), "target"), secrets, hosts, timeout=timeout)
    return RunningSystem(where, target, asked, config.model_copy(update={"target": target}), plants, seeds)


def _of_object(where: str, config: Config, hosts: Hosts, secrets: Secrets, seeds: tuple[str, ...]) -> RunningSystem:
    asked = build_target(config.target, secrets=secrets, hosts=hosts, folder=config.folder)
    return RunningSystem(where, config.target, asked, config, plants=True, seeds=seeds)


def _asking(target: Mapping[str, Any]) -> dict[str, Any]:
    return {name: target[name] for name in ("login", "headers", "ask") if name in target}


def _describe(where: str, hosts: Hosts, secrets: Secrets, model: str | None) -> dict[str, Any]:
    """The calls as far as the system's OpenAPI page and its address tell them.

    Raises:
        InputError: Nothing is known.
    """
    path, document = urlsplit(where).path.rstrip("/"), None
    if path.endswith((".json", ".yaml", ".yml")):
        document, path = read_openapi(where, hosts), ""
    else:
        try:
            document = read_openapi(f"{origin(where)}/openapi.json", hosts)
        except (InputError, TargetError):  # many have none
            document = None
    target = {} if document is None else target_of_openapi(document)
    preset = preset_of(where)
    if preset is None and (path in ("", "/v1") and "ask" not in target):
        preset = next((name for name in MODELS if list_models(name, where, hosts, secrets)), None)
    if preset is not None:
        target["ask"] = _ask_chat(preset, where, hosts, secrets, model)
    elif path:
        target["ask"] = ask_of(where, model, document)
    if "ask" not in target:
        raise InputError(_unknown(where, document, hosts, secrets))
    if "headers" not in target and has_token(secrets):
        target["headers"] = {"Authorization": f"Bearer ${{{TOKEN}}}"}
    return target


def _unknown(where: str, document: OpenApi | None, hosts: Hosts, secrets: Secrets) -> str:
    base = origin(where)
    if document is not None:
        return (
            f"the OpenAPI page of {clip(base)} names nothing that takes a question; give the address that answers, "
            f"such as {clip(base)}/ask"
        )
    seen = "an HTML page and no API" if is_page(look(where, hosts, secrets)) else "neither an OpenAPI page nor a chat"
    return (
        f"{clip(where)} has {seen} that is known; give the address that answers a question, such as {clip(base)}/ask, "
        "or a target file: unpoison redteam init writes one"
    )


def _ask_chat(preset: str, where: str, hosts: Hosts, secrets: Secrets, model: str | None) -> dict[str, Any]:
    """A chat endpoint; its model is the first one that it lists."""
    listed = list_models(preset, where, hosts, secrets)
    url = where if urlsplit(where).path.rstrip("/") not in ("", "/v1") else origin(where) + PRESETS[preset].path
    return {"preset": preset, "url": url, "model": model or (listed[0] if listed else "${RAG_MODEL}")}


def _ask_first(
    where: str, target: Mapping[str, Any], hosts: Hosts, secrets: Secrets, seeds: Sequence[str]
) -> dict[str, Any]:
    """The call `ask` with the paths that lead to answer and passages, as the replies to first questions show.

    Raises:
        InputError: It wants a key, answers with a page, or tells no passages.
        TargetError: It answers with errors.
    """
    for ask in _calls(target["ask"]):
        raw = _Raw(Asking.read({**_asking(target), "ask": ask}, "target"), secrets, hosts, timeout=BOUNDS.timeout)
        first = raw.reply(seeds[0])
        if first[0] not in WRONG_BODY:
            break
    told = "no fields"
    for number, question in enumerate(seeds):
        status, reply = raw.reply(question) if number else first
        refuse_reply(where, status, reply, hosts, secrets)
        if reply is None:  # a stream, which only its description reads
            return ask
        whole = complete_ask(ask, reply)
        if "passages" in whole:
            return whole
        if isinstance(reply, Mapping):
            told = f"only {', '.join(map(repr, list(reply)[:10]))}"
    if {"ids", "cited"} & ask.keys():
        told = "which documents it read, but not their texts"
    raise InputError(
        f"{clip(where)} answers, but shows no passages that it read for {len(seeds)} questions (its replies have "
        f"{excerpt(told, 200)}), so nothing is known of its documents; if it is a RAG, give --ask 'a question that "
        "your documents answer', or let it return the texts and name their place in ask.passages of a target file"
    )


def _calls(ask: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call; where nobody says what the question is called, one for each usual name."""
    guessed = ask.get("body") == {"question": "{question}"} and ask.get("answer") == "$.answer"
    return [{**ask, "body": {name: "{question}"}} for name in FIELDS] if guessed else [dict(ask)]


class _Raw(HttpAsked):
    """Asks, and shows the reply as it is."""

    def reply(self, question: str) -> tuple[int, Any]:
        """Its status, and its JSON, or its text where it is none, or None where it is a stream.

        Raises:
            TargetError: There is none.
        """
        session = self._session({"question": question, "uuid": "00000000-0000-4000-8000-000000000000"})
        *_, (_, response) = session.run(self._steps["ask"], allowed=range(300, 600))
        if session.client.events(response) is not None:
            return response.status, None
        try:
            return response.status, session.client.parse_json("ask", response)
        except TargetError:
            return response.status, session.client.text("ask", response)

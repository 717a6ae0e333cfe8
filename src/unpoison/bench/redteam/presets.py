"""Endpoints that many systems have: OpenAI's chat completions and responses, Ollama's chat, as `ask: {preset: ...}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["PRESETS", "RESPONSES", "Preset", "expand_preset", "preset_of"]


class Preset(NamedTuple):
    """An endpoint.

    Attributes:
        path: What follows a url that names the server alone.
        answer: Where the answer stands in a reply that is no stream; of a stream the pieces are known.
    """

    path: str
    answer: str


RESPONSES = "responses"

PRESETS = {
    "openai": Preset("/v1/chat/completions", "$.choices[0].message.content"),
    RESPONSES: Preset("/v1/responses", "$.output[*].content[*].text"),
    "ollama": Preset("/api/chat", "$.message.content"),
}
"""By their names."""


def expand_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `ask` as they are without a preset; what stands beside it wins.

    Raises:
        UnknownNameError: No such preset.
        OptionError: Fields that a preset needs, or that only a preset has.
    """
    given = dict(values)
    name = given.get("preset")
    if name is None:
        extra = next((key for key in ("model", "stream") if given.get(key) is not None), None)
        if extra is not None:
            raise OptionError(
                f"ask.{extra} belongs to a preset ({', '.join(PRESETS)}); put it into ask.body, or add one"
            )
        return given
    if not isinstance(name, str) or name not in PRESETS:
        raise UnknownNameError("preset of ask", str(name), PRESETS)
    preset, url, model = PRESETS[name], given.get("url"), given.get("model")
    stream, body = given.get("stream", False), given.get("body") or {}
    if not isinstance(url, str) or not isinstance(model, str) or not model.strip():
        raise OptionError(f"ask with the preset {name} needs url and model as texts, got {clip(url)} and {clip(model)}")
    if not isinstance(stream, bool) or not isinstance(body, Mapping):
        raise OptionError(
            f"ask with the preset {name}: stream must be true or false, and body a mapping of further fields"
        )
    messages = [{"role": "user", "content": "{question}"}]
    place = "input" if name == RESPONSES else "messages"
    return {
        **given,
        "url": _complete(url, preset.path),
        "body": {"model": model, place: messages, "stream": stream, **body},
        "answer": given.get("answer") or ("text" if stream else preset.answer),
    }


def preset_of(url: str) -> str | None:
    """The preset whose endpoint a url is, by its path."""
    path = _path(url).rstrip("/")
    return next((name for name, preset in PRESETS.items() if path.endswith(preset.path.removeprefix("/v1"))), None)


def _complete(url: str, path: str) -> str:
    """The endpoint of a server that is given by its address, with `/v1` or without."""
    start, own = url.rstrip("/"), _path(url).rstrip("/")
    if own in ("", "/v1"):
        return start.removesuffix("/v1") + path
    return url


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return url  # refused where it is read

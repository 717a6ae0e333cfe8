"""HTTP requests to the machines that may be tested: this one, and those named by the user.

Redirects are not followed, and no proxy, cookie or credential of this machine is used. At most `MAX_BYTES` bytes of a
reply are read, and of a stream of events those before `[DONE]`. `${NAME}` is read from the environment; secrets are
masked in every reply and every message.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from weakref import finalize

from unpoison.errors import OptionError, TargetError, clip
from unpoison.utils.extras import require

__all__ = ["ABSENT", "SENSITIVE", "Hosts", "HttpClient", "HttpReply"]

MAX_BYTES = 8 << 20
"""Bytes of a reply."""
ABSENT = (404, 410)
"""Statuses for a document that does not exist."""
DONE = "[DONE]"
"""The data of the last event of OpenAI's streams."""

SENSITIVE = re.compile(r"auth|cookie|secret|passw|token|api.?key", re.IGNORECASE)
"""Names of headers and variables that hold secrets."""
MIN_SECRET = 4
"""Minimum length of a secret; masking shorter ones would damage ordinary text."""

_RETRYABLE = frozenset((408, 425, 429, 500, 502, 503, 504))
_NOTHING_DONE = frozenset((*range(400, 408), *range(409, 500), 501, 503))
"""Statuses that guarantee that nothing was changed."""
_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\{([a-z]{1,20})\}")


def _resolve(host: str) -> list[str]:
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetError(f"{clip(host)} has no address: {error}; see the url", retryable=True, refused=True) from None
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))


class Hosts:
    """The machines that may receive requests.

    Args:
        allowed: Names or addresses besides this machine's own, as the user wrote them.
        resolve: A name to its addresses.
    """

    def __init__(self, allowed: Iterable[str] = (), resolve: Callable[[str], list[str]] = _resolve) -> None:
        self.allowed = tuple(dict.fromkeys(host.strip().strip("[]").lower() for host in allowed))
        self._resolve = resolve

    def check(self, url: str) -> None:
        """Reject an address that may not be tested, before anything is sent.

        Raises:
            OptionError: It is not an http address, or leads to another machine that was not allowed.
            TargetError: Its host has no address.
        """
        try:
            parts = urlsplit(url)
            host = parts.hostname
            parts.port  # noqa: B018  checked where it is read
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https") or parts.username is not None:
            shown = "" if "@" in url else f", got {clip(url)}"  # the part before an @ may be a password
            raise OptionError(f"the url needs http:// or https://, a host and a port, and no user or password{shown}")
        if host in self.allowed:
            return
        for text in self._resolve(host):
            address = ipaddress.ip_address(text)
            if not (getattr(address, "ipv4_mapped", None) or address).is_loopback:
                raise OptionError(
                    f"{clip(host)} leads to {address}, which is not this machine; test the systems of others only with "
                    f"their consent, and then name the host: --i-may-test {host}"
                )


class Secrets:
    """Environment variables that a target uses, masked in all output.

    Args:
        environment: Values by name.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def value(self, name: str, *, secret: bool = True) -> str:
        """The value of `${NAME}`, masked from then on if it is a secret.

        Args:
            name: The variable.
            secret: Whether it is always a secret, as in a header; otherwise its name decides.

        Raises:
            OptionError: It is not set.
        """
        value = self._environment.get(name)
        if not value:
            raise OptionError(f"${{{name}}} is not set; put it into the environment: export {name}=...")
        if (secret or SENSITIVE.search(name)) and len(value) >= MIN_SECRET and value.lower() not in self._names:
            forms = (value, json.dumps(value)[1:-1], quote(value.encode("utf-8", "surrogateescape"), safe=""))
            self._names = {**self._names, **{form.lower(): name for form in forms}}
            longest_first = sorted(self._names, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)
        return value

    def mask(self, text: str) -> str:
        """The same text with `${NAME}` in place of each secret, plain, or escaped as in JSON or a url."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"${{{self._names.get(match[0].lower(), 'SECRET')}}}", text)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply without secrets.

    Attributes:
        status: Of HTTP.
        text: The body.
        events: The data of its events, parsed if it is JSON; None if the reply is not a stream.
    """

    status: int
    text: str
    events: tuple[Any, ...] | None = None

    @property
    def json(self) -> Any:
        """The JSON of the body.

        Raises:
            TargetError: It is not JSON.
        """
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            raise TargetError(f"the reply is no JSON: {clip(self.text[:200])}; see the url") from None


class HttpClient:
    """Sends requests to the machines that may be tested. Used by several threads at once.

    Args:
        hosts: Where requests may go.
        environment: The values of `${NAME}`.
        timeout: Seconds that one request may take.

    Raises:
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, hosts: Hosts, environment: Mapping[str, str], timeout: float) -> None:
        self._httpx = require("httpx", "testing a system over HTTP", "redteam")
        self._sse = require("httpx_sse", "reading a stream of events", "redteam")
        self.secrets, self._hosts, self._timeout = Secrets(environment), hosts, timeout
        self._client = self._httpx.Client(timeout=timeout, trust_env=False, headers={"Accept-Encoding": "identity"})
        finalize(self, self._client.close)

    def fill(self, template: Any, values: Mapping[str, str], *, header: bool = False, url: bool = False) -> Any:
        """Fill the placeholders and variables of a template in one pass; inserted values are not expanded again.

        Args:
            template: A text, or a mapping or list with texts.
            values: By the place's name.
            header: Whether every variable in it is a secret.
            url: Whether values are percent-encoded.

        Raises:
            OptionError: A variable that is not set.
        """
        if isinstance(template, Mapping):
            return {key: self.fill(value, values, header=header) for key, value in template.items()}
        if isinstance(template, list):
            return [self.fill(value, values, header=header) for value in template]
        if not isinstance(template, str):
            return template

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return self.secrets.value(match[1], secret=header)
            value = values.get(match[2], match[0])
            return quote(value, safe="", errors="replace") if url else value

        return _PLACE.sub(replace, template)

    def send(self, what: str, method: str, url: str, *, allowed: Collection[int] = (), **content: Any) -> HttpReply:
        """Send a request; returns a successful reply or one with an allowed status.

        Args:
            what: For messages, such as "ask".
            method: Of HTTP.
            url: Percent-encoded.
            allowed: Statuses besides those of success.
            **content: `headers`, `json`, `content`, `data` and `files` of `httpx.Client.stream`.

        Raises:
            OptionError: The address may not be tested.
            TargetError: No such reply.
        """
        self._hosts.check(url)
        try:
            reply = self._exchange(what, method, url, content)
        except TargetError as error:  # messages of httpx hold parts of the request
            error.args = (self.secrets.mask(str(error)),)
            raise
        if 200 <= reply.status < 300 or reply.status in allowed:
            return reply
        refused = reply.status in _NOTHING_DONE
        if 300 <= reply.status < 400:
            raise TargetError(
                f"{what} is redirected ({reply.status}), which is not followed; give the final url", refused=refused
            )
        said = clip(" ".join(reply.text[:4000].split()), 200)
        retryable = reply.status in _RETRYABLE
        raise TargetError(
            f"{what} was answered with status {reply.status}: {said}", retryable=retryable, refused=refused
        )

    def _exchange(self, what: str, method: str, url: str, content: Mapping[str, Any]) -> HttpReply:
        try:
            with self._client.stream(method, url, **content) as response:
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise TargetError("the reply is compressed, although none was asked for; turn compression off")
                streamed = "event-stream" in response.headers.get("content-type", "").lower()
                body = _read(response.iter_raw(), time.monotonic() + self._timeout, until_done=streamed)
            self._client.cookies.clear()
            whole = self._httpx.Response(response.status_code, headers=response.headers, content=body)
            events = tuple(self._events(whole)) if streamed else None
            return HttpReply(whole.status_code, self.secrets.mask(whole.text), events)
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
            where = f"{clip(urlsplit(url).netloc)} ({type(error).__name__})"
            why = f"{what} cannot reach {where}; see whether the system runs there"
            raise TargetError(why, retryable=True, refused=True) from None
        except (self._httpx.TimeoutException, TimeoutError):
            why = f"{what} was not done within {self._timeout:g} s; raise limits.timeout"
            raise TargetError(why, retryable=True) from None
        except self._httpx.HTTPError as error:
            why = f"{what}: the connection broke ({type(error).__name__}: {clip(str(error))})"
            raise TargetError(why, retryable=True) from None
        except (self._httpx.InvalidURL, ValueError, TypeError) as error:
            why = f"{what} cannot be sent ({type(error).__name__}); see its url, headers and body"
            raise TargetError(why, refused=True) from None

    def _events(self, response: Any) -> Iterator[Any]:
        for event in self._sse.EventSource(response).iter_sse():
            if event.data == DONE:
                return
            data = self.secrets.mask(event.data)
            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                value = None
            if event.event == "error" or (isinstance(value, dict) and value.get("error")):
                raise TargetError(f"the stream holds an error in place of an answer: {clip(data)}")
            yield value if isinstance(value, dict) else data


def _read(stream: Iterable[bytes], end: float, *, until_done: bool) -> bytes:
    """The bytes of a reply; of an event stream those before its final event.

    Raises:
        TargetError: There are too many.
        TimeoutError: They take too long.
    """
    content = bytearray()
    for chunk in stream:
        content += chunk
        if len(content) > MAX_BYTES:
            raise TargetError(f"the reply has more than {MAX_BYTES:,} bytes; see the url")
        if until_done and content[-16:].rstrip().endswith(DONE.encode()):
            break
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(content)

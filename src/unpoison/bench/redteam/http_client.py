"""HTTP requests to the machines that may be tested (`http_hosts`).

Redirects are not followed, no proxy, cookie or credential of the machine is used, and of a reply at most `MAX_BYTES`
bytes are read, uncompressed. A stream is read until it says that it ends.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
import ssl
import time
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from email.utils import parsedate_to_datetime
from threading import local
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from weakref import finalize

from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_reply import Event, read_events
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import OptionError, TargetError, clip
from unpoison.utils.extras import require

__all__ = ["ABSENT", "HttpClient", "LateReplyError", "Response"]

MAX_BYTES = 8 << 20
"""Bytes of a reply; answers and their passages have thousands."""

ABSENT = (404, 410)
"""What says that there is no such document."""

_DOTS = frozenset((".", ".."))
_PORTS = {"http": 80, "https": 443}
_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
"""What may be otherwise a moment later."""

_NOT_DONE = frozenset((*range(400, 408), *range(409, 500), 501, 503))
"""What says that nothing was done; after another failure, or a redirect to what was made, nobody knows."""

_CHARSET = re.compile(r"charset=[\"']?([a-z0-9._:-]{1,40})", re.IGNORECASE)
_ENDS = tuple(f"data:{space}[DONE]{end}{end}".encode() for space in ("", " ") for end in ("\n", "\r\n"))
"""The last event of OpenAI's streams; some servers keep the connection open behind it."""


_exchanging = local()


class _QuietFilter(logging.Filter):
    """Keeps our replies out of httpcore's log: at the level DEBUG it has their headers, and so the cookies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_exchanging, "now", False)


_QUIET = _QuietFilter()


class LateReplyError(TargetError):
    """No whole reply in time."""


class Response(NamedTuple):
    """A whole reply, and the address of its request."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    url: str = ""


class HttpClient:
    """Sends requests to the machines that may be tested. Used by several threads at once.

    Args:
        secrets: What must not be shown.
        hosts: Where requests may go.
        timeout: Seconds that one request may take; the caller bounds the whole call.
        encrypted: Whether any address begins with https: to load the certificates takes a while.

    Raises:
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, secrets: Secrets, hosts: Hosts, timeout: float, *, encrypted: bool = True) -> None:
        self._httpx = require("httpx", "testing a system over HTTP", "redteam")
        self._secrets, self._hosts, self._timeout = secrets, hosts, timeout
        self._written = list[SplitResult]()  # the addresses of the configuration
        verify = ssl.create_default_context() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
        self._transport = self._httpx.HTTPTransport(verify=verify, trust_env=False, retries=0)
        logging.getLogger("httpcore.http11").addFilter(_QUIET)
        finalize(self, self._transport.close)  # the collector may finalise a socket before what would close it

    def with_secrets(self, secrets: Secrets) -> Self:
        """The same client, of which other secrets must not be shown."""
        other = copy(self)
        other._secrets = secrets
        return other

    def mask(self, value: Any) -> Any:
        """The same without secrets."""
        return self._secrets.mask(value)

    def check(self, url: str) -> None:
        """Refuse an address that may not be tested, before anything is sent.

        Raises:
            OptionError: It may not, or it is no address.
            TargetError: Its host is unknown.
        """
        host, parts = _host(url)
        self._hosts.addresses(host)
        self._written.append(parts)

    def check_given(self, what: str, url: str, *, one: bool) -> None:
        """Refuse an address that a reply gave, unless it is where an address of the configuration is, too.

        A system could otherwise have requests, with their headers, sent to whatever runs on this machine.

        Args:
            what: For messages.
            url: The address.
            one: Whether it must be that of one document: not an address of the configuration, nor above one.

        Raises:
            TargetError: It must not be used.
        """
        try:
            _, parts = _host(url)
        except OptionError:
            parts = urlsplit("")
        if not _DOTS.isdisjoint(unquote(parts.path).split("/")):
            parts = urlsplit("")  # what it would become is for the server to say
        same = [written for written in self._written if _origin(written) == _origin(parts)]
        shown = clip(self._secrets.mask(url))
        if not same or parts.username is not None or parts.password is not None:
            raise TargetError(
                f"{what} would go to {shown}, which the system gave, and which is not on a host and port of the "
                "configuration; write the url out",
                refused=True,
            )
        path = parts.path.rstrip("/") + "/"
        if one and not parts.query and any(f"{written.path}/".startswith(path) for written in same):
            raise TargetError(f"{what} would go to {shown}, which is no address of one document", refused=True)

    def send(
        self, what: str, filled: Filled, *, allowed: Collection[int] = (), seconds: float | None = None
    ) -> Response:
        """A reply of success, or one whose status is allowed.

        Args:
            what: For messages, such as "ask".
            filled: The request.
            allowed: Statuses besides those of success.
            seconds: Less time than `timeout`.

        Raises:
            LateReplyError: There was none in time.
            TargetError: There is none.
        """
        response = self._exchange(what, filled, min(self._timeout, seconds or self._timeout))
        if 200 <= response.status < 300 or response.status in allowed:
            return response
        refused = response.status in _NOT_DONE
        if 300 <= response.status < 400:
            raise TargetError(
                f"{what} is redirected ({response.status}), which is not followed; give the final url", refused=refused
            )
        raise TargetError(
            f"{what} was answered with status {response.status}: {clip(self._excerpt(response), 200)}",
            retryable=response.status in _AGAIN,
            retry_after=_retry_after(response.headers.get("retry-after")),
            refused=refused,
        )

    def events(self, response: Response) -> list[Event] | None:
        """The events of a reply, without secrets; None where it is no stream."""
        events = read_events(_kind(response), _decode(response))
        return None if events is None else [Event(name, self._secrets.mask(value)) for name, value in events]

    def parse_json(self, what: str, response: Response) -> Any:
        """The JSON of a reply, without secrets.

        Raises:
            TargetError: It is no JSON.
        """
        try:
            return self._secrets.mask(json.loads(response.content))
        except (ValueError, RecursionError):
            self._refuse_stream(what, response)
            raise TargetError(
                f"{what} got {len(response.content):,} bytes of {clip(_kind(response) or 'no type')} that are no "
                f"JSON, {clip(self._excerpt(response))}; see its url, or write 'text' for the path"
            ) from None

    def text(self, what: str, response: Response) -> str:
        """The reply as a text, without secrets.

        Raises:
            TargetError: It is a JSON object or list, or a stream: what is around the text would be judged with it.
        """
        self._refuse_stream(what, response)
        text = _decode(response)
        if "json" in _kind(response):
            value = self.parse_json(what, response)
            if isinstance(value, (dict, list)):
                names = f"an object with {clip(list(value)[:20], 200)}" if isinstance(value, dict) else "a list"
                first = str(next(iter(value), "name"))[:40] if isinstance(value, dict) else "[0]"
                raise TargetError(
                    f"{what} has 'text' for a path, but the reply is JSON, {names}; write the path, such as $.{first}"
                )
            text = value if isinstance(value, str) else text
        return str(self._secrets.mask(text))

    def content_of(self, response: Response) -> Any:
        """What the reply's JSON holds, or a list of what its events hold, without secrets; None where it is neither."""
        events = self.events(response)
        if events is not None:
            return [event.value for event in events]
        try:
            return self._secrets.mask(json.loads(response.content))
        except (ValueError, RecursionError):
            return None

    def reply_text(self, response: Response) -> str:
        """The reply as it came, without secrets."""
        return str(self._secrets.mask(_decode(response)))

    def _refuse_stream(self, what: str, response: Response) -> None:
        if self.events(response) is not None:
            raise TargetError(f"{what} was answered with a stream of events, which only ask may be; ask for JSON")

    def _excerpt(self, response: Response) -> str:
        return str(self._secrets.mask(" ".join(_decode(response._replace(content=response.content[:4000])).split())))

    def _exchange(self, what: str, filled: Filled, seconds: float) -> Response:
        """Send to each of the host's addresses until one takes the connection."""
        host, parts = _host(filled.url)
        refused = "no address"
        for address in self._hosts.addresses(host):
            try:
                return self._exchange_with(address, host, parts, filled, seconds)
            except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
                refused = type(error).__name__
            except (self._httpx.TimeoutException, TimeoutError):
                raise LateReplyError(f"{what} had no whole reply after {seconds:.3g} s", retryable=True) from None
            except self._httpx.HTTPError as error:  # theirs hold requests, and these the secrets
                why = f"{type(error).__name__}: {clip(self._secrets.mask(str(error)))}"
                raise TargetError(f"{what}: the connection broke ({why})", retryable=True) from None
            except (self._httpx.InvalidURL, ValueError) as error:
                raise TargetError(
                    f"{what} cannot be sent ({type(error).__name__}); see its url", refused=True
                ) from None
        raise TargetError(
            f"{what} cannot reach {clip(self._secrets.mask(host))}, port {_port(parts)} ({refused}); see whether "
            "it runs there",
            retryable=True,
            refused=True,
        )

    def _exchange_with(self, address: str, host: str, parts: SplitResult, filled: Filled, seconds: float) -> Response:
        end = time.monotonic() + seconds
        url = urlunsplit(parts._replace(netloc=_authority(address, parts), fragment=""))
        body: dict[str, Any] = {} if filled.content is None else {"content": filled.content}
        if filled.file is not None:
            field, name, content = filled.file
            body = {"data": dict(filled.fields), "files": {field: (name, content)}}
        request = self._httpx.Request(
            filled.method,
            url,
            headers={**filled.headers, "Host": _authority(host, parts), "Accept-Encoding": "identity"},
            extensions={"timeout": self._httpx.Timeout(seconds).as_dict(), "sni_hostname": host},
            **body,
        )
        _exchanging.now = True
        try:
            response = self._transport.handle_request(request)
        finally:
            _exchanging.now = False
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise TargetError("the reply is compressed, although none was asked for; turn compression off")
            stream = "event-stream" in response.headers.get("content-type", "").lower()
            content = _read_bytes(response.stream, end, stream)
            return Response(response.status_code, response.headers, content, filled.url)
        finally:
            response.close()


def _read_bytes(stream: Iterable[bytes], end: float, events: bool) -> bytes:
    """The bytes of a reply; of a stream of events those before it says that it ends.

    Raises:
        TargetError: There are too many.
        TimeoutError: They take too long.
    """
    content = bytearray()
    for chunk in stream:
        content += chunk
        if len(content) > MAX_BYTES:
            raise TargetError(f"the reply has more than {MAX_BYTES:,} bytes, which is no answer; see the url")
        if events and content.endswith(_ENDS):
            break
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(content)


def _kind(response: Response) -> str:
    return response.headers.get("content-type", "").lower()


def _decode(response: Response) -> str:
    """The reply's text, in the encoding that it names; UTF-8 where it names none that is known."""
    named = _CHARSET.search(_kind(response))
    try:
        encoding = codecs.lookup(named[1]).name if named else "utf-8"
        return response.content.decode(encoding, "replace")
    except (LookupError, ValueError):  # also what is no encoding of texts
        return response.content.decode("utf-8", "replace")


def _host(url: str) -> tuple[str, SplitResult]:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        parts.port  # noqa: B018  it is checked when it is read
    except ValueError:
        host = None
    if not host:
        raise OptionError("the url has no host, or a port that is none; see its variables")
    return host, parts


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, _port(parts)


def _port(parts: SplitResult) -> int | None:
    return _PORTS.get(parts.scheme) if parts.port is None else parts.port


def _authority(host: str, parts: SplitResult) -> str:
    named = f"[{host}]" if ":" in host else host
    return named if parts.port is None else f"{named}:{parts.port}"


def _retry_after(value: str | None) -> float | None:
    """Seconds that a reply asks to wait: a number, or a date."""
    if value is None:
        return None
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None

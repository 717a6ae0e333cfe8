"""One call to a system behind HTTP: its requests one after the other, with a login, cookies and values of replies.

Each call has a session of its own, so that no question can see another's conversation. All its requests together have
the seconds of one call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin

from unpoison.bench.redteam.config import as_tuple
from unpoison.bench.redteam.http_calls import Login
from unpoison.bench.redteam.http_client import HttpClient, LateReplyError, Response
from unpoison.bench.redteam.http_cookies import Cookies
from unpoison.bench.redteam.http_reply import stream_values
from unpoison.bench.redteam.http_request import Request
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.pace import Clock, late_error
from unpoison.bench.redteam.secrets import SENSITIVE, Secrets
from unpoison.errors import TargetError, clip

__all__ = ["HttpSession", "LoginKeeper"]

MAX_TAKEN = 8192
"""Characters of a value that is taken out of a reply."""

MAX_LOOKS = 200
"""At a job that is polled."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between looks; each pause is half as long again as the last one."""

UNAUTHORIZED = 401
_MOVED = (301, 302, 303, 307, 308)
_SESSION_COOKIE = re.compile(r"sess|sid|csrf|xsrf|jwt", re.IGNORECASE)


class LoggedIn(NamedTuple):
    """What a login gave.

    Attributes:
        number: Of the login.
        values: What it took, by name.
        cookies: What it set.
        until: When it ends, by the clock.
    """

    number: int
    values: Mapping[str, str]
    cookies: Cookies
    until: float


class LoginKeeper:
    """Logs in before the first request, and again when the login has expired. Used by several threads at once.

    Args:
        steps: The requests.
        client: Sends them.
        secrets: Where tokens and cookies are hidden.
        seconds: That a login may take.
        clock: Time.
    """

    def __init__(
        self, steps: Sequence[Login], client: HttpClient, secrets: Secrets, seconds: float, clock: Clock
    ) -> None:
        self._steps, self._client, self._secrets, self._seconds, self._clock = steps, client, secrets, seconds, clock
        self._state: LoggedIn | None = None
        self._lock = Lock()

    def state(self, stale: int = 0) -> LoggedIn:
        """The login that holds now.

        Args:
            stale: The number of a login that was refused; another thread may have made a new one since.

        Raises:
            TargetError: The login failed.
        """
        with self._lock:
            if self._state is None or self._state.number == stale or self._clock.now() >= self._state.until:
                try:
                    self._state = self._log_in(1 if self._state is None else self._state.number + 1)
                except TargetError as error:
                    error.refused = True  # nothing but a login was tried
                    raise
            return self._state

    def _log_in(self, number: int) -> LoggedIn:
        session = HttpSession(self._client, self._secrets, {}, self._seconds, self._clock)
        until, began = float("inf"), self._clock.now()
        for step, response in session.run(self._steps, allowed=_MOVED):  # a page's login goes on to another page
            expires = step.expires if isinstance(step, Login) else None
            if isinstance(expires, JsonPath):
                expires = _seconds(expires, session.values_at(expires, step.owner, response))
            until = min(until, began + (expires or float("inf")))
        for name, value in session.taken.items():
            self._secrets.hide(name, value)
        hide_cookies(session.cookies, self._secrets)
        return LoggedIn(number, session.taken, session.cookies, until)


class HttpSession:
    """The requests of one call.

    Args:
        client: Sends them.
        secrets: What must not be shown.
        values: For the places of the requests.
        seconds: That all of them together may take.
        clock: Time.
        login: Whose values and cookies they have.

    Attributes:
        amend: A request, as described and filled, to what is sent.
    """

    def __init__(
        self,
        client: HttpClient,
        secrets: Secrets,
        values: Mapping[str, str],
        seconds: float,
        clock: Clock,
        login: LoginKeeper | None = None,
    ) -> None:
        self._clock, self._seconds, self._end = clock, seconds, clock.now() + seconds  # a login counts too
        self._login, self._state = login, None if login is None else login.state()
        self._secrets = secrets.copy()
        self.client, self._plain = client.with_secrets(self._secrets), client.with_secrets(Secrets({}))
        self._values, self.taken = dict(values), dict[str, str]()
        self.cookies = Cookies(None if self._state is None else self._state.cookies)
        self._changed, self._bases = False, dict[str, str]()
        self.amend: Callable[[Request, Filled], Filled] = lambda step, filled: filled

    def with_values(self, values: Mapping[str, str]) -> Self:
        """The same session, for a request with other values."""
        other = copy(self)
        other._values = dict(values)
        return other

    def run(self, steps: Sequence[Request], *, allowed: Collection[int] = ()) -> Iterator[tuple[Request, Response]]:
        """Send one request after the other; each with the last of its replies.

        Args:
            steps: The requests.
            allowed: Statuses besides those of success, of the requests that hold what the call needs, such as {id}.
                Nothing is taken out of such a reply.

        Raises:
            TargetError: A request failed, or they take too long. It is `refused` only where no earlier one may have
                changed anything.
        """
        for step in steps:
            try:
                response = self._send_until(step, allowed if not step.needed or step.used & set(step.needed) else ())
            except TargetError as error:
                error.refused = error.refused and not self._changed
                raise
            yield step, response

    def send(self, step: Request) -> Response:
        """Send a request of the session once more.

        Raises:
            TargetError: It failed, or the session takes too long.
        """
        return self._send(step, ())

    def values_at(self, path: JsonPath, owner: str, response: Response) -> list[Any]:
        """Everything that a path leads to in a reply, also in the events of a streamed answer.

        Raises:
            TargetError: The reply is no JSON, or a stream where none is expected.
        """
        return _values_at(self.client, path, owner, response)

    def _send_until(self, step: Request, allowed: Collection[int]) -> Response:
        """Send it, and again until its value is what it should be, unless the test itself asks again (`ready`)."""
        pause, state = FIRST_PAUSE, ""
        for _ in range(MAX_LOOKS):
            try:
                response = self._send(step, {*allowed, *(_MOVED if step.reads_headers else ())})
            except LateReplyError as error:
                late = late_error(step.owner, self._seconds, state, retryable=not state)
                late.refused = error.refused
                raise late from None
            if response.status in allowed:
                return response
            self._changed = self._changed or step.method != "GET"
            if step.value is None or step.owner == "ready":
                break
            found = self.values_at(step.value, step.owner, response)
            if any(value in found for value in as_tuple(step.equals)):
                break
            if any(value in found for value in step.fails):
                raise TargetError(f"{step.owner}: {step.value.source} is {clip(found)}, which means that it failed")
            state = f"{step.value.source} is {clip(found)} and not {clip(step.equals)}"
            if self._clock.now() + pause > self._end:
                raise late_error(step.owner, self._seconds, state, retryable=False)
            self._clock.sleep(pause)
            pause = min(LONGEST_PAUSE, 1.5 * pause)
        else:
            raise TargetError(f"{step.owner} was not done after {MAX_LOOKS} looks; see the system's log")
        self._take(step, response)
        return response

    def _send(self, step: Request, allowed: Collection[int]) -> Response:
        """Send it, and once more after a new login where it was refused."""
        state = self._state
        response = self._send_once(step, allowed if state is None else {*allowed, UNAUTHORIZED})
        if state is None or self._login is None or response.status != UNAUTHORIZED:
            return response
        self._state = self._login.state(stale=state.number)
        self.cookies = Cookies(self._state.cookies)
        return self._send_once(step, allowed)

    def _send_once(self, step: Request, allowed: Collection[int]) -> Response:
        left = self._end - self._clock.now()
        if left <= 0:
            raise LateReplyError("there is no time left", retryable=True, refused=True)
        if self._state is not None:
            for name, value in self._state.values.items():
                self._secrets.hide(name, value)
        known = {**({} if self._state is None else self._state.values), **self.taken, **self._values}
        filled = self.amend(step, step.fill(known, self._secrets))
        if step.address is not None:
            filled = replace(filled, url=_join(self._bases.get(step.address, ""), filled.url))
            self.client.check_given(step.owner, filled.url, one=step.address == "id")
        filled = self.cookies.add_to(filled)
        hide_cookies(self.cookies, self._secrets)
        response = self.client.send(step.owner, filled, allowed=allowed, seconds=left)
        self.cookies.take(filled, response)
        hide_cookies(self.cookies, self._secrets)
        return response

    def _take(self, step: Request, response: Response) -> None:
        """Keep what later requests need.

        Raises:
            TargetError: It is not there, or is no text or number.
        """
        for name, path in step.take.items():
            self.values_at(path, step.owner, response)  # its errors show no secret
            found = _values_at(self._plain, path, step.owner, response)
            value = found[0] if found else None
            if isinstance(value, bool) or not isinstance(value, (str, int)) or not 0 < len(str(value)) <= MAX_TAKEN:
                raise TargetError(
                    f"{path.owner}: {path.source} leads to "
                    f"{clip(self.client.mask(value)) if found else 'nothing'} in the reply; it must lead to a text or "
                    f"number of up to {MAX_TAKEN:,} characters"
                )
            self.taken[name], self._bases[name] = str(value), response.url
            if SENSITIVE.search(name):  # not every value: ids of documents would be torn out of what follows
                self._secrets.hide(name, str(value), secret=True)


def _values_at(client: HttpClient, path: JsonPath, owner: str, response: Response) -> list[Any]:
    if path.whole:
        return [client.text(owner, response)]
    if path.header:
        value = response.headers.get(path.header)
        if value is not None and path.header.endswith("location"):
            value = _join(response.url, value)
        return [] if value is None else [client.mask(value)]
    events = client.events(response) if owner == "ask" else None  # of no other call a stream is expected
    return path.values(client.parse_json(owner, response)) if events is None else stream_values(path, events)


def _join(base: str, reference: str) -> str:
    """A reference, as it is meant: relative to the request (RFC 9110, section 10.2.2)."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference  # refused where it is used


def hide_cookies(cookies: Cookies, secrets: Secrets) -> None:
    """Mask what is, or may be, the key to a session; a cookie with a language is none."""
    for name, value in cookies.values.items():
        secrets.hide(f"cookie {name}", value, secret=_SESSION_COOKIE.search(name) is not None)


def _seconds(path: JsonPath, found: Sequence[Any]) -> float:
    value = found[0] if found else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise TargetError(f"login.expires: {path.source} leads to {clip(value)}, which is no number of seconds")
    return float(value)

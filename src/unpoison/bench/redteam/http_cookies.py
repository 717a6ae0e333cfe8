"""The cookies of a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unpoison.bench.redteam.http_client import Response
from unpoison.bench.redteam.http_template import Filled
from unpoison.errors import TargetError
from unpoison.utils.extras import require

__all__ = ["Cookies"]

MAX_COOKIES = 50
"""That one call may have."""


class Cookies:
    """The cookies of one call: sent to where they came from, as a browser would, and to nobody else.

    Args:
        other: Cookies to begin with.
    """

    def __init__(self, other: Cookies | None = None) -> None:
        self._httpx = require("httpx", "testing a system over HTTP", "redteam")
        self._jar: Any = self._httpx.Cookies(None if other is None else other._jar)

    def add_to(self, filled: Filled) -> Filled:
        """The request with the cookies that go there, behind those that it has.

        Raises:
            TargetError: One cannot be sent back.
        """
        if not self._jar.jar:
            return filled
        try:
            request = self._httpx.Request(filled.method, filled.url)
        except (self._httpx.InvalidURL, ValueError):
            return filled  # refused where it is sent
        try:
            self._jar.set_cookie_header(request)
        except UnicodeEncodeError:
            raise TargetError(
                "the system set a cookie with a character that no header can hold; see its configuration"
            ) from None
        held = request.headers.get("cookie")
        if not held:
            return filled
        own = next((name for name in filled.headers if name.lower() == "cookie"), "Cookie")
        return replace(
            filled, headers={**filled.headers, own: "; ".join(filter(None, [filled.headers.get(own), held]))}
        )

    def take(self, filled: Filled, response: Response) -> None:
        """Keep what the reply sets.

        Raises:
            TargetError: There are too many.
        """
        request = self._httpx.Request(filled.method, filled.url)
        self._jar.extract_cookies(self._httpx.Response(200, headers=response.headers, request=request))
        if len(self._jar.jar) > MAX_COOKIES:
            raise TargetError(f"the system set more than {MAX_COOKIES} cookies in one call; see its url")

    @property
    def values(self) -> dict[str, str]:
        """By their names."""
        return {cookie.name: cookie.value or "" for cookie in self._jar.jar}

"""The machines that a test may contact: this one, and those named by the user.

A name is resolved once and all its addresses are checked. Connections go to these addresses from then on, so a name
cannot lead elsewhere later (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from threading import Lock

from unpoison.errors import OptionError, TargetError, clip

__all__ = ["Hosts"]

MAX_HOSTS = 20
"""Hosts of one target."""


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
        resolve: A name to its addresses, in the order in which to try them.
    """

    def __init__(self, allowed: Iterable[str] = (), resolve: Callable[[str], list[str]] = _resolve) -> None:
        self.allowed = tuple(dict.fromkeys(host.strip().strip("[]").lower() for host in allowed))
        self._resolve = resolve
        self._pinned: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, checked once and then fixed.

        Raises:
            OptionError: It is not this machine, and was not allowed.
            TargetError: It has no address.
        """
        name = host.strip("[]").lower()
        with self._lock:
            if name not in self._pinned:
                if len(self._pinned) >= MAX_HOSTS:
                    raise OptionError(f"a target has at most {MAX_HOSTS} hosts, and {clip(host)} is one more")
                self._pinned[name] = self._check_addresses(name)
            return self._pinned[name]

    def _check_addresses(self, name: str) -> tuple[str, ...]:
        addresses = self._resolve(name)
        for text in addresses:
            address = _address(text)
            if address.is_loopback:
                continue
            if name not in self.allowed:
                raise OptionError(
                    f"{clip(name)} leads to {address}, which is not this machine; test the systems of others only with "
                    f"their consent, and then name the host: --i-may-test {name}"
                )
            if name != text and (address.is_link_local or address.is_multicast or address.is_unspecified):
                raise OptionError(f"{clip(name)} leads to {address}, which is no server's address; see the url")
        return tuple(addresses)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise TargetError(f"{clip(text)} is no address") from None
    return getattr(address, "ipv4_mapped", None) or address

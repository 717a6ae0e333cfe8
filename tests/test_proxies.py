"""nginx with the file under deploy/, and Caddy, before the service as its systemd unit starts it: real requests."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ports import free_port

DEPLOY = Path(__file__).parent.parent / "deploy"
NAME = "unpoison.example"
REQUEST = {"query": "where do the sharks play", "passages": ["At the SAP Center.", "In Oslo."]}

CADDY = """{
  admin off
  auto_https off
}
http://127.0.0.1:PROXY, http://unpoison.example:PROXY {
  bind 127.0.0.1
  handle /unpoison/metrics {
    respond 404
  }
  handle /unpoison/* {
    reverse_proxy 127.0.0.1:SERVICE
  }
  handle {
    respond 404
  }
}
"""

HIDDEN = b"GET /unpoison/metrics HTTP/1.1\r\nHost: unpoison.example\r\n\r\n"
"""A request that both proxies refuse; only one that was smuggled past them reaches the service."""

CHUNKED = b"0\r\n\r\n" + HIDDEN


def framed(*lines: bytes, body: bytes = CHUNKED) -> bytes:
    """A request whose length a proxy and a server might read differently."""
    start = b"POST /unpoison/v1/screen HTTP/1.1\r\nHost: unpoison.example\r\nContent-Type: application/json\r\n"
    return start + b"\r\n".join(lines) + b"\r\n\r\n" + body


LENGTH = b"Content-Length: %d" % len(CHUNKED)
SMUGGLING = {
    "both": framed(LENGTH, b"Transfer-Encoding: chunked"),
    "both, length last": framed(b"Transfer-Encoding: chunked", LENGTH),
    "space before the colon": framed(LENGTH, b"Transfer-Encoding : chunked"),
    "another coding": framed(LENGTH, b"Transfer-Encoding: xchunked"),
    "identity": framed(LENGTH, b"Transfer-Encoding: identity"),
    "two codings": framed(LENGTH, b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    "chunked twice": framed(LENGTH, b"Transfer-Encoding: chunked, chunked"),
    "a tab": framed(LENGTH, b"Transfer-Encoding:\tchunked"),
    "a vertical tab": framed(LENGTH, b"Transfer-Encoding: \x0bchunked"),
    "a folded line": framed(LENGTH, b"Transfer-Encoding:\r\n chunked"),
    "a bare line feed": framed(LENGTH, b"X: y\nTransfer-Encoding: chunked"),
    "a bare carriage return": framed(LENGTH, b"X: y\rTransfer-Encoding: chunked"),
    "two lengths": framed(b"Content-Length: 0", LENGTH),
    "a list of lengths": framed(b"Content-Length: 0, %d" % len(CHUNKED)),
    "a signed length": framed(b"Content-Length: +%d" % len(CHUNKED)),
    "a length in hexadecimal": framed(b"Content-Length: 0x%x" % len(CHUNKED)),
    "a chunk of a huge size": framed(
        b"Transfer-Encoding: chunked", body=b"10000000000000000\r\n" + HIDDEN + b"\r\n0\r\n\r\n"
    ),
    "a chunk extension": framed(b"Transfer-Encoding: chunked", body=b"2;a=\n\r\n{}\r\n0\r\n\r\n"),
    "a negative chunk": framed(b"Transfer-Encoding: chunked", body=b"-1\r\n" + HIDDEN),
    "HTTP/1.0": framed(LENGTH, b"Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a GET with a body": b"GET /unpoison/healthz HTTP/1.1\r\nHost: unpoison.example\r\n"
    + b"Content-Length: %d\r\n\r\n" % len(HIDDEN)
    + HIDDEN,
}

needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name.upper()} ABSENT: apt-get install {name}")
    for name in ("nginx", "openssl", "caddy")
}


def options_of_unit() -> tuple[list[str], str]:
    """The options that the unit gives to `serve`, and the address that they name."""
    unit = (DEPLOY / "unpoison.service").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    words = shlex.split(line)
    return words[words.index("serve") + 1 :], f"127.0.0.1:{words[words.index('--port') + 1]}"


@contextmanager
def process(*command: str | Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, env={**os.environ, **environment})
    try:
        yield running
    finally:
        running.terminate()
        running.wait(60)
        assert running.stderr is not None
        running.stderr.close()


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """The port of a running service."""
    port, (options, address) = free_port(), options_of_unit()
    given = [str(port) if word == address.partition(":")[2] else word for word in options]
    with process(sys.executable, "-m", "unpoison", "serve", *given) as running:
        assert running.stderr is not None
        said = b""
        while b"running on" not in said:
            said = running.stderr.readline()
            assert said, "the service did not start"
        yield port


def reply(url: str, body: object = None) -> tuple[int, object]:
    trusting = ssl._create_unverified_context()  # noqa: S323  a certificate made for this test
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Host": NAME, "Content-Type": "application/json"})  # noqa: S310
    for _ in range(1200):  # until the proxy listens
        try:
            with urllib.request.urlopen(request, timeout=60, context=trusting) as response:  # noqa: S310
                text = response.read()
                return response.status, json.loads(text) if text[:1] == b"{" else text
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError(f"nothing listens at {url}")


def check(url: str) -> None:
    status, screened = reply(f"{url}/unpoison/v1/screen", REQUEST)
    assert status == 200, screened
    assert isinstance(screened, dict)
    assert len(screened["screening"]["verdicts"]) == len(REQUEST["passages"])
    assert reply(f"{url}/unpoison/readyz")[0] == 200
    assert reply(f"{url}/unpoison/metrics")[0] == 404
    assert reply(f"{url}/v1/screen", REQUEST)[0] == 404


def smuggle(proxy: int, *, tls: bool) -> None:
    """Nothing that a proxy refuses is answered, and nobody gets the reply to another request."""
    for name, raw in SMUGGLING.items():
        assert b"unpoison_requests_total" not in spoken(proxy, raw, tls), name
        status, listed = reply(f"{'https' if tls else 'http'}://127.0.0.1:{proxy}/unpoison/v1/defenses")
        assert status == 200, name
        assert isinstance(listed, dict), name
        assert "defenses" in listed, name


def spoken(port: int, raw: bytes, tls: bool) -> bytes:
    """What comes back until the other side closes, or says nothing more."""
    received, context = b"", ssl._create_unverified_context()  # noqa: S323  a certificate made for this test
    with ExitStack() as stack, suppress(OSError):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        if tls:
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname=NAME))
        connection.sendall(raw)
        connection.settimeout(0.3)
        while chunk := connection.recv(65_536):
            received += chunk
    return received


@needs["nginx"]
@needs["openssl"]
def test_nginx_reaches_the_service_of_the_unit(service: int, tmp_path: Path) -> None:
    text, port = (DEPLOY / "nginx.conf").read_text(), free_port()
    key, certificate = tmp_path / "unpoison.key", tmp_path / "unpoison.pem"
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={NAME}", "-days", "1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=300)
    for given, own in {
        options_of_unit()[1]: f"127.0.0.1:{service}",
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/ssl/unpoison.pem": certificate,
        "/etc/ssl/unpoison.key": key,
    }.items():
        assert given in text, "nginx.conf and the unit do not fit"
        text = text.replace(given, str(own))
    folders = "".join(f"{kind}_temp_path {tmp_path};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    own_settings = f"http {{ access_log off; {folders}"
    (tmp_path / "nginx.conf").write_text(text.replace("http {", own_settings, 1))
    user = "user root; " if os.geteuid() == 0 else ""
    command = ["nginx", "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"]
    settings = f"{user}daemon off; pid {tmp_path}/nginx.pid;"
    checked = subprocess.run([*command, "-g", settings, "-t"], capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stderr
    with process(*command, "-g", settings):
        check(f"https://127.0.0.1:{port}")
        smuggle(port, tls=True)


@needs["caddy"]
def test_caddy_reaches_the_service_and_lets_nothing_past(service: int, tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "Caddyfile"
    file.write_text(CADDY.replace("PROXY", str(port)).replace("SERVICE", str(service)))
    with process("caddy", "run", "--config", file, "--adapter", "caddyfile", HOME=str(tmp_path)):
        check(f"http://127.0.0.1:{port}")
        smuggle(port, tls=False)

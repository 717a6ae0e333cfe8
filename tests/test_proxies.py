"""nginx with the file under deploy/, before the service as its systemd unit starts it: real requests."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ports import free_port

DEPLOY = Path(__file__).parent.parent / "deploy"
NAME = "unpoison.example"
REQUEST = {"query": "where do the sharks play", "passages": ["At the SAP Center.", "In Oslo."]}

needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name.upper()} ABSENT: apt-get install {name}")
    for name in ("nginx", "openssl")
}


def socket_of_unit() -> tuple[list[str], str]:
    """The options that the unit gives to `serve`, and the socket among them."""
    unit = (DEPLOY / "unpoison.service").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    words = shlex.split(line)
    return words[words.index("serve") + 1 :], words[words.index("--host") + 1].removeprefix("unix:")


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
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a running service."""
    own = tmp_path_factory.mktemp("run") / "http.sock"
    options, listed = socket_of_unit()
    given = [word.replace(listed, str(own)) for word in options]
    with process(sys.executable, "-m", "unpoison", "serve", *given, "--limit", "drain=0") as running:
        assert running.stderr is not None
        said = b""
        while b"running on" not in said:
            said = running.stderr.readline()
            assert said, "the service did not start"
        yield own


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


@needs["nginx"]
@needs["openssl"]
def test_nginx_reaches_the_service_of_the_unit(service: Path, tmp_path: Path) -> None:
    text, port = (DEPLOY / "nginx.conf").read_text(), free_port()
    key, certificate = tmp_path / "unpoison.key", tmp_path / "unpoison.pem"
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={NAME}", "-days", "1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=300)
    for given, own in {
        socket_of_unit()[1]: service,
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

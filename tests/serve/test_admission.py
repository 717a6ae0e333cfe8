"""Keys by their digests, and who is admitted by key, name and path."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.datastructures import Headers

from service_doubles import Serving, body, problem
from unpoison.errors import InputError, OptionError
from unpoison.serve.admission import Admission, Keys, digest
from unpoison.serve.replies import Refusal


def test_a_file_of_digests_as_sha256sum_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text(f"# the teams\n{digest('one')}  search-team\n\n{digest('two').upper()}  -\n{digest('three')}\n")
    keys = Keys.read(file) | Keys.of("four")
    assert [keys.holder(key) for key in ("one", "four", b"one")] == ["search-team", "default", "search-team"]
    assert keys.holder("two") == digest("two")[:8]
    assert keys.holder("three") == digest("three")[:8]
    assert keys.holder("five") is None
    assert keys.holder("") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "holds no key"), ("secret\n", "line 1"), (f"{'0' * 64} a b\n", "line 1"), (f"\n{'0' * 63}  a\n", "line 2")],
)
def test_a_mistake_names_its_line_and_no_key(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "keys.txt").write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        Keys.read(tmp_path / "keys.txt")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        Keys.read(tmp_path / "none")


def test_a_blank_key_is_none() -> None:
    with pytest.raises(OptionError, match="blank"):
        Keys.of(" ")


def test_a_key_file_has_at_most_a_mebibyte_and_loses_no_key(tmp_path: Path) -> None:
    """The keys behind it were unknown, and nobody was told."""
    file, last = tmp_path / "keys.txt", f"\n{digest('x')}"
    file.write_text("#" * (2**20 - len(last)) + last)
    assert Keys.read(file).holder("x") is not None
    file.write_text("#" * (2**20 - len(last) + 1) + last)
    with pytest.raises(InputError, match="more than 1,048,576 bytes"):
        Keys.read(file)


JSON, HOST = (b"content-type", b"application/json"), (b"host", b"a.example")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, JSON], 0),
        ([(b"host", b"A.example:8000"), (b"content-type", b"Application/JSON; charset=utf-8")], 0),
        ([HOST, HOST, JSON], 400),  # a proxy before the service may have looked at the other one
        ([HOST, (b"host", b"b.example"), JSON], 400),
        ([(b"host", b"b.example"), JSON], 421),
        ([(b"host", b"a.example.b.example"), JSON], 421),
        ([JSON], 421),
        ([HOST, JSON, (b"content-encoding", b"gzip")], 415),
        ([HOST, JSON, (b"content-length", b"100")], 0),
        ([HOST, JSON, (b"content-length", b"101")], 413),
        ([HOST, JSON, (b"content-length", b"0" * 16 + b"99")], 0),
        ([HOST, JSON, (b"content-length", b"0" * 17 + b"99")], 413),
        ([HOST, JSON, (b"expect", b"100-Continue")], 0),
        ([HOST, JSON, (b"expect", b"a reply")], 417),
    ],
)
def test_a_request_is_admitted_by_its_headers(headers: list[tuple[bytes, bytes]], status: int) -> None:
    admission = Admission(body=100, hosts=("a.example",), keys=None)
    scope, given = {"type": "http", "method": "POST", "path": "/v1/screen"}, Headers(raw=headers)
    if not status:
        admission.admit(scope, given, SimpleNamespace(key=""))
        return
    with pytest.raises(Refusal) as refused:
        admission.admit(scope, given, SimpleNamespace(key=""))
    assert refused.value.status_code == status


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/openapi.json", "/assets/page.css", "/examples/0"])
def test_what_is_open_needs_no_key(serving: Serving, path: str) -> None:
    assert serving(keys="secret").get(path).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "secret"},
        {"Authorization": "Basic secret"},
        {"Authorization": "Bearer secret2"},
        {"Authorization": "Bearer"},
        {"X-API-Key": "secret"},
        {"Authorization": "Bearer s\u00e9cret".encode()},
    ],
)
def test_everything_else_does(serving: Serving, headers: dict[str, Any]) -> None:
    client = serving(keys="secret")
    for method, path in [
        ("POST", "/v1/screen"),
        ("POST", "/rerank"),
        ("POST", "/play"),
        ("OPTIONS", "/v1/screen"),
        ("GET", "/metrics"),
    ]:
        response = client.request(method, path, headers=headers)
        assert "Authorization: Bearer KEY" in problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"


def test_paths_that_look_open_are_not(serving: Serving) -> None:
    client = serving(keys="secret")
    for path in ("/healthz/", "/assetsx", "/sample", "/metrics/", "/metrics/assets/", "/v1/defenses"):
        assert client.get(path, follow_redirects=False).status_code == 401, path
    assert client.get("/assets/%2e%2e/metrics").status_code == 404


def test_foreign_names_are_refused(serving: Serving) -> None:
    client = serving(hosts=("localhost", "127.0.0.1", "[::1]"))
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:8000", "[::1]"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "localhost:80.evil.example", ""):
        assert "--allow-host" in problem(client.get("/healthz", headers={"Host": host}), 421)


@pytest.mark.parametrize("prefix", ["", "/unpoison"])
def test_under_a_root_path_everything_is_where_the_proxy_has_it_stripped_or_not(serving: Serving, prefix: str) -> None:
    client = serving(root_path="/unpoison/", keys="secret")
    assert client.get(f"{prefix}/healthz").status_code == 200
    assert client.get(f"{prefix}/").status_code == 200
    assert client.post(f"{prefix}/v1/screen", json=body()).status_code == 401
    assert client.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": "/unpoison"}]


@pytest.mark.parametrize(
    "path",
    ["/unpoison/unpoison/healthz", "/unpoisonhealthz", "/unpoison/v1/screen", "//v1/screen", "/healthz/../metrics"],
)
def test_no_path_gets_past_the_key_by_the_root_path(serving: Serving, path: str) -> None:
    client = serving(root_path="/unpoison", keys="secret")
    assert client.get(path).status_code in (401, 404)
    assert client.post(path, json=body()).status_code == 401

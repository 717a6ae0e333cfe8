"""Keys by their digests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.datastructures import Headers

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

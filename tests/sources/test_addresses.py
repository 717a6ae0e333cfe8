"""The place of a source: an address as browsers read it, a path, or a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.sources.addresses import MAX_SOURCE_CHARS, host_like, place_of, registrable, visible


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("https://Docs.Example:8443/HR/./a/../b?x#y", ("web", "docs.example", ("HR", "b"), "")),
        ("http:\\\\docs.example\\hr", ("web", "docs.example", ("hr",), "")),
        ("https://ann:secret@docs.example/hr", ("web", "docs.example", ("hr",), "")),
        ("https://docs.example@evil.example/", ("web", "evil.example", (), "")),
        ("https://docs.example/..%2f..%2fhr", ("web", "docs.example", (), "")),
        ("http://[::ffff:10.0.0.1]/a", ("web", "10.0.0.1", ("a",), "")),
        ("http://[::1]/a", ("web", "[::1]", ("a",), "")),
        ("localhost:8000/page", ("web", "localhost", ("page",), "")),
        ("docs.example", ("web", "docs.example", (), "")),
        ("hr/rules.md", ("file", "", ("hr",), "rules.md")),
        ("/srv/hr/", ("file", "/", ("srv", "hr"), "")),
        ("../a/./b.txt", ("file", "", ("..", "a"), "b.txt")),
        ("/../a.txt", ("file", "/", (), "a.txt")),
        ("C:\\hr\\a.doc", ("file", "c:/", ("hr",), "a.doc")),
        ("\\\\server\\share\\a.doc", ("file", "//", ("server", "share"), "a.doc")),
        ("file:///C:/hr/a.doc", ("file", "c:/", ("hr",), "a.doc")),
        ("file://localhost/hr/a.doc", ("file", "/", ("hr",), "a.doc")),
        ("s3://Bucket/hr/a.doc", ("file", "s3://bucket/", ("hr",), "a.doc")),
        ("notes.py", ("file", "", (), "notes.py")),
        ("  the  handbook ", ("name", "", ("the handbook",), "")),
    ],
)
def test_where_a_source_is(source: str, place: tuple[object, ...]) -> None:
    assert place_of(source) == place


@pytest.mark.parametrize(
    "source",
    [
        "", " \t\n", "x" * (MAX_SOURCE_CHARS + 1), "javascript:alert(1)", "data:text/html,x", "mailto:ann@docs.example",
        "http://0x7f.1/", "http://127.1/", "http://a b/", "http://exa%23mple.com/", "file:///a%252fb", "http://[::1",
        "s3://key@bucket/x",
    ],
)  # fmt: skip
def test_what_has_no_place(source: str) -> None:
    assert place_of(source) is None


@given(st.text(max_size=60))
def test_no_text_raises_and_the_bound_is_its_own(source: str) -> None:
    place_of(source)
    place_of(f"https://{source}")
    assert place_of("x" * MAX_SOURCE_CHARS) is not None


@pytest.mark.parametrize(
    ("text", "alone", "expected"),
    [
        ("docs.example", True, True), ("notes.py", True, False), ("notes.pl", False, True), ("notes.py", False, False),
        ("www.nowhere", False, True), ("10.0.0.1", False, True), ("10.1", False, False), ("handbook", False, False),
        ("[::1]", False, True), ("[x]", False, False), ("v1.2", False, False),
    ],
)  # fmt: skip
def test_what_looks_like_a_host(text: str, alone: bool, expected: bool) -> None:
    assert host_like(text, alone=alone) is expected


def test_the_domain_that_somebody_registered() -> None:
    hosts = ("a.b.co.uk", "ann.github.io", "x.ann.github.io", "10.0.0.1", "[::1]", "localhost")
    assert [*map(registrable, hosts)] == ["b.co.uk", "ann.github.io", "ann.github.io", "10.0.0.1", "[::1]", "localhost"]


def test_no_two_texts_look_alike() -> None:
    assert visible("e\u0301") == "é"
    assert visible("a\u200bb") == "a%E2%80%8Bb"
    assert visible("plain") == "plain"


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("HTTPS:\\\\docs.example/a", ("web", "docs.example", ("a",), "")),
        ("https:docs.example/a", ("web", "docs.example", ("a",), "")),
        ("//docs.example/a", ("web", "docs.example", ("a",), "")),
        ("docs.example:80/a?b#c", ("web", "docs.example", ("a",), "")),
        ("docs.example.", ("web", "docs.example", (), "")),
        ("docs.example?x", ("web", "docs.example", (), "")),
        ("https://docs.example/a/../../b", ("web", "docs.example", (), "")),
        ("https://docs.example/a%20b/%2e", ("web", "docs.example", ("a b",), "")),
        ("https://docs.example/a%20b", ("web", "docs.example", ("a b",), "")),
        ("https://b\u00fccher.example/", ("web", "xn--bcher-kva.example", (), "")),
        ("ht\ntps://docs\t.example/", ("web", "docs.example", (), "")),
        ("http://[2001:db8::1%25eth0]/", ("web", "[2001:db8::1]", (), "")),
        ("http://192.0.2.7:8080/", ("web", "192.0.2.7", (), "")),
        ("c:", ("file", "c:/", (), "")),
        ("//server/share", ("file", "//", ("server",), "share")),
        ("//server", ("file", "//", ("server",), "")),
        ("\\\\server", ("file", "//", ("server",), "")),
        ("file:///srv/a.txt?x#y", ("file", "/", ("srv",), "a.txt")),
        ("file:////server/share/a", ("file", "/", ("server", "share"), "a")),
        ("file://server/share/a", ("file", "//", ("server", "share"), "a")),
        ("gs://b/../a.txt", ("file", "gs://b/", (), "a.txt")),
        ("a/../..", ("file", "", ("..",), "")),
        ("..", ("file", "", ("..",), "")),
        (".", ("file", "", (), "")),
        ("report.2024.pdf", ("file", "", (), "report.2024.pdf")),
        ("docs.py/a.md", ("file", "", ("docs.py",), "a.md")),
        ("faq.internal", ("web", "faq.internal", (), "")),
        ("hr\\rules.md", ("file", "", ("hr",), "rules.md")),
    ],
)
def test_odd_spellings_of_a_place(source: str, place: tuple[object, ...]) -> None:
    assert place_of(source) == place


@pytest.mark.parametrize(
    "source",
    ["https://docs..example/", "https://-a.example/", f"https://{'a' * 64}.example/", "https://[::1]x/", "s3:/bucket/x",
     f"https://{'.'.join(['abcd'] * 51)}/", "https:///", "https://a_b-.example/", "tel:abc", "http://1.2.3/", "C:a"],
)  # fmt: skip
def test_what_browsers_refuse_or_read_otherwise_has_no_place(source: str) -> None:
    assert place_of(source) is None


def test_labels_and_hosts_have_their_longest() -> None:
    assert place_of(f"https://{'a' * 63}.example/") is not None
    longest = ".".join(["a" * 49] * 5 + ["abc"])
    assert len(longest) == 253 and place_of(f"https://{longest}/") is not None
    assert place_of(f"https://a{longest}/") is None

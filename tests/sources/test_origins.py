"""The party behind a source, whatever is written there."""

from __future__ import annotations

import copy
import json
import pickle  # noqa: TID251
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Passage
from unpoison.errors import InputError, OptionError
from unpoison.sources.origins import MAX_ORIGIN_CHARS, origin_of, source_of

CASES = {
    # the registrable domain, with the list's private section
    "https://www.bbc.co.uk/news": "bbc.co.uk",
    "https://a.github.io/x": "a.github.io",
    "https://github.io/": "github.io",
    "http://wiki/page": "wiki",
    # the host as browsers read it
    "HTTPS://User:pw@WWW.Docs.EXAMPLE.COM.:443/a": "example.com",
    "https://docs.example\\@evil.com/": "docs.example",
    "https://docs.example@evil.com/": "evil.com",
    "https:\\\\evil.com": "evil.com",
    "https:evil.com": "evil.com",
    "ht\ntps://ev\til.com": "evil.com",
    "https://ex%61mple.com/": "example.com",
    "https://münchen.de/": "xn--mnchen-3ya.de",
    "https://a_b.example.com": "example.com",
    "//cnn.com/x": "cnn.com",
    "https://evil.com/https://docs.example/": "evil.com",
    "https://docs.example.evil.com/": "evil.com",
    # addresses of numbers
    "http://0x7f.1/": "",
    "http://0177.0.0.1/": "",
    "http://[0:0:0:0:0:0:0:1]:80/x": "[::1]",
    "http://[::ffff:1.2.3.4]/": "1.2.3.4",
    "http://256.1.1.1/": "",
    "http://[::1/": "",
    "10.0.0.1/x": "10.0.0.1",
    # users
    "https://github.com/Alice/repo": "github.com/alice",
    "https://github.com/orgs/acme/people": "github.com/acme",
    "https://gist.github.com/alice/1": "github.com/alice",
    "https://raw.githubusercontent.com/alice/r/x": "github.com/alice",
    "https://github.com/": "github.com",
    "https://medium.com/@bob/x": "medium.com/@bob",
    "https://bob.medium.com/x": "medium.com/@bob",
    "https://old.reddit.com/u/x": "reddit.com/user/x",
    "https://www.reddit.com/r/ask/1": "reddit.com/r/ask",
    "https://www.youtube.com/@chan": "youtube.com/@chan",
    "https://www.youtube.com/channel/UCa": "youtube.com/channel/UCa",
    "https://www.youtube.com/watch?v=1": "youtube.com",
    "https://www.instagram.com/p/Cx1/": "instagram.com",
    "https://www-cnn-com.cdn.ampproject.org/c/s/x": "www-cnn-com.cdn.ampproject.org",
    "https://r.jina.ai/https://www.cnn.com/x": "r.jina.ai/cnn.com",
    "https://docs.google.com/document/d/AbC/edit": "docs.google.com/document/d/AbC",
    "https://s3.amazonaws.com/bucket/x": "bucket.s3.amazonaws.com",
    "https://storage.googleapis.com/bucket/x": "storage.googleapis.com/bucket",
    "https://cdn.jsdelivr.net/gh/alice/r/x.md": "github.com/alice",
    "https://tumblr.com/bob/1": "bob.tumblr.com",
    # who shows others' pages is not them
    "https://web.archive.org/web/2020/https://www.cnn.com/x": "web.archive.org/cnn.com",
    "https://www.google.com/amp/s/www.cnn.com/a": "google.com/cnn.com",
    # files
    "docs/hr/leave.md": "docs/hr/",
    "docs\\hr\\leave.md": "docs/hr/",
    "docs/./hr//../hr/": "docs/hr/",
    "/data/wiki/p.md": "/data/wiki/",
    "/../data/p.md": "/data/",
    "C:\\wiki\\p.md": "c:/wiki/",
    "file:///C:/wiki/p.md": "c:/wiki/",
    "file:///data/a/%2e%2e/p.md": "/data/",
    "file://localhost/data/p.md": "/data/",
    "\\\\srv\\share\\f.md": "//srv/share/",
    "s3://bucket/k/f.txt": "s3://bucket/k/",
    "../x": "../",
    "leave.md": "./",
    "run.sh": "./",
    # names, and addresses without a scheme
    "mov": "mov",
    "RobustRAG": "RobustRAG",
    " HR \u00a0wiki ": "HR wiki",
    "www.acme.test": "acme.test",
    "cnn.com/x": "cnn.com",
    "docs.example/hr/x": "docs.example",
    "notion.so/acme/x": "notion.so",
    "notion.so": "./",
    "old.zip/hr/leave.md": "old.zip/hr/",
    "localhost:8000/x": "localhost",
    # nobody can say
    "": "",
    " \n": "",
    "javascript:alert(1)": "",
    "JaVaScRiPt://docs.example/%0aalert(1)": "",
    "data:text/html,https://docs.example/": "",
    "blob:https://docs.example/1": "",
    "mailto:a@docs.example": "",
    "author:alice": "",
    "https://": "",
    "https://docs.example:port/": "",
    "docs/hr/%2e%2e/it/a": "",
    "docs/hr/%252e%252e/it/a": "docs/hr/%252e%252e/it/",
    "x" * 2049: "",
    "https://" + "a." * 1000 + "com": "",
}


@pytest.mark.parametrize("source", CASES, ids=lambda source: repr(source[:40]))
def test_an_origin_is_what_stands_in_the_table(source: str) -> None:
    assert origin_of(source) == CASES[source]


@pytest.mark.parametrize(
    ("rule", "source", "origin"),
    [
        ("host", "https://hr.acme.example/a", "hr.acme.example"),
        ("host", "docs/hr/a.md", "docs/hr/"),
        ("path:1", "https://wiki.example/hr/leave", "wiki.example/hr"),
        ("path:2", "https://wiki.example/hr", "wiki.example/hr"),
        ("path:1", "docs/hr/a.md", "docs/"),
        ("path:2", "/docs/hr/it/a.md", "/docs/hr/"),
        ("path:1", "wiki", "wiki"),
    ],
)
def test_rules(rule: str, source: str, origin: str) -> None:
    assert origin_of(source, rule) == origin


def test_a_field_is_the_origin_where_the_rule_says_so() -> None:
    assert origin_of("wiki", "field:author", {"author": " Alice  Ng"}) == "author:Alice Ng"
    assert origin_of(None, "field:tenant", {"tenant": 7}) == "tenant:7"
    assert origin_of("wiki", "field:author", {"author": "a\u200blice"}) == "author:a%E2%80%8Blice"
    for metadata in (None, {}, {"author": ""}, {"author": True}, {"author": ["alice"]}, {"author": "x" * 3000}):
        assert origin_of("wiki", "field:author", metadata) == ""


@pytest.mark.parametrize(
    "rule", ["", "page", "path", "path:0", "path:-1", "path:17", "path:x", "field:", "host:1", None]
)
def test_another_rule_is_an_error(rule: str) -> None:
    with pytest.raises(OptionError, match="origin must be domain, host, path:N"):
        origin_of("wiki", rule)


def test_an_address_among_the_metadata_counts_where_the_source_is_a_mere_name() -> None:
    web = {"url": "https://www.cnn.com/x"}
    assert source_of("RobustRAG", web) == source_of(None, web) == web["url"]
    for source in ("docs/hr/leave.md", "leave.md", "https://evil.com/", "javascript:1"):
        assert source_of(source, web) == source  # front matter may have written the url
    assert source_of("wiki", {"url": "cnn.com"}) == "wiki"
    assert source_of("wiki", {"url": 7}) == "wiki"


PIECES = st.sampled_from(
    ["http:", "https:", "file:", "//", "/", "\\", "..", ".", "@", ":", "%2e", "%2f", "%", "?", "#", "[", "]", "::1",
     "github.com", "docs.example", "evil", "xn--", "ß", "\u200b", "\u202e", "\ud800", "\x00", "\t", "www.", "C:",
     "*", "1", "0x"]
)  # fmt: skip
SOURCES = st.one_of(
    st.text(max_size=300), st.lists(PIECES, max_size=14).map("".join), st.text(min_size=2000, max_size=2100)
)


@given(SOURCES, st.sampled_from(["domain", "host", "path:2"]))
def test_every_text_has_an_origin_of_visible_characters(source: str, rule: str) -> None:
    origin = origin_of(source, rule)
    assert len(origin) <= MAX_ORIGIN_CHARS
    assert not any(unicodedata.category(character)[0] == "C" for character in origin)
    assert origin == origin_of(source, rule)


def test_a_mapping_keeps_its_texts_and_numbers() -> None:
    row = {
        "text": "t", "id": 3, "source": "RobustRAG", "url": "https://www.cnn.com/x", "label": "clean", "rank": 1,
        "author": "alice", "tags": ["a"], "share": 0.5, "bad": float("nan"), "huge": 10**400, "none": None,
        "metadata": {"author": "mallory", "space": "HR", "nested": {}},
    }  # fmt: skip
    passage = Passage.of(row)
    assert passage.source == "RobustRAG"
    assert passage.origin == "cnn.com"
    assert dict(passage.metadata) == {
        "url": "https://www.cnn.com/x", "rank": 1, "author": "alice", "share": 0.5, "space": "HR",
    }  # fmt: skip
    json.dumps(passage.metadata, allow_nan=False)


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"source": "a", "url": "b"}, "a"),
        ({"url": "b", "uri": "c"}, "b"),
        ({"uri": "c"}, "c"),
        ({"link": "d"}, "d"),
        ({"file_path": "e/f.md"}, "e/f.md"),
        ({"metadata": {"source": "g/h.md"}}, "g/h.md"),  # LangChain
        ({"metadata": {"file_path": "i/j.md", "file_name": "j.md"}}, "i/j.md"),  # LlamaIndex
        ({"meta": {"file_name": "j.md"}}, "j.md"),
        ({"meta": {"url": "k"}}, "k"),  # Haystack
        ({"meta": {"url": 7}}, None),
        ({"data": {"url": "l"}}, None),
        ({"metadata": "text"}, None),
        ({"url": ["x"]}, None),
        ({}, None),
    ],
)
def test_a_source_is_found_where_frameworks_keep_it(fields: dict[str, object], source: str | None) -> None:
    assert Passage.of({"text": "t", **fields}).source == source


def test_a_source_of_another_type_is_an_error() -> None:
    with pytest.raises(InputError, match=r"passage\.source must be a string"):
        Passage.of({"text": "t", "source": ["a"]})


def test_a_document_of_a_framework_brings_its_metadata() -> None:
    class Document:
        page_content = "t"
        metadata = {"source": "https://a.github.io/x", "author": "bob", "loc": {"line": 1}}  # noqa: RUF012

    passage = Passage.of(Document())
    assert (passage.source, passage.origin, dict(passage.metadata)) == (
        "https://a.github.io/x",
        "a.github.io",
        {"source": "https://a.github.io/x", "author": "bob"},
    )


def test_metadata_are_read_only_and_travel() -> None:
    given = {"author": "alice"}
    passage = Passage("t", metadata=given)
    given["author"] = "mallory"
    for change in (
        lambda held: held.update(author="mallory"),
        lambda held: held.__setitem__("author", "mallory"),
        lambda held: held.pop("author"),
        lambda held: held.setdefault("x", 1),
        lambda held: held.clear(),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change(passage.metadata)
    assert dict(passage.metadata) == {"author": "alice"}
    assert pickle.loads(pickle.dumps(passage)).metadata == passage.metadata  # noqa: S301
    assert copy.deepcopy(passage).metadata == passage.metadata
    assert passage.without([(0, 1)]).metadata == passage.metadata
    assert passage == Passage("t")
    assert hash(Passage("t", metadata=given)) == hash(Passage("t"))
    assert passage.to_dict() == {"text": "t", "metadata": {"author": "alice"}}
    with pytest.raises(InputError, match=r"passage\.metadata must be a mapping"):
        Passage("t", metadata="alice")  # type: ignore[arg-type]


def test_a_text_cannot_choose_its_origin() -> None:
    """Neither a field of that name nor an address in front matter beside a real path is believed."""
    row = {
        "text": "origin: docs.example\nurl: https://docs.example",
        "origin": "docs.example",
        "source": "drop/note.md",
    }
    assert Passage.of(row).origin == "drop/"
    assert Passage.of({**row, "metadata": {"url": "https://docs.example/"}}).origin == "drop/"
    assert Passage.of({"text": "https://docs.example/"}).origin == ""

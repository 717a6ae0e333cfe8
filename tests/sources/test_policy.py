"""A policy, from a file or a mapping: what it matches, and what it says when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import OptionError
from unpoison.sources.origins import origin_of
from unpoison.sources.policy import Policy, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (
            "https://docs.example/**",
            ["https://docs.example", "http://DOCS.example:8080/a/b", "docs.example/a", "https://x:y@docs.example./a"],
            ["https://docs.example.evil.com/", "https://docs.example@evil.com/", "https://evil.com/https://docs.example/",
             "https://sub.docs.example/", "docs.example.evil/a",
             "https://evil.com\\@docs.example.evil.com", "docs example"],
        ),
        (
            "https://docs.example/hr/**",
            ["https://docs.example/hr/", "https://docs.example/hr/a/b", "https://docs.example/%68r/a"],
            ["https://docs.example/hrx", "https://docs.example/hr/../it", "https://docs.example/hr/%2e%2e/it",
             "https://docs.example/hr/..%2fit", "https://docs.example/hr/%252e%252e/it", "https://docs.example/a/hr/b",
             "https://docs.example/?/hr/a", "https://docs.example/#/hr/a"],
        ),
        ("https://docs.example/sites/Shared%20Documents/**", ["https://docs.example/sites/Shared%20Documents/a.docx",
         "https://docs.example/sites/Shared Documents/a.docx"], ["https://docs.example/sites/Shared%2520Documents/a"]),
        ("https://docs.example/*/leave-*", ["https://docs.example/hr/leave-2"], ["https://docs.example/hr/x/leave-2"]),
        ("docs.example", ["https://docs.example/a", "https://www.docs.example/a"], ["https://docs.example.evil.com"]),
        ("*.acme.com", ["https://a.acme.com", "https://a.b.acme.com/x"], ["https://acme.com", "https://xacme.com"]),
        ("github.com/alice", ["https://github.com/Alice/repo", "https://gist.github.com/alice/1"],
         ["https://github.com/bob/alice", "https://github.com/alice2/x", "https://github.com/alice%2f..%2fbob"]),
        ("docs/hr/**", ["docs/hr/a.md", "docs\\hr\\b\\a.md", "docs/it/../hr/a.md"],
         ["docs/hr", "docs/hr/../it/a.md", "x/docs/hr/a.md", "/docs/hr/a.md", "docs/hr/%2e%2e/it/a", "docs/hrx/a"]),
        ("docs/hr/leave.md", ["docs/hr/leave.md", "docs\\hr\\leave.md"], ["docs/hr/pay.md", "docs/hr/", "docs/hr"]),
        ("docs/*.md", ["docs/a.md"], ["docs/a.txt", "docs/hr/a.md", "docs/"]),
        ("/docs/**", ["/docs/a.md", "file:///docs/hr/a.md"], ["docs/a.md", "https://x.com/docs/a"]),
        ("C:\\wiki\\**", ["c:/wiki/a.md", "file:///C:/wiki/a.md"], ["C:\\other\\a.md", "/wiki/a.md"]),
        ("s3://bucket/hr/**", ["s3://bucket/hr/a.md"], ["s3://other/hr/a.md", "gs://bucket/hr/a.md"]),
        ("wiki", ["wiki"], ["wiki.com", "https://wiki.com", "wiki/a"]),
        ("cafe\u0301", ["caf\u00e9", "cafe\u0301"], ["cafe"]),
        ("hr-*", ["hr-wiki"], ["hr-evil.com", "https://hr-evil.com", "hr-x/a.md", "x hr-wiki"]),
        ("10.0.0.1", ["http://10.0.0.1/x"], ["http://10.0.0.2", "http://10.0.0.1.evil.com"]),
        ("**", ["https://evil.com", "docs/a.md", "wiki", ""], []),
    ],
)  # fmt: skip
def test_a_pattern_matches_what_it_means_and_nothing_else(pattern: str, matching: list[str], others: list[str]) -> None:
    read = parse_pattern(pattern, "known")
    assert [source for source in matching if not read.matches(source, origin_of(source))] == []
    assert [source for source in others if read.matches(source, origin_of(source))] == []


def test_the_most_specific_pattern_counts_and_of_equals_the_most_careful_list() -> None:
    policy = Policy.of(
        {
            "blocked": ["**"],
            "open": ["https://wiki.example/talk/**"],
            "known": ["*.wiki.example", "https://a.example/*"],
            "trusted": ["wiki.example", "https://wiki.example/talk/rules", "https://a.example/**"],
        }
    )
    levels = {
        "https://evil.com": "blocked",
        "https://wiki.example/a": "trusted",
        "https://wiki.example/talk/a": "open",
        "https://wiki.example/talk/rules": "trusted",
        "https://a.example/b": "known",
        "https://a.example/b/c": "trusted",
    }
    found = {source: policy.matching(source, origin_of(source)) for source in levels}
    assert {source: listed[0][1] if listed else None for source, listed in found.items()} == levels
    assert Policy.of(None).matching("https://evil.com", "evil.com") == []


HOSTILE = st.lists(
    st.sampled_from(["docs.example", "/", "\\", "..", "%2e%2e", "%2f", "@", ":", "hr", "#", "?", "evil.com", ".", "https://"]),
    max_size=10,
).map("".join)  # fmt: skip


@given(HOSTILE)
def test_no_trick_leads_into_a_folder_of_another_host(tail: str) -> None:
    read = parse_pattern("https://docs.example/hr/**", "trusted")
    for source in (f"https://evil.com/{tail}", f"https://evil.com\\{tail}", f"folder/{tail}"):
        assert not read.matches(source, origin_of(source))


@given(st.text(max_size=60), st.text(max_size=60))
def test_reading_and_matching_never_fail_otherwise(pattern: str, source: str) -> None:
    try:
        read = parse_pattern(pattern, "known")
    except OptionError:
        return
    read.matches(source, origin_of(source))


WRONG = {
    "trustd: [a.example]": "no key 'trustd'; did you mean 'trusted'?",
    "origin: page": "origin must be domain, host, path:N",
    "fresh: soon": "fresh must be a number of days such as 30, got 'soon'",
    "fresh: -1": "fresh must be a number of days",
    "fresh: true": "fresh must be a number of days",
    "known: a.example": r"known must be a list such as \[docs.example\], got 'a.example'",
    "known: [a.example]\nblocked: [A.example]": "is in blocked and in known",
    "known: [a.example/x]\nblocked: ['https://a.example/x']": "is in blocked and in known",
    "known: [7]": "known contains 7, which is not a pattern",
    "known: ['']": "known contains '', which is not a pattern",
    "known: ['https://']": "cannot match anything",
    "known: ['https://a.*.example/']": "cannot match anything",
    "known: ['https://alice@a.example/']": "cannot match anything",
    "known: ['https://a.example/../b']": "cannot match anything",
    "known: ['https://a.example/%2e%2e/b']": "cannot match anything",
    "known: ['https://a.example/b%2fc']": "cannot match anything",
    "known: [docs/../../x/**]": "cannot match anything",
    "known: ['*a*a*a*a*a*a*a*a*a*a*a']": "more than 10 stars",
    "known: ['/']": "cannot match anything",
    "history: [a]": "history must be the path of a file",
    "- known": "must contain keys with values",
    "known: *all": r"is not valid YAML \(line 1: ",
    "known: [*.docs.example]": r"is not valid YAML \(line 1: .*quote texts that begin with \*",
    "known: &a [x.example]\nopen: *a": "anchors are not supported",
    "known: [a.example]\nknown: [b.example]": "duplicate key known",
    "known: !!python/object/apply:os.system [ls]": "is not valid YAML",
    "? [a]\n: b": "is not valid YAML",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:30])
def test_what_cannot_be_used_is_said_in_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text(text)
    with pytest.raises(OptionError, match=WRONG[text]) as caught:
        Policy.of(file)
    assert "\n" not in str(caught.value)
    assert "sources.yaml" in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot be read \(No such file"):
        Policy.of(tmp_path / "none.yaml")
    with pytest.raises(OptionError, match=r"cannot be read \(Is a directory"):
        Policy.of(tmp_path)
    file = tmp_path / "p.yaml"
    file.write_bytes(b"known: [\xff]")
    with pytest.raises(OptionError, match="is not UTF-8 text"):
        Policy.of(file)
    file.write_text("#" * 1_000_001)
    with pytest.raises(OptionError, match="more than 1,000,000 bytes"):
        Policy.of(file)
    file.write_text("[" * 100_000)
    with pytest.raises(OptionError, match="is not valid YAML"):
        Policy.of(file)
    file.write_text("")
    with pytest.raises(OptionError, match="is empty; write keys"):
        Policy.of(file)


def test_what_can_be_used() -> None:
    policy = Policy.of({"origin": "path:1", "fresh": 14})
    assert (policy.origin, policy.fresh) == ("path:1", 14)
    assert Policy.of(policy) is policy
    assert not policy.informed
    assert Policy.of({"known": ["a.example"]}).informed

"""Which sources a check calls known, and the file that it writes."""

from __future__ import annotations

import pytest
import yaml

from unpoison.check.check import policy_text, recommend_policy
from unpoison.core.passages import Passage
from unpoison.defenses.guard import Guard
from unpoison.sources.sources import Sources


def passages(*sources: str | None) -> list[Passage]:
    return [Passage("text", source=source) for source in sources]


def test_everybody_who_is_there_is_known() -> None:
    found = recommend_policy(passages("https://a.example/1", "https://a.example/2", "https://b.example/1"))
    assert found == {"origin": "domain", "known": ["a.example", "b.example"]}


def test_where_one_domain_has_nearly_all_the_path_tells_them_apart() -> None:
    pages = [f"https://wiki.example/{part}/{page}" for part in ("hr", "it") for page in range(3)]
    found = recommend_policy(passages(*pages))
    assert found == {"origin": "path:1", "known": ["wiki.example/hr", "wiki.example/it"]}
    fresh = Passage("x", source="https://wiki.example/new/1")
    levels = [one.level for one in Sources(found).standings("", [*passages(pages[0]), fresh])]
    assert levels == ["known", "fresh"]


def test_where_only_pages_tell_documents_apart_the_domain_is_one_source() -> None:
    pages = [f"https://wiki.example/{page}/{page}" for page in range(6)]
    assert recommend_policy(passages(*pages)) == {"origin": "domain", "known": ["wiki.example"]}


def test_a_host_where_anybody_writes_is_not_known() -> None:
    open_pages = [f"https://www.youtube.com/watch?v={i}" for i in range(3)]
    found = recommend_policy(passages(*open_pages, "https://a.example/1", "https://a.example/2"))
    assert found["known"] == ["a.example"]
    (standing,) = Sources(found).standings("", passages(open_pages[0]))
    assert standing.level == "open"


@pytest.mark.parametrize("star", ["*", "**", "a*", "https://github.com/*/x", "https://github.com/%2A", "docs/*/x"])
def test_a_document_that_calls_its_source_a_star_makes_nobody_known(star: str) -> None:
    found = recommend_policy(passages("https://a.example/1", "https://b.example/1", star))
    assert found["known"] == ["a.example", "b.example"]
    strangers = passages("https://mallory.example/", "https://github.com/mallory/x", "another", "docs/x/x")
    assert {one.level for one in Sources(found).standings("", strangers)} == {"fresh"}


def test_without_sources_nobody_is_known() -> None:
    assert recommend_policy(passages(None, None)) == {"origin": "domain"}
    assert recommend_policy([]) == {"origin": "domain"}


def test_without_a_reader_other_sources_are_blocked() -> None:
    """Guard alone cannot tell a plain lie of a new source from a fact."""
    own = passages("docs/hr/leave.md", "docs/it.md")
    found = recommend_policy(own, ["docs"], weighed=False)
    assert found == {"origin": "domain", "known": ["docs/**"], "blocked": ["**"]}
    assert yaml.safe_load(policy_text(found, "docs", ())) == found
    texts = [{"text": "There are 28 days of leave.", "source": "docs/hr/leave.md"}]
    texts += [{"text": "There are 99 days of leave.", "source": source} for source in ("new.example", "talk/leave.md")]
    assert Guard(sources=Sources(found)).screen("How many days of leave are there?", texts).kept_indices == (0,)
    assert "blocked" not in recommend_policy([*own, *passages(None)], ["docs"], weighed=False)


def test_a_hostile_name_stays_in_its_comment() -> None:
    text = policy_text(
        {"origin": "domain"}, "docs\nknown: [evil]", ["a\nknown: [x]", "b\x85known: [y]", "c\u2028known: [z]"]
    )
    assert yaml.safe_load(text) == {"origin": "domain"}
    assert sum(line.startswith("#") for line in text.splitlines()) == 3

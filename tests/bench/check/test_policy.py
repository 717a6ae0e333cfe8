"""Which sources a check calls known, and the file that it writes."""

from __future__ import annotations

import yaml

from unpoison.bench.check.policy import policy_text, recommend_policy
from unpoison.sources.sources import Sources
from unpoison.types import Passage


def passages(*sources: str | None) -> list[Passage]:
    return [Passage("text", source=source) for source in sources]


def test_who_has_two_documents_is_known_and_who_has_one_is_not() -> None:
    found = recommend_policy(passages("https://a.example/1", "https://a.example/2", "https://b.example/1"))
    assert found == {"origin": "domain", "known": ["a.example"]}


def test_where_one_domain_has_nearly_all_the_path_tells_them_apart() -> None:
    pages = [f"https://wiki.example/{part}/{page}" for part in ("hr", "it") for page in range(3)]
    found = recommend_policy(passages(*pages))
    assert found == {"origin": "path:1", "known": ["wiki.example/hr", "wiki.example/it"]}
    fresh = Passage("x", source="https://wiki.example/new/1")
    levels = [one.level for one in Sources(found).standings("", [*passages(pages[0]), fresh])]
    assert levels == ["known", "fresh"]


def test_a_host_where_anybody_writes_is_not_known() -> None:
    open_pages = [f"https://www.reddit.com/r/answers/comments/{i}" for i in range(3)]
    found = recommend_policy(passages(*open_pages, "https://a.example/1", "https://a.example/2"))
    assert found["known"] == ["a.example"]


def test_without_sources_nobody_is_known() -> None:
    assert recommend_policy(passages(None, None)) == {"origin": "domain"}
    assert recommend_policy([]) == {"origin": "domain"}


def test_a_hostile_name_stays_in_its_comment() -> None:
    text = policy_text(
        {"origin": "domain"}, "docs\nknown: [evil]", ["a\nknown: [x]", "b\x85known: [y]", "c\u2028known: [z]"]
    )
    assert yaml.safe_load(text) == {"origin": "domain"}
    assert sum(line.startswith("#") for line in text.splitlines()) == 3

"""The picture of who says what."""

from __future__ import annotations

from dataclasses import replace

from unpoison import Guard, Passage, Sources
from unpoison.core.verdicts import Claim
from unpoison.report.pictures import MAX_CLAIMS, MAX_SOURCES, claim_picture, sources_of

PASSAGES = [
    Passage("The Vasa Museum is in Gothenburg.", source="https://planted.example/1"),
    Passage("The museum is in Stockholm.", source="https://ships.example/a"),
    Passage("A page about the weather."),
    Passage("Stockholm has the museum.", source="https://ships.example/b"),
]
SCREENING = Guard().screen("which city", PASSAGES)


def rows(passages=PASSAGES, policy=None):
    return sources_of(Sources(policy or {"known": ["ships.example"]}).standings("which city", passages))


def test_a_source_stands_once_in_the_order_of_speaking() -> None:
    assert [(row.label, row.level, row.passages) for row in rows()] == [
        ("planted.example", "fresh", (0,)),
        ("ships.example", "known", (1, 3)),
        ("passage 2", "unknown", (2,)),
    ]


def test_links_say_who_says_what_and_whether_it_is_kept() -> None:
    claims = (
        Claim("Stockholm", 0.8, ("ships.example",), (1, 3)),
        Claim("Gothenburg", 0.0, ("planted.example",), (0,)),
    )
    verdicts = tuple(
        replace(v, kept=v.index != 0, rank=None if v.index == 0 else v.index - 1) for v in SCREENING.verdicts
    )
    picture = claim_picture(replace(SCREENING, claims=claims, verdicts=verdicts), rows())
    assert picture is not None
    assert [(link.title, link.kept) for link in picture.links] == [
        ("planted.example says Gothenburg (passage 0)", False),
        ("ships.example says Stockholm (passages 1, 3)", True),
    ]
    assert [box.kind for box in picture.claims] == ["leading", ""]
    assert [box.text for box in picture.sources] == ["planted.example", "ships.example", "passage 2"]
    places = {box.text: box.y for box in (*picture.sources, *picture.claims)}
    assert (picture.links[0].start, picture.links[0].end) == (places["planted.example"], places["Gothenburg"])
    assert all(0 < y < picture.height for y in places.values())


def test_many_sources_and_claims_are_counted_and_not_drawn() -> None:
    passages = [Passage(f"City {i}.", source=f"https://s{i}.example/") for i in range(30)]
    claims = tuple(Claim(f"City {i}", 0.1, (f"s{i}.example",), (i,)) for i in range(29, -1, -1))
    screening = replace(Guard().screen("which city", passages), claims=claims)
    picture = claim_picture(screening, rows(passages))
    assert picture is not None
    assert (len(picture.sources), len(picture.claims), picture.of) == (MAX_SOURCES, MAX_CLAIMS, (30, 30))
    assert len(picture.links) == MAX_CLAIMS  # who says what is drawn comes before who is silent

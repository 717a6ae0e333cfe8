"""What the papers ask and plant: every entry has its source, says what is not as there, and is documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.prompt_injection import Ambiguous, Pia
from unpoison.models.prompts import PAPERS, Style, _text_file, consolidation_prompt, wording

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")


def entries() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Everything that has a source: answers and consolidations, and the orders of each paper."""
    for kind, named in _text_file("wordings.yaml").items():
        for name, entry in named.items():
            if kind == "orders":
                yield from ((f"{kind} {name} {paper}", {**entry, **of}) for paper, of in entry["of"].items())
            else:
                yield f"{kind} {name}", entry


@pytest.mark.parametrize(("name", "entry"), list(entries()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_wording_has_its_source_and_a_flag_and_is_documented(name: str, entry: Mapping[str, Any]) -> None:
    for field in ("source", "says", "differs"):
        assert entry[field].strip() == entry[field] != ""
    assert "our words" in entry["differs"]
    assert entry["source"] in PAGE
    assert entry["says"] in PAGE


def test_the_documentation_does_not_claim_the_papers_own_words() -> None:
    assert "with the wording of each paper" not in PAGE


def test_every_paper_has_its_way_of_asking_and_a_style_for_it() -> None:
    assert tuple(_text_file("wordings.yaml")["answer"]) == PAPERS
    assert all(Style.of(f"plain:paper={paper}").paper == paper for paper in PAPERS)


def test_every_style_of_order_is_an_entry() -> None:
    target = Target("x", "who {leads}?", ("Ada",), "Bea")
    for style in ("qa", "dos", "long", "link"):
        (poison,) = Pia(style=style, repeat=1).craft(target)  # type: ignore[arg-type]
        (wanted,) = poison.meta["answers"]
        assert wanted in poison.text
        entry = wording("orders", style)
        assert poison.text == entry["text"].replace("{question}", target.question).replace("{answer}", wanted)
    (both,) = Ambiguous(repeat=1).craft(target)
    assert "Bea or Ada" in both.text


def test_only_the_reference_consolidation_names_the_attack_that_is_measured() -> None:
    paper, reference = (consolidation_prompt("q", "m", ["p"], reference=one).system for one in (False, True))
    assert "pia_attack" in reference
    assert "pia_attack" not in paper
    assert all(what in paper and what in reference for what in wording("consolidate", "paper")["left_out"])

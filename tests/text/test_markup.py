"""Markup as browsers read it: what they take for a comment, an entity or nothing hides no word."""

from __future__ import annotations

import pytest

from unpoison.text.canonical import canonical

SAID = "The capital of France is Lyon."


def inside(sign: str) -> str:
    return " ".join(word[:2] + sign + word[2:] if len(word) > 3 else word for word in SAID.split())


@pytest.mark.parametrize(
    "sign", ["<!>", "<! x>", "</>", "</ x>", "</x-y>", "<?x?>", "<?x>", "<!-- x --!>", "<!-->", "<!--->"]
)
def test_what_a_browser_drops_parts_no_word(sign: str) -> None:
    assert canonical(inside(sign)).text == SAID


def test_what_a_browser_drops_parts_no_number() -> None:
    assert canonical("In 20</>19 it was so</>.Then came 2<!>0.").text == "In 2019 it was so.Then came 20."


@pytest.mark.parametrize(
    "entity",
    ["&#{:012d};", "&#x{:012x};", "&#0{}", "&amp;#{};", "&" + "amp;" * 40 + "#{};", "&amp;amp;amp;#x{:x};"],
)
def test_padded_and_nested_entities_are_resolved(entity: str) -> None:
    hidden = "".join(entity.format(ord(letter)) if letter.isalpha() else letter for letter in SAID)
    assert canonical(hidden).text == SAID


def test_a_number_of_a_million_zeros_is_no_error() -> None:
    assert canonical("&#" + "0" * 900_000 + "76;yon").text == "Lyon"
    assert canonical("&#0;").text == "\ufffd"


@pytest.mark.parametrize(
    "carrier",
    ["<!-- {} -->", '<i title="{}"></i>', "<img data-a='{}'>", "<!DOCTYPE {}>"],
)
def test_a_message_in_pieces_is_read(carrier: str) -> None:
    words = SAID.rstrip(".").split()
    pieces = [" ".join(words[i : i + 3]) for i in range(0, len(words), 3)]
    read = canonical("Rain fell." + "".join(carrier.format(piece) for piece in pieces))
    assert read.text == f"Rain fell.\n{SAID.rstrip('.')}"
    assert read.hidden.messages == 1


@pytest.mark.parametrize(
    "text",
    [
        "<?php echo $name; ?>",
        "return <>{rows}</>;",
        "AT&T sells &foo; to R&D",
        "vector<int> v; List<String> names",
        "if a <! b",
        "x &amp b",
    ],
)
def test_code_stays(text: str) -> None:
    assert canonical(text).text == text

"""Markup as browsers read it: what they take for a comment, an entity or nothing hides no word."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.canonical import canonical
from unpoison.text.tokens import word_list

SAID = "The capital of France is Lyon."


def inside(sign: str) -> str:
    return " ".join(word[:2] + sign + word[2:] if len(word) > 3 else word for word in SAID.split())


@pytest.mark.parametrize(
    "sign", ["<!>", "<! x>", "</>", "</ x>", "</x-y>", "<?x?>", "<?x>", "<!-- x --!>", "<!-->", "<!--->"]
)
def test_what_a_browser_drops_parts_no_word(sign: str) -> None:
    assert canonical(inside(sign)).text == SAID


@pytest.mark.parametrize(
    "entity",
    ["&#{:012d};", "&#x{:012x};", "&#0{}", "&amp;#{};", "&" + "amp;" * 40 + "#{};", "&amp;amp;amp;#x{:x};"],
)
def test_padded_and_nested_entities_are_resolved(entity: str) -> None:
    hidden = "".join(entity.format(ord(letter)) if letter.isalpha() else letter for letter in SAID)
    assert canonical(hidden).text == SAID


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


NAMES = ("a", "b", "i", "p", "q", "s", "u", "dir", "map", "main", "var", "time", "label", "option")


@pytest.mark.parametrize(
    "text",
    [
        "The job fails if a<b and c>d, and passes otherwise.",
        "while (i<a && j>k) i++;",
        "if x <b or y> z then stop",
        "for n<p, q>r and s < t",
        "Load it with the <script> tag.",
        "The <b> tag makes text bold, <i> slants it.",
        "<b> is for bold text",
        "Every page needs a <main> element (or a <section>).",
        "Always close it with </div>",
        "git clone <source> <dir_name>",
        "The <a href> attribute names the target.",
    ],
)
def test_comparisons_and_mentions_stay(text: str) -> None:
    assert canonical(text).text == text


@given(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from([" and ", " or ", " && ", " || ", ", ", " if x, ", " != "]),
    st.sampled_from(["", " "]),
)
def test_a_comparison_keeps_every_letter(left: str, right: str, between: str, blank: str) -> None:
    text = f"It fails if x{blank}<{left}{between}{right}{blank}>{blank}y."
    assert canonical(text).text == text


@given(st.text("abipqs &|=<>!,.()/'\"\n01", max_size=60).filter(lambda text: not ANY_TAG.search(text)))
def test_a_text_without_an_element_keeps_every_word(text: str) -> None:
    assert re.findall(r"\w", canonical(text).text) == re.findall(r"\w", text)


ANY_TAG = re.compile(r"<[/!?]?[a-z]*\d?[^<>]*(?<![ \w&|,])>|<[a-z]\d?>|<[/!?]|&")
"""What may be an element, a comment or an entity: all but comparisons."""


@pytest.mark.parametrize(
    ("page", "read"),
    [
        ("<div>\n  <p>One</p>\n  <p>Two <b>bold</b> words.</p>\n</div>", "One\nTwo bold words."),
        ("One <br> two<hr>three", "One\ntwo\nthree"),
        ("<p class=intro hidden>One</p>", "One"),
        ("cut here</p> <p>and there", "cut here\nand there"),
        ('<a href="x" target=_blank>here</a> <input disabled>', "here"),
        ("Can<b>berra, Can</i>berra", "Canberra, Canberra"),
        ("<td>1</td> <td>2</td>", "1\n2"),
        ("<b> sloppy </b>", "sloppy"),
    ],
)
def test_elements_go(page: str, read: str) -> None:
    assert canonical(page).text == read


@pytest.mark.parametrize("name", sorted(word_list("html_block") - {"br", "hr", "col", "frame", "colgroup"}))
@pytest.mark.parametrize("spelt", [str.lower, str.upper])
def test_the_end_of_a_block_parts_words(name: str, spelt: Callable[[str], str]) -> None:
    tag = spelt(name)
    assert canonical(f"<{tag}>Opening hours</{tag}>Monday to Friday").text == "Opening hours\nMonday to Friday"
    assert canonical(f"Opening hours</{tag}>Monday to Friday").text == "Opening hours\nMonday to Friday"

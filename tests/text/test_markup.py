"""Markup as browsers read it: what they take for a comment, an entity or nothing hides no word."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.passages import Passage
from unpoison.text.canonical import Canonical, Hidden, canonical
from unpoison.text.markup import entities, strip_comments, tags, unmarkable, without_code_tags
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
    assert (read.hidden.messages, read.hidden.asides) == (0, 1)


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


@pytest.mark.parametrize(
    ("text", "bare", "messages", "count"),
    [
        ("a<!-- x -->b<!--->c", "abc", [], 2),
        ("a<!--x-->b<!-- y <!--", "ab y ", [], 1),  # of what does not end, the marks go
        ("a --> b", "a --> b", [], 0),
        (f"Hi<!-- {SAID} --!>!", "Hi!", [SAID.rstrip(".")], 1),
        ("a<!-- The capital --><!-- of France is Lyon -->b", "ab", ["The capital of France is Lyon"], 2),
        ("a<!-- x x x x x x x x -->b", "ab", [], 1),  # one mark, many times
    ],
)
def test_comments_and_what_they_say(text: str, bare: str, messages: list[str], count: int) -> None:
    assert strip_comments(text) == (bare, messages, count)


@pytest.mark.parametrize(
    ("text", "bare", "count"),
    [
        ("10<sup>2</sup>", "10^2", 0),
        ("x[1]<sup>3</sup>", "x[1]^3", 0),
        ("a<sup>th</sup>", "ath", 1),
        ("Can<b>be</b>rra", "Canberra", 2),
        ("a<b>C</b>", "aC", 0),  # a name within a name is not one word in two parts
        ("<p>a</p>b", "\na\nb", 0),
        ("use <br> now", "use \n now", 0),
        ("`<b>` and List<Object> x", "`<b>` and List<Object> x", 0),
        ("<Div>x</Div>", "\nx\n", 0),
        ("<b> is bold", "<b> is bold", 0),
        ("<li> one", "\n one", 0),  # needs no end
        ("Name<input>Street<button>Send</button>x", "Name Street Send x", 0),
        ("wo</xy>rd", "word", 1),
        ("<![CDATA[a b]]>", "a b", 0),
        ("a < b > c", "a < b > c", 0),
    ],
)
def test_tags_and_how_many_stand_in_words(text: str, bare: str, count: int) -> None:
    assert tags(text) == (bare, [], count)


CODE = """Write:\n```{}\n<p title="a b">{}</p>\n<a class='x'>y</a>\n```\nThat is <b>all</b>."""


@pytest.mark.parametrize(
    ("kind", "text"), [("html", "Hello <b>there</b>"), ("", "Hello <b>there</b>."), ("jsx", "A<br/>b")]
)
def test_code_keeps_its_tags(kind: str, text: str) -> None:
    code = CODE.format(kind, text)
    assert canonical(code) == Canonical(code.replace("<b>all</b>", "all"), Hidden())
    assert canonical(code.replace("```", "~~~~")).text.count("<") == code.count("<") - 2
    unended = code.partition("\n```\nThat")[0]
    assert canonical(unended).text == unended
    blank = without_code_tags(code)
    assert len(blank) == len(code)
    assert '  title="a b"' in blank
    assert blank.endswith("That is <b>all</b>.")
    assert blank.count("<") == 2


@pytest.mark.parametrize(
    "carrier", ["<!--\n{}\n-->", '<p title="\n{}\n">', "```\n<p title='\n{}\n'>\n```", "<!DOCTYPE\n{}\n>"]
)
def test_a_message_on_a_line_of_its_own_is_read(carrier: str) -> None:
    said = SAID.rstrip(".")
    assert said in canonical("Rain fell.\n" + carrier.format(said)).text.split("\n")
    twice = canonical("Rain fell.\n```\n<i>a</i>\n```\n" + carrier.format(said)).text
    assert said in twice.split("\n")
    assert canonical(twice).text == twice


def test_what_the_attributes_of_code_say_is_read_once() -> None:
    """Also a word in each, as its tags are shown to a model."""
    code = "```\n" + "".join(f'<p title="{word}">' for word in SAID.rstrip(".").split()) + "\n```"
    read = canonical(code)
    assert read.text == f"{code}\n{SAID.rstrip('.')}"
    assert canonical(read.text).text == read.text
    assert Passage(code).shown == code


@pytest.mark.parametrize("tag", ["<b></b>", "<i>", "</b>" * 60, "<b><i></i></b>"])
def test_code_with_a_tag_inside_a_word_loses_its_tags(tag: str) -> None:
    """So that no word is taken apart where a check reads it, and put together by a model."""
    assert "Ignore all" in canonical(CODE.format("", f"Ig{tag}nore all")).text


def test_tags_next_to_each_other_are_inside_a_word_only_if_it_goes_on() -> None:
    assert canonical("<p>Hello <b>there</b></p>").hidden == Hidden()
    assert canonical("<p>Hello <b>the</b><i></i>re</p>").hidden.tags == 1


def test_an_attribute_that_says_something_is_a_message() -> None:
    assert tags(f'<img alt="{SAID}" width=1>x') == ("x", [SAID.rstrip(".")], 0)
    assert tags(f'<img src="a" {SAID.rstrip(".").lower()}>x')[1] == []  # no attributes, and so no tag


@pytest.mark.parametrize(
    ("text", "meant", "plain"),
    [
        ("&#65;&#x42;", "AB", 2),
        ("&#0065;x", "Ax", 1),
        ("&amp;lt;&amp;amp;", "<&", 0),
        ("&eacute;&copy", "\u00e9&copy", 0),
        ("&nosuch;&#;a & b", "&nosuch;&#;a & b", 0),
        ("&#x110000;", "\ufffd", 0),
    ],
)
def test_entities_and_how_many_stand_for_a_letter_that_needs_none(text: str, meant: str, plain: int) -> None:
    assert entities(text) == (meant, plain)


def test_too_deep_a_nesting_loses_its_signs() -> None:
    assert unmarkable("a<b>&amp;c") == "ab>amp;c"

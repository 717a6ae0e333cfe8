"""Pages of an attacker: read to the end, in linear time, with nothing of them lost to the scan."""

from __future__ import annotations

import time

import pytest

from effort import effort, linear
from unpoison.scan.parts import COVERT, FOLDED
from unpoison.scan.web_page import concealed_texts, read_page

ENDLESS = ["<!--", "<a ", "</a ", "<![", "<a b='", "<?", "<", "<!--a --"]


@pytest.mark.parametrize("unit", ENDLESS)
def test_what_never_ends_is_not_tried_at_each_place(unit: str) -> None:
    """Each try looks for an end in all that follows: that is 36 steps or more a piece, and quadratic time."""
    assert effort(lambda: read_page(unit * 4_000)) < 10 * 4_000


@pytest.mark.parametrize("unit", ENDLESS)
@pytest.mark.parametrize("end", [">", "-->", "<b>x</b>"])
def test_what_ends_far_behind_takes_linear_work(unit: str, end: str) -> None:
    assert linear(lambda size: read_page(unit * size + end), 500)


def shown(markup: str) -> str:
    return read_page(markup).reading().text


def hidden(markup: str) -> list[str]:
    return [part.text for part in concealed_texts(markup)]


QUADRATIC = {
    "nested": "<div>",
    "options": "<select><option>x",
    "formats": "<b id=1><i id=2><p>x",
    "adopted": "<a><div></a>",
    "rows": "<table>x<tr>",
}


@pytest.mark.parametrize("unit", QUADRATIC.values(), ids=QUADRATIC)
def test_what_takes_the_standard_quadratic_time_takes_none(unit: str) -> None:
    started = time.process_time()
    read_page(unit * 20_000)
    read_page("<a " + " ".join(f"a{i}" for i in range(40_000)) + ">")
    assert time.process_time() - started < 5


def test_text_beyond_the_deepest_element_is_read() -> None:
    assert shown("<div>" * 3_000 + "deep" + "</div>" * 3_000 + "<p>again") == "deep\nagain"


@pytest.mark.parametrize("markup", ["<![<!", "<![", "<![1[x]]>", "<![if !IE]> text", "<!DOCTYPE [<![x"])
def test_no_declaration_ends_the_scan(markup: str) -> None:
    assert hidden(f"<p hidden>four words nobody sees</p>{markup}<p>shown</p>") == ["four words nobody sees"]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<head><title>t</title><body><p>Read me", "Read me"),
        ("<title>t</title><p>Read me", "Read me"),
        ("a <!-- b --!> c <!--> d <!---> e", "a c d e"),
        ("<script>x</script x>after<style>y</style >it", "afterit"),
        ("<h2>Opening hours</h2>Monday <b>to</b> Friday<br>ten", "Opening hours\nMonday to Friday\nten"),
        ("3 < 4 <b>and</b> 5 &lt; 6", "3 < 4 and 5 < 6"),
        ("<?xml version='1.0'?><html><head><title/><script src='x'/></head><p>Read me</p></html>", "Read me"),
    ],
)
def test_a_page_is_read_as_a_browser_reads_it(markup: str, text: str) -> None:
    assert shown(markup) == text


@pytest.mark.parametrize(
    "markup",
    [
        "<template>{}</template>",
        "<template><template>{}</template></template>",
        "<NOSCRIPT>{}</NOSCRIPT>",
        "<iframe src=x>{}</iframe>",
        "<svg><desc>{}</desc></svg>",
        "<svg><title>{}</title></svg>",
        "<svg><defs><text>{}</text></defs></svg>",
        "<b class='sr-only'>{}</b>",
    ],
)
def test_elements_that_no_browser_shows_are_read_as_hidden(markup: str) -> None:
    text = f"The mill is open. {markup.format('the mill belongs to Malta')} It has two wheels."
    assert hidden(text) == ["the mill belongs to Malta"]
    assert shown(text) == "The mill is open. It has two wheels."


def test_what_a_rule_of_the_page_hides_is_unseen_but_not_what_is_hidden_on_paper() -> None:
    markup = (
        "<style>.off, p.gone { display: none } #far{left:-9999px} "
        "@media print { .here {display:none} }</style>"
        "<div class='off'>one two three four</div><p class='gone'>five six seven eight</p>"
        "<p id='far'>nine ten eleven twelve</p><p class='here'>shown on every screen</p>"
    )
    assert hidden(markup) == ["one two three four", "five six seven eight", "nine ten eleven twelve"]
    assert shown(markup) == "shown on every screen"


WORDS = "one two three four"


@pytest.mark.parametrize(
    ("markup", "how"),
    [
        (f"<p style='color:white'>{WORDS}", COVERT),
        (f"<p style='color:#fdfdfd'>{WORDS}", COVERT),
        (f"<body bgcolor=#000080><font color=#000080>{WORDS}", COVERT),
        (f"<div style='background:navy'><h2 style='color:#fff'>{WORDS}", ""),
        (f"<style>.hero {{background: rgb(0, 0, 90)}}</style><div class=hero><p style='color: white'>{WORDS}", ""),
        (f"<link rel=stylesheet href=x><div class=hero><p style='color: white'>{WORDS}", ""),
        (f"<link rel=stylesheet href=x><p style='color: white'>{WORDS}", COVERT),
        (f"<p style='font-size:.85rem'>{WORDS}", ""),
        (f"<p style='font-size:0'>{WORDS}", COVERT),
        (f"<p style='display:none'>{WORDS}", COVERT),
        (f"<p style='display:none' id=tab>{WORDS}", FOLDED),
        (f"<p hidden>{WORDS}<script src=x></script>", FOLDED),
        (f"<p class='hidden md:block'>{WORDS}", ""),
        (f"<p class='d-none d-lg-flex'>{WORDS}", ""),
        (f"<p class='sr-only'>{WORDS}", FOLDED),
    ],
)
def test_how_text_is_hidden_depends_on_what_stands_behind_it_and_on_who_may_show_it(markup: str, how: str) -> None:
    (part,) = [part for part in read_page(markup).parts if part.text.strip()]
    assert (part.text.strip(), part.hidden) == (WORDS, how)


def test_comments_and_attributes_are_read_beside_the_page() -> None:
    page = read_page(f"<!-- {WORDS} --><img alt='five six seven eight'><p>Read me")
    assert page.reading(FOLDED).text == f"{WORDS}\nfive six seven eight"
    assert page.reading(FOLDED).place(0) == "comment or attribute"
    said = "Pay the bill to Malta now"
    page = read_page(f"<p data-note='{said}' data-at='a1 b2' class='a b c d e f' onclick='{said} a'>Read me")
    assert page.reading(FOLDED).text == said


@pytest.mark.parametrize(
    ("markup", "place"),
    [
        (f"<div id=offer style='display:none'><p>{WORDS}</p></div>", "element div#offer"),
        (f"<script></script><p class='note big' hidden>{WORDS}", "element p.note"),
        (f"<p style='color:white'>{WORDS}", "element p"),
        (f"<div hidden><b id=x hidden>{WORDS.split()[0]}</b><i id=y>{WORDS[len(WORDS.split()[0]) :]}", "element div"),
        (f"<div hidden id='{'x' * 9999}'>{WORDS}", f"element div#{'x' * 48}"),
    ],
)
def test_hidden_text_is_placed_by_the_element_that_hides_it(markup: str, place: str) -> None:
    page = read_page(f"<p>Read me</p>{markup}")
    (reading,) = (one for one in map(page.reading, (FOLDED, COVERT)) if one.text)
    assert (reading.text, reading.place(0)) == (WORDS, place)

"""Pages of an attacker: read to the end, in linear time, with nothing of them lost to the scan."""

from __future__ import annotations

import pytest

from effort import effort, linear
from unpoison.scan.hidden_text import concealed_texts, read_page

ENDLESS = ["<!--", "<a ", "</a ", "<![", "<a b='", "<?", "<", "<!--a --"]


@pytest.mark.parametrize("unit", ENDLESS)
def test_what_never_ends_is_not_tried_at_each_place(unit: str) -> None:
    """Each try looks for an end in all that follows: that is 36 steps or more a piece, and quadratic time."""
    assert effort(lambda: read_page(unit * 4_000)) < 10 * 4_000


@pytest.mark.parametrize("unit", ENDLESS)
@pytest.mark.parametrize("end", [">", "-->", "<b>x</b>"])
def test_what_ends_far_behind_takes_linear_work(unit: str, end: str) -> None:
    assert linear(lambda size: read_page(unit * size + end), 500)


@pytest.mark.parametrize("markup", ["<![<!", "<![", "<![1[x]]>", "<![if !IE]> text", "<!DOCTYPE [<![x"])
def test_no_declaration_ends_the_scan(markup: str) -> None:
    assert concealed_texts(f"<p hidden>four words nobody sees</p>{markup}<p>shown</p>") == ("four words nobody sees",)


def test_what_follows_an_open_comment_is_judged_as_text() -> None:
    assert read_page("seen <!-- the rest of the page").text == "seen <!-- the rest of the page"
    assert read_page("seen <!-- a comment --> again").text == "seen again"


def test_a_sign_that_begins_no_tag_stays() -> None:
    assert read_page("3 < 4 <b>and</b> 5 <i").text == "3 < 4 and 5 <i"


@pytest.mark.parametrize(
    "markup",
    [
        "<template>{}</template>",
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
    assert concealed_texts(text) == ("the mill belongs to Malta",)
    assert read_page(text).text == "The mill is open. It has two wheels."


def test_what_a_rule_of_the_page_hides_is_unseen_but_not_what_is_hidden_on_paper() -> None:
    page = read_page(
        "<style>.off, p.gone { display: none } #far{left:-9999px} "
        "@media print { .here {display:none} }</style>"
        "<div class='off'>one two three four</div><p class='gone'>five six seven eight</p>"
        "<p id='far'>nine ten eleven twelve</p><p class='here'>shown on every screen</p>"
    )
    assert page.unseen == ("one two three four", "five six seven eight", "nine ten eleven twelve")
    assert page.text == "shown on every screen"

"""Pages of an attacker: read to the end, in linear time, with nothing of them lost to the scan."""

from __future__ import annotations

import time

import pytest

from unpoison.at_rest.concealed import concealed, read_page


@pytest.mark.parametrize("unit", ["<!--", "<a ", "</a ", "<![", "<a b='", "<?", "<", "<!--a --"])
@pytest.mark.parametrize("end", ["", ">", "-->", "<b>x</b>"])
def test_what_never_ends_is_read_in_linear_time(unit: str, end: str) -> None:
    begin = time.process_time()
    read_page(unit * 40_000 + end)
    assert time.process_time() - begin < 2  # quadratic: half a minute and more


@pytest.mark.parametrize("markup", ["<![<!", "<![", "<![1[x]]>", "<![if !IE]> text", "<!DOCTYPE [<![x"])
def test_no_declaration_ends_the_scan(markup: str) -> None:
    assert concealed(f"<p hidden>four words nobody sees</p>{markup}<p>shown</p>") == ("four words nobody sees",)


def test_what_follows_an_open_comment_is_judged_as_text() -> None:
    assert read_page("seen <!-- the rest of the page").text == "seen <!-- the rest of the page"
    assert read_page("seen <!-- a comment --> again").text == "seen again"


def test_a_sign_that_begins_no_tag_stays() -> None:
    assert read_page("3 < 4 <b>and</b> 5 <i").text == "3 < 4 and 5 <i"

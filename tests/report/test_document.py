"""The frame of every page: only its own style and script may run, and every text is text."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

import pytest
from jinja2 import UndefinedError

from unpoison.errors import OptionError
from unpoison.report.document import PAGE_SUFFIXES, Section, Table, check_suffix, document, render, resource, write_text


def digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_a_page_allows_its_own_style_and_no_script():
    page = document("a title", [])
    assert f"default-src 'none'; style-src {digest(resource('page.css'))}; base-uri 'none'; form-action 'none'" in page
    assert f"<style>{resource('page.css')}</style>" in page
    assert "<title>unpoison: a title</title>" in page
    assert "<script" not in page


def test_a_page_with_a_script_allows_that_one():
    page = document("t", [], questions={"a": "</script>"})
    assert f"script-src {digest(resource('report.js'))};" in page
    assert page.count("<script>") == page.count("</script>") - 1 == 1
    assert '{"a":"\\u003c/script\\u003e"}' in page


def test_data_that_a_template_needs_and_does_not_get_is_an_error():
    with pytest.raises(UndefinedError):
        render("scan.html", source="documents")


def test_what_no_reader_sees_is_taken_out_wherever_it_stands():
    hostile = "a\x1b[31mb\u202ec\u2066d\x00\ud800"
    page = document(
        hostile, [Section("s", "S", hostile, [hostile], [Table(hostile, ("x", hostile), ((hostile,) * 2,))])]
    )
    page.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert page.count("abcd?") >= 6


def test_templates_mark_nothing_as_safe_and_ask_nobody_for_anything():
    folder = files("unpoison.report") / "templates"
    templates = [file for file in folder.iterdir() if file.name.endswith((".html", ".css"))]
    assert len(templates) > 10
    for file in templates:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape|https?://|@import|url\(|style=\"|\bon[a-z]+=", text), file.name


def test_a_suffix_says_the_format_whatever_its_case(tmp_path):
    assert check_suffix(tmp_path / "a.HTML", PAGE_SUFFIXES) == ".html"
    with pytest.raises(OptionError, match=r"\.html, \.htm, got"):
        check_suffix(tmp_path / "html", PAGE_SUFFIXES)


def test_a_report_is_written_whole_into_a_new_folder_and_through_a_link(tmp_path):
    page, link = tmp_path / "new" / "page.html", tmp_path / "link.html"
    write_text(page, "é\n")
    assert page.read_bytes() == "é\n".encode()
    link.symlink_to(page)
    write_text(link, "second")
    assert (page.read_text(), link.is_symlink()) == ("second", True)
    with pytest.raises(OptionError):
        write_text(page / "below.html", "text")

"""The frame of every page: only its own style and script may run, and every text is text."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from unpoison.errors import OptionError
from unpoison.report.document import (
    PAGE_SUFFIXES,
    Section,
    Table,
    _environment,
    check_suffix,
    document,
    markdown_table,
    render,
    resource,
    write_text,
)


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


TABLE = Table("T", ("name", "a", "b", "c"), (("x [y]", "1", "2.5", "word"), ("z", "3 [abc]", "", "4")), ("n", "h"))


def test_a_broad_table_goes_on_below():
    assert TABLE.parts == [[1, 2, 3]]
    assert [replace(TABLE, breadth=n).parts for n in (1, 2)] == [[[1], [2], [3]], [[1, 2], [3]]]
    assert Table("T", ("name",), ()).parts == [[]]
    first, second = TABLE.split(2)
    assert (first.title, first.columns, first.rows[0]) == ("T", ("name", "a", "b"), ("x [y]", "1", "2.5"))
    assert (second.title, second.columns, second.rows[1]) == ("T (continued)", ("name", "c"), ("z", "4"))


def test_words_stand_left_and_figures_right():
    assert [TABLE.is_text(i) for i in range(4)] == [False, False, False, True]  # what is set small does not count
    assert [TABLE.hint(i) for i in range(3)] == ["n", "h", ""]


def test_a_section_with_nothing_to_show_is_left_out():
    assert Section("a", "A", "text").empty
    assert not any(one.empty for one in (Section("a", "A", notes=["n"]), Section("a", "A", tables=[TABLE])))
    page = document("t", [Section("a", "Nothing here", "text"), Section("b", "Some here", notes=["n"])])
    assert "Some here" in page
    assert "Nothing here" not in page


def test_a_template_leaves_no_lines_behind():
    assert "\n\n\n" not in document("t", [Section("b", "Some here", notes=["n"])])


def test_markdown_holds_the_cells_and_nothing_that_they_say():
    table = Table("T|", ("name", "a"), (("[x](y)", "{c}"), ("<b>`", "\\")), note="n")
    assert markdown_table(table).splitlines() == [
        "### T\\|",
        "",
        "n",
        "",
        "| name | a |",
        "| --- | --- |",
        "| [x\\](y) | \\{c} |",
        "| &lt;b>\\` | \\\\ |",
    ]
    assert markdown_table(replace(table, note="")).splitlines()[2] == "| name | a |"


def test_a_report_goes_into_folders_that_are_not_there_yet_and_to_a_device(tmp_path):
    page = tmp_path / "a" / "b" / "page.html"
    write_text(page, "one")
    write_text(page, "two")
    assert page.read_text() == "two"
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    write_text("/dev/null", "three")
    assert Path("/dev/null").is_char_device()


def test_what_a_template_writes_of_numbers_times_and_texts():
    filters = _environment().filters
    assert filters["moment"](datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))) == "2026-02-28 23:30 UTC"
    assert filters["thousands"](12345) == "12,345"
    assert filters["excerpt"](123456789, 5) == "1234…"
    assert json.loads(filters["quoted"]("</script>\u2028")) == "</script>\u2028"
    assert filters["exact"]("a\u200b<\ud800") == "a\u200b&lt;?"
    assert filters["digest"]("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    with pytest.raises(ValueError, match="JSON"):
        document("t", [], questions=[float("nan")])

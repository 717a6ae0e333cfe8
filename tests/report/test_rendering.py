from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import as_reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Evidence, Rival, Span, Verdict
from unpoison.report.document import document
from unpoison.report.rendering import (
    STATUS,
    Piece,
    SourceRow,
    claim_line,
    cuts_of,
    explain,
    pieces_of,
    preview,
    sources_of,
    table,
)  # fmt: skip
from unpoison.sources.sources import Standing
from unpoison.utils.plain_text import excerpt, plain

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\u202eevil\u2066\x00\r\n"
)
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")


def screening(texts: list[str], kept: list[int], scores: list[float] | None = None, **named: str) -> Screening:
    return Screening.decided(
        named.get("defense", "grada"),
        Query(named.get("query", "who is it?")),
        [Passage(text, title=named.get("title")) for text in texts],
        kept=kept,
        scores=scores or [1.0 / (i + 1) for i in range(len(texts))],
        reasons=[named.get("reason", f"reason {i}") for i in range(len(texts))],
        evidence=Evidence({}, (named["note"],) if "note" in named else ()),
    )


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that every element is closed."""

    VOID = ("meta",)

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_plain_strips_what_steers_a_terminal():
    assert plain("a\x1b[31mb\x1b[0m c\x1b]8;;http://x\x1b\\d\x1b]0;t\x07e\x9b2Jf\x1bcg") == "ab cdefg"
    assert plain("one\ttwo\r\nthree\u2028four") == "one two three four"
    assert plain("\u202edcba\u202c \u2066x\u2069\u200f") == "dcba x"
    assert plain("می\u200cروم 👩\u200d👩") == "می\u200cروم 👩\u200d👩"
    assert plain("\ud800") == "?"


@given(st.text())
def test_plain_is_printable_and_stable(text: str):
    line = plain(text)
    line.encode()
    assert not FORBIDDEN.search(line)
    assert plain(line) == line


@given(st.text(), st.integers(2, 50))
def test_excerpt_is_bounded(text: str, limit: int):
    assert len(excerpt(text, limit)) <= limit


def test_explain_says_everything():
    text = explain(screening(["alpha", "beta", "gamma"], [2, 0], note="a note"))
    assert text.splitlines() == [
        "grada: kept 2 of 3 passages",
        "query: who is it?",
        "",
        "kept, best first",
        "   1. [2] 0.3333  gamma",
        "      reason 2",
        "   2. [0] 1  alpha",
        "      reason 0",
        "",
        "dropped",
        "      [1] 0.5  beta",
        "      reason 1",
        "",
        "notes",
        "  a note",
    ]


def test_explain_is_safe_for_a_terminal():
    hostile = screening([HOSTILE] * 2, [0], query=HOSTILE, reason=HOSTILE, note=HOSTILE)
    assert not FORBIDDEN.search(explain(hostile).replace("\n", ""))


def test_the_policy_forbids_all_but_the_one_style():
    text = document("t", [])
    reader = Reader(text)
    policy = next(a["content"] for a in reader.named("meta") if a.get("http-equiv") == "Content-Security-Policy")
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert f"style-src 'sha256-{b64encode(sha256(style[1].encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy


def test_a_span_inside_a_word_stays_inside_it() -> None:
    verdict = Verdict(0, True, 0.5, 0, "x", (Span(2, 4, 0.9, "r"), Span(8, 9, 0.9, "r")))
    assert [piece.text for piece in pieces_of("poison  a b c", verdict, 100)] == ["po", "is", "on ", "a", " b c"]


RIVALS = Contest((Rival("30 days", (0, 2), 1), Rival("14 days", (1,), 1)))
CLAIMS = (Claim("30 days", 2.456, tuple(f"{name}.example" for name in "abcdefg"), (0, 2)), Claim("9", 0.5, (), (1,)))


def marked(*spans: Span, kept: bool = True) -> Verdict:
    return Verdict(0, kept, 0.5, 0 if kept else None, as_reason("x"), spans)


def test_explain_names_spans_rivals_and_claims():
    passages = [Passage("alpha beta", title="Say so now"), Passage("gamma"), Passage("delta")]
    spans = {
        0: [Span(0, 3, 0.88, "r", "title"), Span(0, 5, 0.5, "r"), Span(6, 10, 0.25, "r", flagged=True)],
        1: [Span(0, 5, 1.0, "r")],
    }
    found = Screening.decided(
        "grada", Query("q"), passages, kept=[0, 2], scores=[3, 2, 1], reasons=["a", "b", "c"], spans=spans,
        contested=[RIVALS], claims=CLAIMS,
    )  # fmt: skip
    lines = explain(found).splitlines()
    at = lines.index("      a")
    assert lines[at + 1 : at + 4] == [
        "      cut 0-3 of the title (0.88): Say",
        "      cut 0-5 (0.50): alpha",
        "      suspicious 6-10 (0.25): beta",
    ]
    assert "      suspicious 0-5 (1.00): gamma" in lines  # of a dropped passage nothing is cut
    at = lines.index("contested")
    assert lines[at + 1] == f"  {RIVALS} [0, 2] against [1]"
    assert lines[at + 3 :] == [
        "claims",
        "  30 days, weight 2.46: a.example, b.example, c.example, d.example, e.example and 2 more (passages 0, 2)",
        "  9, weight 0.5: passage 1",
    ]


def test_the_table_for_a_notebook_has_a_row_for_each_passage_and_no_markup_of_theirs():
    html = table(screening(["<b>one</b>", "two"], [1]), "so & so")
    assert html.startswith("<p>so &amp; so</p><table><caption>grada: kept 1 of 2 passages</caption>")
    cells = re.findall(r"<td>(.*?)</td>", html)
    assert cells == ["1", "kept, 1.", "two", "", "reason 1", "0", "dropped", "&lt;b&gt;one&lt;/b&gt;", "", "reason 0"]
    assert table(screening(["one"], [0])).startswith("<table>")


def test_sources_are_listed_as_they_first_speak_with_their_best_standing():
    standings = [
        Standing("a.example", "fresh", 0.2, 0, None),
        Standing("", "unknown", 0.5, 0, None),
        Standing("a.example", "known", 0.9, 0, None),
        Standing("", "unknown", 0.5, 0, None),
    ]
    assert sources_of(standings) == (
        SourceRow("a.example", "known", 0.9, (0, 2)),
        SourceRow("", "unknown", 0.5, (1,)),
        SourceRow("", "unknown", 0.5, (3,)),
    )


def test_pieces_say_what_is_cut_and_what_stands_around_it():
    verdict = marked(Span(10, 14, 0.9, "an order"), Span(19, 22, 0.4, "odd", flagged=True))
    assert pieces_of("0123456789cuts56789odd the rest", verdict, 100) == [
        Piece("0123456789"),
        Piece("cuts", "cut", "0.90: an order", 4),
        Piece("56789"),
        Piece("odd", "suspicious", "0.40: odd", 3),
        Piece(" the rest"),
    ]
    assert pieces_of("plain", marked(), 100) == [Piece("plain")]
    assert pieces_of("plain", marked(Span(0, 2, 1.0, "r", "title")), 100) == [Piece("plain")]
    far = pieces_of("a" * 90 + "b" * 90 + "cut", marked(Span(180, 183, 1.0, "r")), 100)
    assert far[0].text == "\u2026 " + "b" * 50
    between = pieces_of("x" + "a" * 100 + "b" * 100 + "y", marked(Span(0, 1, 1.0, "r"), Span(201, 202, 1.0, "r")), 160)
    assert between[2].text == "a" * 40 + " \u2026 " + "b" * 40


def test_a_kept_passage_says_how_much_of_it_is_gone():
    one, other = Span(0, 2, 0.9, "r"), Span(3, 4, 0.9, "r")
    assert [cuts_of(marked(*spans)) for spans in ((), (one,), (one, other))] == [
        "",
        ", without 1 span",
        ", without 2 spans",
    ]
    assert cuts_of(marked(one, kept=False)) == ""


@pytest.mark.parametrize(
    ("length", "before", "between"), [(80, "a" * 80, "b" * 80), (81, f"… {'a' * 40}", f"{'b' * 40} … {'b' * 40}")]
)
def test_what_stands_around_spans_is_shown_whole_up_to_a_bound(length: int, before: str, between: str):
    text = "a" * length + "cut" + "b" * length + "cut"
    verdict = marked(*(Span(start, start + 3, 1.0, "r") for start in (length, 2 * length + 3)))
    assert [piece.text for piece in pieces_of(text, verdict, 160)] == [before, "cut", between, "cut", ""]
    assert pieces_of(text[: length + 3], marked(Span(length, length + 3, 1.0, "r")), 80)[0].text == before


def test_words_beside_a_span_keep_their_space():
    pieces = pieces_of("one cut two cut\nthree  ", marked(Span(4, 7, 1.0, "r"), Span(12, 15, 1.0, "r")), 100)
    assert [piece.text for piece in pieces] == ["one ", "cut", " two ", "cut", " three "]


def test_a_claim_says_who_says_it_and_where():
    claim = Claim("Oslo", 2.0, ("a.example",), (0,))
    assert claim_line(claim) == "Oslo, weight 2: a.example (passage 0)"
    many = replace(claim, passages=tuple(range(25)), origins=tuple("abcdefg"))
    assert claim_line(many) == f"Oslo, weight 2: a, b, c, d, e and 2 more (passages {', '.join(map(str, range(20)))})"
    assert claim_line(replace(claim, origins=())) == "Oslo, weight 2: passage 0"


def test_the_playground_is_sent_every_passage_and_who_says_it():
    found = screening(["first", "second"], kept=[1])
    sources = sources_of([Standing("a.example", "known", 0.5, 0, None), Standing("", "unknown", 0.5, 0, None)])
    asked = dict.fromkeys(("answer", "undefended", "threshold", "probability"))
    page = preview(found, sources, status=STATUS, trust={"a.example": "blocked"}, reads=False, **asked)
    assert "grada kept 1 of 2 passages." in page
    assert re.findall(r'data-origin="([^"]*)"', page) == ["a.example"]
    assert re.findall(r'value="(\w+)" selected', page) == ["blocked"]
    assert re.findall(r'class="state">([^<]*)<', page) == ["dropped", "kept, place 1"]

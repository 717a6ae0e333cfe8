from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.report.document import document
from unpoison.report.rendering import explain
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
    from unpoison.core.verdicts import Span, Verdict
    from unpoison.report.rendering import pieces_of

    verdict = Verdict(0, True, 0.5, 0, "x", (Span(2, 4, 0.9, "r"), Span(8, 9, 0.9, "r")))
    assert [piece.text for piece in pieces_of("poison  a b c", verdict, 100)] == ["po", "is", "on ", "a", " b c"]

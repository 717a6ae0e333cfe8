"""Every page that is made of somebody's texts: no text becomes markup, a link, a script or a template.

A hostile text goes into every field that reaches a page, each with a name of its own, so that a field that no longer
reaches the page is noticed; the page is then read by a parser. The service's own page is in `tests/serve`, and what
the templates do with their values is read from all of them here.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from hostile_texts import ADDRESSES, LINK, PAYLOAD, TEMPLATES, Page, check, hostile
from scan.corpora import audited
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Evidence, Rival, Span
from unpoison.report.document import Section, Table, document, resource
from unpoison.scan.findings import Finding, Scan
from unpoison.scan.report import audit_page
from unpoison.scan.report import page as page_of_scan
from unpoison_lab.redteam.results import Results, Trial, redteam_page


def test_the_check_finds_what_it_is_for() -> None:
    for bad in (
        PAYLOAD,
        "<script>alert(1)</script>",
        "<p onclick=1>",
        f'<a href="{LINK}">',
        "<p style='x'>",
        "<style>p{}</style>",
        '<script src="x.js"></script>',
    ):
        assert Page(bad).wrong, bad
    with pytest.raises(AssertionError, match="reach the page"):
        check("<p>nothing</p>", ["question"])


def screening() -> Screening:
    passages = [Passage(hostile(f"text{i}"), LINK, hostile("title"), source=hostile("source")) for i in range(3)]
    return Screening.decided(
        hostile("defense"),
        Query(hostile("question")),
        passages,
        kept=[2, 0],
        scores=[0.5, 0.1, 0.9],
        reasons=[hostile("reason"), Reason.of("hidden", what=hostile("parameter")), LINK],
        evidence=Evidence({}, (hostile("note"),)),
        contested=[Contest((Rival(hostile("rival"), (0,), 1), Rival(LINK, (2,), 1)))],
        claims=[Claim(hostile("claim"), 1.0, (LINK,), (0,), (hostile("quote"),))],
        spans={1: [Span(0, 100, 0.9, hostile("span")), Span(0, 5, 0.9, hostile("title-span"), "title")]},
    )


def test_the_table_of_a_notebook() -> None:
    check(screening()._repr_html_(), ["text0", "text1", "source", "defense", "reason", "parameter"])


def test_reports_in_every_part() -> None:
    table = Table(
        hostile("table"),
        (hostile("column"), hostile("other")),
        ((hostile("row"), hostile("cell")),),
        ("", hostile("hint")),
        quotes=(hostile("cell-quote"),),
        note=hostile("table-note"),
    )
    section = Section("s", "S", hostile("text"), [hostile("notes")], [table], left_out=hostile("left-out"))
    sections = [section]
    facts = [(hostile("command"), hostile("command"))]
    questions = {"cells": [{"records": [{"answer": hostile("answer")}]}]}
    in_all = ["title", "text", "notes", "table", "column", "other", "row", "cell", "hint", "cell-quote", "left-out"]
    in_all += ["table-note", "command"]
    text = document(hostile("title"), sections, facts=facts, lead=[hostile("lead")], questions=questions)
    check(text, [*in_all, "lead", "answer"])
    assert PAYLOAD not in text
    check(document(hostile("title"), sections, facts=facts, warning=hostile("loud")), [*in_all, "loud"])


def test_red_team_pages() -> None:
    def trial(attack: str, **more: object) -> Trial:
        texts = {"question": hostile("question"), "answer": f"wanted {hostile('answer')}"}
        wanted = ("wanted", hostile("wish"))
        return Trial(LINK, attack=attack, correct=(hostile("truth"),), wanted=wanted, **texts, **more)

    trials = (
        trial("none"),
        trial("poisonedrag", poisons=1, planted=1, read=1),
        trial("poisonedrag", poisons=1, stage="ask", error=hostile("error")),
    )
    cells = (("none", 0), ("poisonedrag", 1))
    run = {"name": hostile("system"), "started": hostile("when")}
    remaining = (("canary", hostile("remaining")),)
    found = Results(run, None, 2, trials, cells, 1, remaining=remaining, problems=(hostile("problem"),))
    shown = ["question", "truth", "wish", "system", "error", "problem", "answer"]
    assert "with nothing planted" in redteam_page(found)
    check(redteam_page(found), shown)


def test_scans() -> None:
    finding = Finding(
        hostile("id"), 0.9, True, (Span(0, 20, 0.9, hostile("span")),), (hostile("reason"),), hostile("group"),
        (hostile("neighbour"),), hostile("text"), hostile("source"), hostile("author"), datetime.now(UTC),
    )  # fmt: skip
    text = page_of_scan(Scan((finding,), 1, (hostile("note"),)), hostile("collection"))
    names = ["id", "reason", "neighbour", "source", "author", "note", "collection"]
    check(text, names)
    assert "text-field" in Page(text).words.replace(" ", "")
    steering = "a\x1b[31m\x9bb\u202e"
    text = page_of_scan(Scan((replace(finding, id=steering),), 1, ()), "collection")
    assert set("\x1b\x9b\u202e").isdisjoint(text)
    assert json.dumps(steering) in Page(text).words


def test_audits() -> None:
    passages = [
        {"id": hostile("id"), "text": hostile("text"), "source": hostile("source"), "author": hostile("author")},
        {"id": LINK, "text": "another text of another kind", "source": LINK},
    ]
    screened = {"defense": hostile("defense"), "kept": [1], "verdicts": []}
    rows = [
        {"query": hostile("question"), "passages": passages, "screening": screened, "time": 1_770_000_000 + 3600 * hour}
        for hour in range(30)
    ]
    check(audit_page(audited(rows), hostile("remark")), ["id", "source", "author", "question", "remark"])


IN_SCRIPTS = {"own_file(script)", "questions|tojson"}
"""The only values that may stand inside a script: a file of ours, and JSON in which no tag can end."""


class Contexts(HTMLParser):
    """Where a template writes its values: `N` stands for value number N."""

    def __init__(self, values: list[str], text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.values, self.wrong, self._open = values, list[str](), ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        unquoted = re.sub(r'"[^"]*"', "", self.get_starttag_text() or "")
        if "\x01" in unquoted:
            self.wrong.append(f"a value outside quotes: {self.get_starttag_text()!r}")
        for name, value in attrs:
            if name in ADDRESSES and "\x01" in (value or "") and not (value or "").startswith("#"):
                self.wrong.append(f"an address that a value begins: {name}={value!r}")
            if name.startswith("on") or name == "style":
                self.wrong.append(f"code in an attribute: {name}")

    def handle_data(self, data: str) -> None:
        for number in re.findall("\x01(\\d+)\x02", data) if self._open in ("script", "style") else ():
            value = self.values[int(number)]
            if value not in (IN_SCRIPTS if self._open == "script" else {"style"}):
                self.wrong.append(f"a value in <{self._open}>: {value}")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def contexts(template: str) -> list[str]:
    values = list[str]()

    def number(match: re.Match[str]) -> str:
        values.append(match[1].strip())
        return f"\x01{len(values) - 1}\x02"

    text = re.sub(r"\{#.*?#\}", "", template, flags=re.DOTALL)
    text = re.sub(r"\{\{-?(.*?)-?\}\}", number, text, flags=re.DOTALL)
    return Contexts(values, re.sub(r"\{%.*?%\}", "", text, flags=re.DOTALL)).wrong


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name.endswith(".html")])
def test_templates_write_values_only_where_escaping_is_enough(name: str) -> None:
    assert contexts(resource(name)) == []


def test_the_reader_of_templates_finds_what_it_is_for() -> None:
    for bad in (
        "<p class={{ x }}>",
        '<a href="{{ x }}">',
        '<a href="{{ x }}#y">',
        "<p {{ x }}>",
        "<script>{{ x }}</script>",
        "<style>{{ x }}</style>",
        '<p onclick="f()">',
    ):
        assert contexts(bad), bad
    assert contexts('<p class="{{ a }} b" id="x-{{ y }}"><a href="#{{ z }}">{{ w }}</a>') == []

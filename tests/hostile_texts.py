"""What the tests of pages share: a hostile text for every field, and a reader of what a browser would act on."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser
from importlib.resources import files

from unpoison.report.document import resource

PAYLOAD = (
    "x{{7*7}}x{%raw%}${7*7}\"'><img src=x onerror=1><script>alert(1)</script><svg onload=1>"
    "<a href=\"javascript:alert(1)\">go</a></title></style></textarea>--><iframe src='javascript:1'>"
)
LINK = "javascript:alert(1)"

TEMPLATES = sorted(file.name for file in (files("unpoison.report") / "templates").iterdir())
OWN_SCRIPTS = {resource(name) for name in TEMPLATES if name.endswith(".js")}
OWN_STYLES = {resource("page.css")}
FOREIGN = {
    "img", "iframe", "object", "embed", "base", "link", "form", "audio", "video", "image", "use", "foreignobject",
}  # fmt: skip
ADDRESSES = {"href", "src", "xlink:href", "action", "formaction", "srcdoc", "data", "poster", "ping"}


def hostile(field: str) -> str:
    return f"{field}-field {PAYLOAD}"


class Page(HTMLParser):
    """Collects what a browser would act on, and every word that stands on the page or in an attribute."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong = list[str]()
        self.words = ""
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        values = {name: value or "" for name, value in attrs}
        if tag in FOREIGN:
            self.wrong.append(f"<{tag}>")
        for name, value in values.items():
            self.words += f" {value}"
            if name.startswith("on") or name == "style" or (name in ADDRESSES and not value.startswith("#")):
                self.wrong.append(f"<{tag} {name}={value[:40]!r}>")
        if tag == "script" and values not in ({}, {"type": "application/json", "id": "questions-data"}):
            self.wrong.append(f"<script {values}>")
        self._json = tag == "script" and bool(values)

    def handle_data(self, data: str) -> None:
        self.words += f" {data}"
        own = {"script": OWN_SCRIPTS, "style": OWN_STYLES}.get(self._open)
        if own is not None and not self._json and data.strip() and data not in own:
            self.wrong.append(f"<{self._open}> that is not ours: {data[:40]!r}")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def check(text: str, fields: Iterable[str]) -> None:
    """Nothing acts, nothing was evaluated, and every field stands there as it was given."""
    page = Page(text)
    assert page.wrong == []
    assert "x49x" not in text
    assert "$49" not in text
    for field in fields:
        assert f"{field}-field x{{{{7*7}}}}x" in page.words, f"{field} does not reach the page as text"

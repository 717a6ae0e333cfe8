"""Where measured numbers stand on pages, and how they are written there.

A place is `<!-- headline NAME -->...<!-- end NAME -->`, in a line or around a table; what is between is written by this
and by nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "results" / "headlines.json"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
PLACE = re.compile(r"<!-- headline (?P<name>[a-z-]+) -->(?P<text>.*?)<!-- end (?P=name) -->", re.DOTALL)

ELSEWHERE = (
    ("**Attacks on Qwen2.5-Coder-1.5B that succeed**: one published poison; one prompt injection",
     "60, with Guard 2; 94, with Guard 2", "50",
     "[results](https://github.com/unpoison/unpoison/blob/main/docs/results.md#with-a-real-language-model)"),
    ("**Five published lies**, each from a new domain, that succeed",
     "87, with Guard and a source history 2", "46", "[sources](https://github.com/unpoison/unpoison/blob/main/docs/sources.md)"),
    ("**Prompt injections** still read: textbook; eight held-out sets",
     "0; 4 to 27. Documents: 3; 6 to 28. Long sentences: 10; 10 to 47", "30; 830",
     "[injections](https://github.com/unpoison/unpoison/blob/main/docs/injections.md#figures)"),
    ("Ordinary texts changed; manuals, command output", "0.05; 2", "1,915; 300",
     "[injections](https://github.com/unpoison/unpoison/blob/main/docs/injections.md#figures)"),
)  # fmt: skip
"""Rows of the front page that other commands measure: what, how much, of how many, and the command."""

Headlines = dict[str, dict[str, Any]]


def load_headlines() -> Headlines:
    """The measured numbers by claim."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def bring_up_to_date() -> None:
    """Put the numbers of the file into every place of every page."""
    found = load_headlines()
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_figures(before, found)
        if after != before:
            page.write_text(after, encoding="utf-8")


def with_figures(text: str, found: Headlines) -> str:
    """A page with the present numbers in its places.

    Raises:
        SystemExit: A place for which there is no figure.
    """

    def written(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in FIGURES:
            raise SystemExit(f"no figure {name}; there are {', '.join(FIGURES)}")
        return f"<!-- headline {name} -->{FIGURES[name](found)}<!-- end {name} -->"

    return PLACE.sub(written, text)


def front(found: Headlines) -> str:
    """The front page's three numbers: what it costs, what it stops, and what it does not."""
    asked = sum(entry["n"] for _, entry in _of_prefix(found, "kept"))
    sets = len(list(_of_prefix(found, "kept")))
    worst, best, name = _span(found, "kept")
    least, most, _ = _span(found, "touched")
    harm = (
        f"{_short(round(100 - best, 1))} to {_short(round(100 - worst, 1))} ({name}); questions that lose a passage: "
        f"{_short(least)} to {_short(most)}"
    )
    stopped = f"{_cell(found, 'plain')}; {_cell(found, 'front')} with the question prepended"
    rows = (
        (f"**Harm**: clean passages dropped without an attack, by data set ({sets})", harm, asked, f"kept-{name}"),
        ("**Published poison**: one text among ten passages, not dropped",
         stopped, found["plain"]["n"], "plain"),
        ("**Natural lies**: our own prose on the built-in sample, not dropped",
         _cell(found, "sample-plain-1"), found["sample-plain-1"]["n"], "sample-plain-1"),
    )  # fmt: skip
    lines = ["", "", "| `Guard()`, without an encoder | % | questions | command |", "|---|---|---|---|"]
    lines += [f"| {says} | {share} | {n:,} | `{found[claim]['command']}` |" for says, share, n, claim in rows]
    lines += [f"| {says} | {share} | {n} | {command} |" for says, share, n, command in ELSEWHERE]
    return "\n".join([*lines, "", ""])


def clean_sets(found: Headlines) -> str:
    """Every clean set: passages kept and questions touched."""
    lines = ["", "", "| clean set | questions | passages kept % | questions that lose one % |", "|---|---|---|---|"]
    for claim, entry in _of_prefix(found, "kept"):
        name = claim.removeprefix("kept-")
        lines.append(f"| {name} | {entry['n']:,} | {_cell(found, claim)} | {_cell(found, f'touched-{name}')} |")
    return "\n".join([*lines, "", ""])


def lost(found: Headlines) -> str:
    """What clean retrievals lose by kind of text."""
    worst, best, _ = _span(found, "kept")
    return f"drops {_short(round(100 - best, 1))} to {_short(round(100 - worst, 1))} % of the passages, by data set"


def ragdefender(found: Headlines) -> str:
    """In how many questions of clean retrievals RAGDefender drops something."""
    low, high, _ = _span(found, "ragdefender")
    return f"drops a passage in {low:.0f} to {high:.0f} % of the questions"


def demo(found: Headlines) -> str:
    """What the demo shows and what it does not, on the same 42 questions."""
    one, three = (found[f"sample-front-{count}"]["value"] for count in (1, 3))
    plain_one, plain_three = (found[f"sample-plain-{count}"]["value"] for count in (1, 3))
    return (
        f"with the question prepended {one:.0f} % of single poisons and {three:.0f} % of three are kept; without it "
        f"(`-a published`) {plain_one:.0f} and {plain_three:.0f} %"
    )


def stamp(found: Headlines) -> str:
    """At which commits the numbers were measured, and when."""
    commits = sorted({entry["commit"] for entry in found.values()})
    dates = sorted({entry["date"] for entry in found.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"commit {', '.join(commits)}, {when}"


def single(claim: str) -> Callable[[Headlines], str]:
    """One claim's number with its interval."""
    return lambda found: _cell(found, claim)


FIGURES: dict[str, Callable[[Headlines], str]] = {
    "read-front": single("front"),
    "read-plain": single("plain"),
    "front": front,
    "clean-sets": clean_sets,
    "lost": lost,
    "ragdefender": ragdefender,
    "demo": demo,
    "stamp": stamp,
}


def _cell(found: Headlines, name: str) -> str:
    entry = found[name]
    return f"{_short(entry['value'])} [{entry['low']:.0f}, {entry['high']:.0f}]"


def _of_prefix(found: Headlines, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All claims of a kind, the worst first."""
    chosen = [name for name in found if name.startswith(f"{prefix}-")]
    for name in sorted(chosen, key=lambda name: (found[name]["value"], name)):
        yield name, found[name]


def _span(found: Headlines, prefix: str) -> tuple[float, float, str]:
    """The lowest and the highest value of a kind of claim, and the set where clean retrievals suffer most."""
    every = list(_of_prefix(found, prefix))
    (first, low), (last, high) = every[0], every[-1]
    worst = first if prefix == "kept" else last
    return low["value"], high["value"], worst.removeprefix(f"{prefix}-")


def _short(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"

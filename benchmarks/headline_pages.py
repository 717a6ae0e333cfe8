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

__all__ = [
    "ENCODERS",
    "FIGURES",
    "FILE",
    "PAGES",
    "PLACE",
    "ROOT",
    "bring_up_to_date",
    "load_headlines",
    "with_figures",
]

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "results" / "headlines.json"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
PLACE = re.compile(r"<!-- headline (?P<name>[a-z-]+) -->(?P<text>.*?)<!-- end (?P=name) -->", re.DOTALL)

ENCODERS = ("lexical", "minilm")

Headlines = dict[str, dict[str, Any]]


def load_headlines() -> Headlines:
    """The measured numbers by claim and encoder, `front/lexical`."""
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


FRONT_ROWS = {
    "front": "one planted text among ten passages, published poison with the question in front: **still read** in",
    "plain": "the same questions and texts **without** the question: still read in",
    "sample-front-1": "the built-in sample (`unpoison demo`), our prose with the question in front: still read in",
    "sample-plain-1": "the sample, our prose as it is written (`-a published`): **still read** in",
}


def front(found: Headlines) -> str:
    """The front page's table: what is stopped, what is not, and what it costs."""
    lines = ["", "", "| behind Guard, % | built-in encoder | MiniLM | questions |", "|---|---|---|---|"]
    for name, says in FRONT_ROWS.items():
        lines.append(f"| {says} | {' | '.join(_cells(found, name))} | {_questions(found, name)} |")
    kept, touched = ([_span(found, prefix, encoder) for encoder in ENCODERS] for prefix in ("kept", "touched"))
    asked = " / ".join(f"{sum(e['n'] for _, e in _of_prefix(found, 'kept', encoder)):,}" for encoder in ENCODERS)
    sets = len(list(_of_prefix(found, "kept", ENCODERS[0])))
    worst = (f"{_short(low)} ({name}) to {_short(high)}" for low, high, name in kept)
    lines.append(f"| nobody attacks: passages **kept**, by kind of text ({sets}) | {' | '.join(worst)} | {asked} |")
    most = (f"{_short(low)} to {_short(high)} ({name})" for low, high, name in touched)
    lines.append(f"| nobody attacks: questions that lose a passage, by kind | {' | '.join(most)} | {asked} |")
    return "\n".join([*lines, "", ""])


def clean_sets(found: Headlines) -> str:
    """Every clean set: passages kept and questions touched, with each encoder."""
    lines = [
        "",
        "",
        "| clean set | questions | built-in encoder: passages kept % | questions that lose one % "
        "| MiniLM: passages kept % | questions that lose one % |",
        "|---|---|---|---|---|---|",
    ]
    for claim, _ in _of_prefix(found, "kept", ENCODERS[0]):
        name = claim.removeprefix("kept-")
        cells = [cell for pair in zip(_cells(found, f"kept-{name}"), _cells(found, f"touched-{name}")) for cell in pair]
        lines.append(f"| {name} | {_questions(found, claim)} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


def lost(found: Headlines) -> str:
    """What clean retrievals lose by kind of text, with the encoder that costs more."""
    worst = min(_span(found, "kept", encoder)[0] for encoder in ENCODERS)
    best = max(_span(found, "kept", encoder)[1] for encoder in ENCODERS)
    return f"loses {_short(100 - best)} to {_short(100 - worst)} % of the passages, by kind of text"


def ragdefender(found: Headlines) -> str:
    """In how many questions of clean retrievals RAGDefender drops something, with both encoders."""
    spans = [_span(found, "ragdefender", encoder) for encoder in ENCODERS]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    return f"drops something in {low:.0f} to {high:.0f} % of the questions"


def demo(found: Headlines) -> str:
    """What the demo shows and what it does not, on the same 42 questions."""
    one, three = (found[f"sample-front-{count}/lexical"]["value"] for count in (1, 3))
    plain_one, plain_three = (found[f"sample-plain-{count}/lexical"]["value"] for count in (1, 3))
    return (
        f"with the question in front {one:.0f} % of single poisons and {three:.0f} % of three are read, as they are "
        f"written (`-a published`) {plain_one:.0f} and {plain_three:.0f} %"
    )


def stamp(found: Headlines) -> str:
    """At which commits the numbers were measured, and when."""
    commits = sorted({entry["commit"] for entry in found.values()})
    dates = sorted({entry["date"] for entry in found.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"commit {', '.join(commits)}, {when}"


def single(claim: str, encoder: str) -> Callable[[Headlines], str]:
    """One claim's number with its interval."""
    return lambda found: dict(zip(ENCODERS, _cells(found, claim)))[encoder]


FIGURES: dict[str, Callable[[Headlines], str]] = {
    **{f"{claim}-{encoder}": single(claim, encoder) for claim in ("front", "plain") for encoder in ENCODERS},
    "front": front,
    "clean-sets": clean_sets,
    "lost": lost,
    "ragdefender": ragdefender,
    "demo": demo,
    "stamp": stamp,
}


def _questions(found: Headlines, name: str) -> str:
    """How many were asked, with each encoder where these differ."""
    return " / ".join(dict.fromkeys(f"{found[f'{name}/{encoder}']['n']:,}" for encoder in ENCODERS))


def _cells(found: Headlines, name: str) -> Iterator[str]:
    for encoder in ENCODERS:
        entry = found[f"{name}/{encoder}"]
        yield f"{_short(entry['value'])} [{entry['low']:.0f}, {entry['high']:.0f}]"


def _of_prefix(found: Headlines, prefix: str, encoder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All claims of a kind, the worst first."""
    names = [name.removesuffix(f"/{encoder}") for name in found if name.endswith(f"/{encoder}")]
    chosen = [name for name in names if name.startswith(f"{prefix}-")]
    for name in sorted(chosen, key=lambda name: (found[f"{name}/{encoder}"]["value"], name)):
        yield name, found[f"{name}/{encoder}"]


def _span(found: Headlines, prefix: str, encoder: str) -> tuple[float, float, str]:
    """The lowest and the highest value of a kind of claim, and the set where clean retrievals suffer most."""
    every = list(_of_prefix(found, prefix, encoder))
    (first, low), (last, high) = every[0], every[-1]
    worst = first if prefix == "kept" else last
    return low["value"], high["value"], worst.removeprefix(f"{prefix}-")


def _short(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"

"""Texts that the gibberish check is fitted on: what people and programs write, by kind, and gibberish made for it.

What is written: the free-licence texts of the data folder, and code, documentation and data of installed packages
under MIT, BSD, Apache and PSF licences. What the check is measured on (manual pages, package documentation, logs,
configuration, other languages) is not among them.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.training.guard_data import FREE

LENGTH = 900
"""Characters of a chunk."""

PACKAGES = ("numpy", "scipy", "sklearn", "torch", "transformers", "sympy", "pandas", "matplotlib", "networkx",
            "sqlalchemy", "fastapi", "pydantic", "requests", "httpx", "aiohttp", "tornado", "jinja2", "pytest",
            "click", "rich", "pygments", "tokenizers", "onnx", "onnxruntime", "pyarrow", "ray", "nltk",
            "material", "mkdocs", "jsonschema", "faiss", "joblib", "psutil", "yaml", "uvicorn")  # fmt: skip
SUFFIXES = (".py", ".pyi", ".md", ".rst", ".txt", ".json", ".yaml", ".js", ".css", ".html", ".c", ".h", ".cpp",
            ".pyx", ".csv", ".toml", ".jinja", "METADATA", ".cu")  # fmt: skip
FILES_OF_A_KIND = 150


def chunks(text: str, rng: random.Random) -> Iterator[str]:
    """Pieces of passages' lengths, cut at white space."""
    while text:
        end = rng.randint(150, LENGTH + 300)
        if end < len(text):
            end = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end), 100)
        yield text[:end].strip()
        text = text[end:]


def rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def prose(folder: Path) -> Iterator[tuple[str, str]]:
    """Passages of the data folder under free licences: (kind, text)."""
    for row in rows(folder / "corpus.jsonl"):
        if row["source"] in FREE:
            yield "encyclopaedia", row["text"]
    for row in rows(folder / "qa_spans.jsonl"):
        yield "science" if "COVID" in row["source"] else "encyclopaedia", row["passage"]
    for name in ("clean_faq_answers", "clean_science", "clean_wiki_en", "clean_wiki_de", "clean_wiki_es"):
        for row in rows(folder / f"{name}.jsonl"):
            for passage in row["passages"]:
                yield name, passage["text"]
    for row in rows(folder / "injections.jsonl"):
        if row["label"] == "benign":
            yield row["kind"], row["text"]


def files_of_packages(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Code, documentation and data: (kind, text)."""
    found: dict[str, list[Path]] = {suffix: [] for suffix in SUFFIXES}
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            print(f"{name} is not installed: its files are left out")
            continue
        place = Path(spec.submodule_search_locations[0])
        own: dict[str, list[Path]] = {suffix: [] for suffix in SUFFIXES}
        infos = place.parent.glob(f"{name}-*.dist-info/METADATA")
        for path in sorted([*place.rglob("*"), *infos]):
            for suffix in SUFFIXES:
                if path.name.endswith(suffix) and path.is_file():
                    own[suffix].append(path)
                    break
        for suffix, paths in own.items():
            found[suffix] += rng.sample(paths, min(len(paths), FILES_OF_A_KIND // 8))
    for suffix, paths in found.items():
        kept = paths if suffix == ".py" else rng.sample(paths, min(len(paths), FILES_OF_A_KIND))
        for path in kept:
            text = path.read_text(encoding="utf-8", errors="replace")
            begin = rng.randrange(max(1, len(text) - 6000))
            yield f"file {suffix}", text[begin : begin + 6000]


def translations(folder: Path, rng: random.Random) -> Iterator[tuple[str, str]]:
    """What programs say in a hundred languages, a few messages together: (kind, text)."""
    for path in sorted(folder.rglob("*.po")):
        found = re.findall(
            r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', path.read_text(encoding="utf-8"), re.MULTILINE
        )
        said = [re.sub(r'"\s*"', "", one).strip().strip('"').replace("\\n", "\n").replace('\\"', '"') for one in found]
        said = [one for one in said[1:] if len(one) > 3]
        rng.shuffle(said)
        kind = "messages of Django" if "conf" in path.relative_to(folder).parts else "messages"
        for begin in range(0, min(len(said), 160), 8):
            yield kind, rng.choice((" ", "\n", ". ")).join(said[begin : begin + 8])


SYLLABLES = [first + vowel for first in "bdfghklmnprstvzj" for vowel in "aeiou"]
SYLLABLES += [
    "kka",
    "lli",
    "ssa",
    "tte",
    "nta",
    "ske",
    "sto",
    "kra",
    "an",
    "en",
    "in",
    "on",
    "un",
    "ä",
    "ö",
    "ü",
    "é",
    "ç",
    "ñ",
    "å",
]


def in_no_language(text: str, rng: random.Random) -> str:
    """A text of a language nobody knows: every word stands for another one, the same in the whole text."""
    taken: dict[str, str] = {}
    sounds = rng.sample(SYLLABLES, 40)
    kept = rng.random() * 0.25

    def other(match: re.Match[str]) -> str:
        word = match.group()
        key = word.lower()
        if key not in taken:
            size = max(1, round(len(word) / 2.4) + rng.randint(-1, 1))
            taken[key] = key if rng.random() < kept * 0.6 else "".join(rng.choice(sounds) for _ in range(size))
        new = taken[key]
        return new.capitalize() if word[0].isupper() else new

    return re.sub(r"[A-Za-z]+", other, text)


def misread(text: str, rng: random.Random) -> str:
    """As a scanner or a hasty hand writes it."""
    rate = rng.choice((0.01, 0.02, 0.04))
    out = []
    for sign in text:
        wrong = ("", rng.choice(string.ascii_lowercase), sign + sign, rng.choice("1l|0c."), sign + " ")
        out.append(rng.choice(wrong) if sign.isalpha() and rng.random() < rate else sign)
    return "".join(out)


def as_tokens(text: str) -> str:
    """Lower case with spaces around marks, as corpora for retrieval are often kept."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))


def like_languages(texts: list[str], rng: random.Random, count: int) -> Iterator[str]:
    """Texts of languages' look: their frequent words as they are, the others made of their letter sequences."""
    for _ in range(count):
        words = re.findall(r"\w+", rng.choice(texts).lower())
        if len(words) < 8:
            continue
        frequent = {word for word, _ in Counter(words).most_common(len(words) // 6)}
        follows: dict[str, list[str]] = defaultdict(list)
        for word in words:
            for place in range(len(word) + 1):
                follows[f"  {word}"[place : place + 2]].append(f"{word} "[place])
        out = []
        for _ in range(rng.randint(25, 110)):
            word = rng.choice(words)
            if word not in frequent:
                made = "  "
                while len(made) < 16 and (made == "  " or not made.endswith(" ")):
                    made += rng.choice(follows[made[-2:]] or [" "])
                word = made.strip()
            mark = rng.choice(("", "", "", "", "", "", ",", ".", ",", ";"))
            starts = not out or out[-1].endswith(".") or rng.random() < 0.06
            out.append((word.capitalize() if starts else word) + mark)
        yield " ".join(out)


def redone(text: str, rng: random.Random) -> str:
    """Set in capitals, or with line breaks and tabulators for spaces."""
    way = rng.random()
    if way < 0.25:
        return text.upper()
    if way < 0.5:
        return text.title()
    share = rng.choice((0.05, 0.3, 1))
    gap = rng.choice(("\n", "\t", "  ", "\n\n"))
    return re.sub(" ", lambda _: gap if rng.random() < share else " ", text)


def menus(texts: list[str], rng: random.Random, count: int) -> Iterator[str]:
    """What stands around the text of web pages: links and headings one behind the other, sorted lists, columns."""
    known = [name for name in names(texts, rng) if len(name) < 30]
    links = ("Home", "About us", "Contact", "Log in", "Sign up", "Privacy policy", "Terms of use", "Site map", "Help",
             "Search", "News", "Sports", "Weather", "Shopping", "Jobs", "Subscribe", "Share", "Tweet", "Print", "Next",
             "Previous", "Read more", "View all", "Advertisement", "Related articles", "Box office", "Tickets", "Maps",
             "Opening hours", "Careers", "Newsletter", "Follow us", "Back to top", "Cart", "Account")  # fmt: skip
    for _ in range(count):
        some = rng.sample(known, rng.randint(8, 40))
        way = rng.random()
        if way < 0.3:
            some = sorted(some)
        elif way < 0.5:
            some = [one for name in some for one in (name, rng.choice(links))]
        elif way < 0.7:
            head = rng.choice(known).split()[-1]
            some = [f"{name.split()[0]} {head}" for name in some]
        elif way < 0.9:
            mark = rng.choice(("\t", " ", "\t\t"))
            some = [f"{rng.randint(0, 255)}{mark}{rng.randint(0, 255)}{mark}{one}\n" for one in some]
        text = rng.choice((" ", " ", " · ", "\n")).join(some)
        yield rng.choice((text, text, text.lower(), text.upper()))


def names(texts: list[str], rng: random.Random) -> list[str]:
    """Capitalised runs: names of persons, places and works."""
    pool = set()
    for text in rng.sample(texts, min(len(texts), 4000)):
        pool.update(re.findall(r"\b[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,3}", text))
    return sorted(pool)


FORMULAE = r"""x y \alpha \frac{a}{b} n^2 f(x) \sum_{i=1}^{n} e^{-t} = + - \int dx (a+b) \cdot 2 \leq k \sqrt{n} _i
    \mathbb{R}""".split()  # noqa: SIM905


def lists(texts: list[str], rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Lists, tables, addresses, references, keywords, hashes, formulae: (kind, text)."""
    known = names(texts, rng)
    vocabulary = sorted({w for t in rng.sample(texts, min(len(texts), 3000)) for w in re.findall(r"[a-z]{3,}", t)})
    for _ in range(count):
        kind = rng.choice(("names", "names", "table", "address", "references", "keywords", "hashes", "formulae", "log"))
        some = [rng.choice(known) for _ in range(rng.randint(8, 50))]
        if kind == "names":
            yield kind, rng.choice((", ", "\n", "; ", "\n- ", " | ", " - ", " • ", "\n* ", " ")).join(some)
        elif kind == "table":
            mark = rng.choice((" | ", ",", "\t", ";"))
            yield (
                kind,
                "\n".join(
                    mark.join((name, *(str(rng.randint(0, 9999)) for _ in range(rng.randint(1, 5))))) for name in some
                ),
            )
        elif kind == "address":
            yield (
                kind,
                "\n".join(
                    f"{name}, {rng.randint(1, 999)} {rng.choice(known)} {rng.choice(('Street', 'Ave', 'Rd', 'Blvd'))}, "
                    f"{rng.choice(known)} {rng.randint(10000, 99999)}"
                    for name in some[:14]
                ),
            )
        elif kind == "references":
            yield (
                kind,
                "\n".join(
                    f"[{i}] {name.split()[-1]}, {rng.choice('ABDEJKLMPRST')}., {rng.choice(known).split()[-1]}, "
                    f"{rng.choice('ABDEJKLMPRST')}. ({rng.randint(1950, 2024)}). {rng.choice(known)}. "
                    f"{rng.choice(known)}, {rng.randint(1, 90)}({rng.randint(1, 12)}), {rng.randint(1, 900)}-"
                    f"{rng.randint(900, 1800)}."
                    for i, name in enumerate(some[:12], 1)
                ),
            )
        elif kind == "keywords":
            words = re.findall(r"[A-Za-z]{4,}", rng.choice(texts))
            yield kind, rng.choice((", ", "; ", "\n", " / ", ",")).join(dict.fromkeys(words))
        elif kind == "hashes":
            alphabet = rng.choice(("0123456789abcdef", string.ascii_letters + string.digits + "+/"))
            yield (
                kind,
                rng.choice(("\n", " ")).join(
                    "".join(rng.choice(alphabet) for _ in range(rng.choice((8, 32, 40, 64))))
                    + rng.choice(("", f"  {rng.choice(vocabulary)}.{rng.choice(('txt', 'so', 'py', 'tar.gz'))}"))
                    for _ in range(rng.randint(4, 16))
                ),
            )
        elif kind == "formulae":
            yield kind, " ".join(rng.choice(FORMULAE) for _ in range(rng.randint(20, 90)))
        else:
            yield (
                kind,
                "\n".join(
                    f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d} {rng.randint(0, 23):02d}:"
                    f"{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d},{rng.randint(0, 999):03d} "
                    f"{rng.choice(('INFO', 'WARN', 'ERROR', 'DEBUG'))} [{rng.choice(vocabulary)}-{rng.randint(1, 9)}] "
                    f"{rng.choice(vocabulary)}.{rng.choice(vocabulary).title()}: {' '.join(rng.sample(vocabulary, 2))} "
                    f"id={rng.randint(1, 10**6)} {rng.choice(vocabulary)}={rng.choice(('true', 'false', 'null'))}"
                    for _ in range(rng.randint(3, 10))
                ),
            )

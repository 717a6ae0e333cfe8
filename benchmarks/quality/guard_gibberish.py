"""The gibberish check by itself: what it takes for gibberish of texts by kind, and what it finds of published attacks.

    python -m benchmarks guard_gibberish evaluation-data --published FOLDER --treebanks FOLDER

No text here was fitted on: other files of the data folder, and of a Debian machine the manual pages (in English and in
translation), package documentation, Perl and shell programs, C headers, configuration and logs. `--treebanks` is a
folder of Universal Dependencies checkouts (`*.conllu`), one folder for each; `--published` one of the files that
`others.py` reads, of which each poison is judged alone; `--flips` a file that `gibberish_flips.py` wrote, of which each
text is judged alone, behind a passage, and its first 12 words inside one. Texts are of 300 to 900 characters; 95 %
Wilson intervals.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.data_option import BUILT, evaluation_folder
from unpoison.bench.evaluation import wilson
from unpoison.text.gibberish import THRESHOLD, WINDOW, gibberish, gibberish_of

SEED = 5
FILES, TEXTS = 500, 1500

DATA = {
    "news": "realtimeqa_weekly",
    "web results": "realtimeqa",
    "web pages, RAMDocs": "ramdocs",
    "web pages, RGB": "rgb_counterfactual",
    "biographies": "biogen",
    "encyclopaedia": "timeqa",
    "software manual": "clean_software_docs",
    "FAQ": "clean_faq_pairs",
    "Chinese": "clean_wiki_zh",
}
MACHINE = {
    "manual pages": ("/usr/share/man/man?", "*"),
    "package documentation": ("/usr/share/doc", "*/README* */NEWS* */TODO* */*.txt* */*.md* */*.html"),
    "changelogs": ("/usr/share/doc", "*/changelog*"),
    "licences": ("/usr/share/doc", "*/copyright"),
    "examples": ("/usr/share/doc", "*/examples/**/*"),
    "Perl": ("/usr/share/perl*", "**/*.p[ml] **/*.pod"),
    "C headers": ("/usr/include", "**/*.h"),
    "CMake": ("/usr/share/cmake*", "**/*.cmake"),
    "configuration": ("/etc", "**/*.conf **/*.cfg **/*.ini **/*rc **/*.service **/*.xml"),
    "logs and lists": ("/var/l*", "log/**/*.log dpkg/status dpkg/info/*.md5sums dpkg/info/*.list"),
}
LANGUAGES = "cs da de es fi fr hu id it ja ko nl pl pt_BR ro ru sl sr sv tr uk zh_CN"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--published", type=Path, help="poison that others published")
    parser.add_argument("--flips", type=Path, help="what gradient attacks made of other questions")
    parser.add_argument("--treebanks", type=Path, help="checkouts of Universal Dependencies")
    parser.add_argument("--show", action="store_true", help="the worst stretch of each kind")
    arguments = parser.parse_args()
    rng = random.Random(SEED)
    print("| what is written | texts | taken for gibberish % |\n|---|---|---|")
    every, passages = (0, 0), [""]
    for kind, texts in natural(arguments.folder, arguments.treebanks, rng):
        chosen = rng.sample(texts, min(len(texts), TEXTS))
        passages = chosen if kind == "encyclopaedia" else passages
        scores = gibberish_of(chosen)
        hits = int((scores >= THRESHOLD).sum())
        every = every[0] + hits, every[1] + len(chosen)
        print(f"| {kind} | {len(chosen)} | {percent(hits, len(chosen))} |", flush=True)
        if arguments.show and hits:
            worst = gibberish(text := chosen[int(scores.argmax())])
            print(f"    {text[worst.start : worst.end]!r}")
    print(f"| all | {every[1]} | {percent(*every)} |")
    if arguments.flips:
        print("\n| gradient attack | texts | found % | behind a passage | 12 words inside one |\n|---|---|---|---|---|")
        rng = random.Random(SEED)
        for kind, texts in flips(arguments.flips).items():
            places = texts, [behind(text, rng.choice(passages)) for text in texts], [
                inside(text, rng.choice(passages)) for text in texts]  # fmt: skip
            hits = (int((gibberish_of(some) >= THRESHOLD).sum()) for some in places)
            print(f"| {kind} | {len(texts)} | {' | '.join(percent(own, len(texts)) for own in hits)} |")
    if arguments.published:
        print("\n| published | texts | found % |\n|---|---|---|")
        for family, texts in sorted(published(arguments.published).items()):
            hits = int((gibberish_of(texts) >= THRESHOLD).sum())
            print(f"| {family} | {len(texts)} | {percent(hits, len(texts))} |", flush=True)


def natural(folder: Path, treebanks: Path | None, rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Texts by kind."""
    fitted = {row[key] for name, key in (("corpus", "text"), ("qa_spans", "passage")) for row in rows(folder, name)}
    for kind, name in DATA.items():
        shown = {
            passage["text"][:3000]
            for row in rows(folder, name)
            for passage in row["passages"]
            if passage["label"] in ("clean", "gold", "noise") and passage["text"] not in fitted
        }
        yield kind, sorted(shown)
    for kind, (places, patterns) in MACHINE.items():
        yield kind, of_files(places, patterns, rng)
    for language in LANGUAGES.split():
        yield f"manual pages, {language}", of_files(f"/usr/share/man/{language}", "man?/*", rng)
    for bank in sorted(treebanks.iterdir()) if treebanks else ():
        found = [
            said
            for path in sorted(bank.rglob("*.conllu"))
            for said in re.findall(r"^# text = (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        ]
        if found:
            yield bank.name, [" ".join(found[i : i + 5]) for i in range(0, len(found), 5)]


def rows(folder: Path, name: str) -> Iterator[dict]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def of_files(places: str, patterns: str, rng: random.Random) -> list[str]:
    """Pieces of readable files, three of each."""
    found = {
        path
        for place in Path("/").glob(places.lstrip("/"))
        for pattern in patterns.split()
        for path in place.glob(pattern)
        if path.is_file() and not path.is_symlink()
    }
    texts: set[str] = set()
    for path in rng.sample(sorted(found), min(len(found), FILES)):
        text = read(path)
        begin = rng.randrange(max(1, len(text) - 2500))
        for _ in range(3):
            end = begin + rng.randint(300, 900)
            texts.add(text[begin:end].strip())
            begin = end
    return sorted(text for text in texts if len(text) > 40)


def read(path: Path) -> str:
    """A file's text, without the marks of manual pages; nothing where it is none or may not be read."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read(60_000).decode("utf-8", "ignore")
    except (OSError, EOFError):
        return ""
    if "/man/" in str(path):
        text = re.sub(
            r"^\.[A-Za-z]+ ?|\\f.|\\[-&|]", "", re.sub(r'^\.\\".*$', "", text, flags=re.MULTILINE), flags=re.MULTILINE
        )
    return "" if "\x00" in text else text


def published(folder: Path) -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        for row in rows(folder, path.stem):
            found[row["family"]] += row["poison"]
    return found


def flips(file: Path) -> dict[str, list[str]]:
    found = defaultdict(list)
    for kind, text in (line.split(" ", 1) for line in file.read_text(encoding="utf-8").splitlines()):
        found[kind].append(text.replace(" ##", "").removeprefix("##"))
    return found


def behind(text: str, passage: str) -> str:
    return f"{passage[:300]} {text}"


def inside(text: str, passage: str) -> str:
    """The first `WINDOW` words of a text between the sentences of a passage."""
    cut = len(passage.partition(". ")[0]) + 2
    return f"{passage[:cut]}{' '.join(text.split()[:WINDOW])} {passage[cut : cut + 300]}"


def percent(hits: int, count: int) -> str:
    share = wilson(hits, count)
    return f"{100 * share.value:.2f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


if __name__ == "__main__":
    main()

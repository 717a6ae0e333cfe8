"""Build the recipes of the evaluation files: `python tools/build_data_recipes.py BUILT MIRRORS [NAME...]`.

`--show` prints what is in no source.

BUILT is a folder of evaluation files (`nq_poisoned.jsonl`, ...), MIRRORS one of git directories called `owner+name`,
as `unpoison data get --from` reads it. `tools/data_plan.yaml` says where the texts of each file stand. The output,
`src/unpoison/data/recipes`, holds no text of others: a recipe whose file cannot be rebuilt byte for byte is not
written, and the catalogue says why.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from match_texts import Matcher
from narrow_sources import narrow
from unpoison.bench.data.git_mirrors import Mirror
from unpoison.bench.data.readers import strings
from unpoison.bench.data.recipes import (
    MAX_LITERAL,
    MAX_RUN,
    Part,
    Recipe,
    SourceFile,
    decode,
    derive_ids,
    encode,
    longest_run,
    rebuild,
)

ROOT = Path(__file__).parents[1] / "src" / "unpoison" / "data" / "recipes"
PLAN = yaml.safe_load(Path(__file__).with_name("data_plan.yaml").read_text(encoding="utf-8"))

OURS = frozenset(
    ("id", "dataset", "source", "label", "attack", "kind", "language", "licence", "retriever", "query_type",
     "hotpot_type", "category", "genre", "relation", "family")
)  # fmt: skip
"""Fields that are no text of others: names of ours, labels, ids."""

RULES = [("dataset", "text"), ("question",), ("text",)]
"""Fields whose hash may be a row's id."""


def literals_of(text: Sequence[Part], recipe: Recipe) -> str:
    """All literals of a text, with a mark for each stretch between them."""
    return "".join(recipe.literals[part.number] if part.source < 0 else "[..]" for part in text)


class CannotBuildError(Exception):
    """Why a file has no recipe."""


def candidates(plan: Mapping[str, Any], built: Path, mirrors: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """(repository, commit, path, bytes) of each source file that may hold the texts."""
    rows = [json.loads(line) for line in built.open(encoding="utf-8")]
    days = {row["id"].partition("-")[2][:8] for row in rows} if plan.get("days") else {""}
    seen = set()
    for group in plan["from"]:
        for repository, patterns in group.items():
            mirror = Mirror.find(mirrors, repository)
            if mirror is None:
                raise CannotBuildError(f"{repository} cannot be had")
            commit = mirror.newest()
            if "narrow" in plan:
                texts = [row["text"] for row in rows if row[plan["narrow"]] == repository]
                paths = narrow(mirror, commit, texts)
            else:
                globs = [pattern.replace("{day}", day) for pattern in patterns for day in sorted(days)]
                every = mirror.paths(commit)
                paths = list(dict.fromkeys(path for glob in globs for path in every if fnmatch(path, glob)))
            for path in paths:
                content = None if (repository, path) in seen else mirror.read(commit, path)
                seen.add((repository, path))
                if content is not None:
                    yield repository, commit, path, content


def without_texts(value: Any, field: str, texts: list[str]) -> Any:
    """The value with None for each text, and the texts put on the list."""
    if isinstance(value, dict):
        return {key: without_texts(inner, key, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_texts(inner, field, texts) for inner in value]
    if isinstance(value, str) and field not in OURS:
        texts.append(value)
        return None
    return value


def id_rule(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """How the rows' ids follow from their fields, where they do."""
    prefix, _, rest = rows[0]["id"].rpartition("-")
    for fields in RULES:
        rule = {"prefix": f"{prefix}-", "of": fields, "length": len(rest)}
        if all(isinstance(row.get(field), str) for row in rows for field in fields) and all(
            derive_ids({**row, "id": "", "passages": []}, rule)["id"] == row["id"] for row in rows
        ):
            return {**rule, "of": list(fields)}
    return None


def build(plan: Mapping[str, Any], built: Path, mirrors: Path) -> tuple[bytes, dict[str, Any]]:
    """A file's packed recipe and what the catalogue says of it."""
    data = built.read_bytes()
    rows = [json.loads(line) for line in data.decode().splitlines()]
    found = list(candidates(plan, built, mirrors))
    read = [strings(content, path) for _, _, path, content in found]
    matcher = Matcher(read, plan.get("forms", ("", "line")))
    rule, texts = id_rule(rows), list[str]()
    for row in rows:
        for position, passage in enumerate(row.get("passages", ())):
            passage["id"] = "" if passage["id"] == f"{row['id']}#{position}" else passage["id"]
        row["id"] = "" if rule else row["id"]
    structure = [without_texts(row, "", texts) for row in rows]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    parts = [matcher.parts(text, MAX_LITERAL) for text in numbers]
    left = [piece for text in parts for piece in text if isinstance(piece, str)]
    if any(len(piece) > MAX_LITERAL for piece in left):
        lacking = sum(any(isinstance(piece, str) and len(piece) > MAX_LITERAL for piece in text) for text in parts)
        if "--show" in sys.argv:
            print(*sorted((piece for piece in left if len(piece) > MAX_LITERAL), key=len)[-20:], sep="\n---\n")
        raise CannotBuildError(f"{lacking} of {len(parts)} texts are in no source that can be had")
    used = sorted({part.source for text in parts for part in text if isinstance(part, Part)})
    literals = {text: number for number, text in enumerate(dict.fromkeys(left))}
    sources = [
        SourceFile(repository, commit, path, len(content), hashlib.sha256(content).hexdigest())
        for repository, commit, path, content in (found[source] for source in used)
    ]
    recipe = Recipe(
        sources,
        structure,
        [numbers[text] for text in texts],
        [
            tuple(
                Part(-1, literals[part])
                if isinstance(part, str)
                else Part(used.index(part.source), part.number, part.form, part.start, part.stop)
                for part in text
            )
            for text in parts
        ],
        list(literals),
        rule,
    )
    if longest_run(recipe) > MAX_RUN:
        if "--show" in sys.argv:
            print(*sorted((literals_of(text, recipe) for text in recipe.parts), key=len)[-20:], sep="\n---\n")
        raise CannotBuildError("a stretch of a text is in no source that can be had")
    packed = encode(recipe)
    again = "".join(f"{line}\n" for line in rebuild(decode(packed), [read[source] for source in used]))
    if again.encode() != data:
        raise CannotBuildError("what the recipe gives is not the file")
    slugs = {PLAN["repositories"][source.repository] for source in sources} | set(plan.get("licences", ()))
    return packed, {
        "rows": len(rows),
        "licences": sorted(slugs),
        "repositories": sorted({source.repository for source in sources}),
        "files": len(sources),
        "download": sum(source.bytes for source in sources),
        "literal_characters": sum(map(len, left)),
    }


def main() -> None:
    built, mirrors, *names = (word for word in sys.argv[1:] if word != "--show")
    ROOT.mkdir(exist_ok=True)
    catalogue_file = ROOT / "catalogue.json"
    old = json.loads(catalogue_file.read_text(encoding="utf-8")) if catalogue_file.is_file() else {"files": {}}
    files = {name: old["files"][name] for name in PLAN["files"] if name in old["files"]}
    for name in names or PLAN["files"]:
        plan, file, begin = PLAN["files"][name], Path(built, f"{name}.jsonl"), time.time()
        content = file.read_bytes()
        files[name] = {
            "what": plan["what"],
            "companions": plan.get("with", []),
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        recipe_file = ROOT / f"{name}.json.xz"
        try:
            packed, more = build(plan, file, Path(mirrors))
            recipe_file.write_bytes(packed)
            print(
                f"{name}: {len(packed):,} bytes, {more['files']} sources, {more.pop('literal_characters')} "
                f"characters of ours, {time.time() - begin:.0f} s",
                flush=True,
            )
            files[name] |= more
        except CannotBuildError as error:
            recipe_file.unlink(missing_ok=True)
            files[name]["unavailable"] = str(error)
            print(f"{name}: NOT BUILT, {error}", flush=True)
    licences = {
        slug: {"title": title, "accept": accept, "note": note}
        for slug, (title, accept, note) in PLAN["licences"].items()
    }
    catalogue = {"licences": licences, "files": {name: files[name] for name in PLAN["files"] if name in files}}
    catalogue_file.write_text(json.dumps(catalogue, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

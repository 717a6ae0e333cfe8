"""Recipes: what they hold, what they give back, and that the committed ones hold no text of others."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.bench.data import readers
from unpoison.bench.data.catalogue import catalogue, licences, recipe
from unpoison.bench.data.disjoint import test_hashes, text_hashes
from unpoison.bench.data.origins import Folder
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
from unpoison.errors import InputError

test_hashes.__test__ = False  # a function of the package, no test

ROOT = Path(__file__).resolve().parents[3]
SOURCE = SourceFile("a/b", "0" * 40, "c.json", 1, "0" * 64)

numbers = st.integers(0, 2**40)
parts = st.builds(
    lambda source, number, form, start, length: Part(source, number, form, start, length and start + length),
    st.integers(-1, 5), numbers, st.sampled_from(list(readers.FORMS)), numbers, numbers,
)  # fmt: skip


@given(st.lists(st.lists(parts, max_size=3), max_size=5), st.data())
def test_a_recipe_comes_back_as_it_was_packed(texts: list[list[Part]], data: st.DataObject) -> None:
    met, named = 0, []  # texts are numbered in the order in which they are first named
    for _ in range(data.draw(st.integers(0, 8))) if texts else ():
        named.append(data.draw(st.integers(0, min(met, len(texts) - 1))))
        met = max(met, named[-1] + 1)
    packed = Recipe([SOURCE], [{"id": "", "a": None}], named, [tuple(text) for text in texts], ["x"], {"of": ["a"]})
    assert decode(encode(packed)) == packed
    assert encode(packed) == encode(decode(encode(packed)))


def test_texts_are_stretches_of_strings_in_a_form() -> None:
    texts = [[Part(0, 0, "line", 2, 5)], [Part(0, 1, "link", 6), Part(-1, 0)], [Part(0, 0, "lower", 0, 1)]]
    made = Recipe([SOURCE], [{"t": None, "u": [None, None, None], "n": 1}], [0, 1, 0, 2], texts, ["é"])
    assert list(rebuild(made, [["A  b\n cd e", "/wiki/Ada_%C3%A9"]])) == [
        '{"t": "b c", "u": ["Ada éé", "b c", "a"], "n": 1}'
    ]


def test_a_source_with_fewer_strings_is_refused() -> None:
    made = Recipe([SOURCE], [{"t": None}], [0], [[Part(0, 7)]], [])
    with pytest.raises(InputError, match="fewer strings"):
        list(rebuild(made, [["a"]]))


def test_literals_behind_each_other_are_one_run() -> None:
    literals = ["a" * 20, "b" * 30]
    texts = [[Part(-1, 0), Part(0, 0), Part(-1, 0), Part(-1, 1)], [Part(-1, 1)]]
    assert longest_run(Recipe([SOURCE], [], [], texts, literals)) == 50


def test_ids_follow_from_texts() -> None:
    rule = {"prefix": "c-", "of": ["dataset", "text"], "length": 6}
    row = {"id": "", "dataset": "nq", "text": "a", "passages": [{"id": ""}, {"id": "own"}, {"id": ""}]}
    made = derive_ids(row, rule)
    assert made["id"] == f"c-{hashlib.sha256(b'nqa').hexdigest()[:6]}"
    assert [passage["id"] for passage in made["passages"]] == [f"{made['id']}#0", "own", f"{made['id']}#2"]
    other = derive_ids({"id": "", "dataset": "n", "text": "qa", "passages": []}, rule)
    assert other["id"] == made["id"]  # the fields stand behind each other
    assert derive_ids({"id": "kept"}, rule) == {"id": "kept"}


def _zip(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", b'{"k": ["v", 1, null, {"w": "x"}]}', ["k", "v", "w", "x", '{"k": ["v", 1, null, {"w": "x"}]}']),
        ("a.json", b'{"k": "a"}\n{"k": "b"}\n', ["k", "a", "k", "b"]),
        ("a.JSONL", b'"a"\n\n"b"', ["a", "b"]),
        ("a.csv", b'x,"y, ""z"""\r\n1,2\r\n', ["x", 'y, "z"', "1", "2"]),
        ("a.txt", b"a\r\nb\xff", ["a\r\nb\ufffd"]),
        ("a.p", b"\x80\x04cos\nsystem\n", ["\ufffd\x04cos\nsystem\n"]),  # bytes; nothing of it is unpacked
        ("a.json.gz", gzip.compress(b'["a"]', mtime=0), ["a", '["a"]']),
        ("a.zip", _zip(b_json=b'["a"]', c_txt=b"d"), ["a", '["a"]', "d"]),
    ],
)
def test_strings_of_files(name: str, content: bytes, expected: list[str]) -> None:
    assert strings(content, name) == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"k": '),
        ("a.json", b"[" * 100_000),
        ("a.json", b"\xff"),
        ("a.gz", b"no"),
        ("a.gz", gzip.compress(b"a" * 1000, mtime=0)[:-9]),
        ("a.zip", b"PK"),
    ],
)
def test_files_that_are_not_what_their_name_says(name: str, content: bytes) -> None:
    with pytest.raises(InputError, match=name):
        strings(content, name)


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zip", lambda data: _zip(a_txt=data))])
def test_what_is_packed_is_bounded(name: str, pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MAX_UNPACKED", 1000)
    assert strings(pack(b"a" * 1000), name) == ["a" * 1000]
    with pytest.raises(InputError, match="holds more than"):
        strings(pack(b"a" * 1001), name)


KNOWN = [name for name, file in catalogue().items() if not file.unavailable]


@pytest.mark.parametrize("name", KNOWN)
def test_a_committed_recipe_holds_no_text_of_others(name: str) -> None:
    file = catalogue()[name]
    made = recipe(file)
    assert all(len(literal) <= MAX_LITERAL for literal in made.literals)
    assert longest_run(made) <= MAX_RUN
    assert sum(map(len, made.literals)) < max(file.bytes / 150, 250)

    def texts(value: object) -> list[str]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value] if isinstance(value, str) else [text for one in inner for text in texts(one)]

    assert max((len(text.split()) for text in texts(list(made.rows))), default=0) <= 10  # labels, names, paths
    assert {source.repository for source in made.sources} == set(file.repositories)
    assert (len(made.sources), sum(source.bytes for source in made.sources)) == (file.files, file.download)
    assert all(slug in licences() for slug in file.licences) and file.licences
    assert all(companion in catalogue() for companion in file.companions)


def test_the_page_lists_every_file_with_its_licences() -> None:
    page = (ROOT / "docs" / "evaluation-data.md").read_text(encoding="utf-8")
    for file in catalogue().values():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{file.name}` |"))
        assert file.what in row
        titles = [
            licences()[slug].title.removeprefix("no licence ").replace("stated", "none stated")
            for slug in file.licences
        ]
        assert row.endswith(f"| {', '.join(titles)} |"), row


def test_all_recipes_are_small() -> None:
    folder = ROOT / "src" / "unpoison" / "data" / "recipes"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_500_000


TEST_ONLY = [name for name in KNOWN if name.startswith("test_only_")]


def from_mirrors(name: str) -> bytes:
    """A file of the catalogue, where the mirrors of its sources are at hand."""
    mirrors = ROOT.parent / ".mirror"
    file = catalogue()[name]
    if not all((mirrors / repository.replace("/", "+")).is_dir() for repository in file.repositories):
        pytest.skip("no mirror of the sources is at hand")
    made = recipe(file)
    read = [strings(Folder(mirrors).read(source), source.path) for source in made.sources]
    return "".join(f"{line}\n" for line in rebuild(made, read)).encode()


@pytest.mark.parametrize("name", ["ramdocs", "clean_wiki_zh", "nli_breaking", *TEST_ONLY])
def test_a_mirror_at_hand_gives_the_documented_file(name: str) -> None:
    assert hashlib.sha256(from_mirrors(name)).hexdigest() == catalogue()[name].sha256


@pytest.mark.parametrize("name", TEST_ONLY)
def test_poison_that_is_only_tested_on_is_refused_by_every_fit(name: str) -> None:
    rows = [json.loads(line) for line in from_mirrors(name).decode().splitlines()]
    poison = [p["text"] for row in rows for p in row["passages"] if p["label"] == "poison"]
    assert len(rows) == 60 and np.isin(text_hashes(poison), np.concatenate(list(test_hashes().values()))).all()


@pytest.mark.shared_data
def test_the_shared_folder_holds_the_files_that_the_catalogue_names(shared_data: Path) -> None:
    from unpoison.bench.data.build import check_folder

    assert not any(check_folder(catalogue().values(), shared_data).values())


MATCH = """
from match_texts import Matcher
from unpoison.bench.data.recipes import Part
given = [["The quick brown fox jumps over the lazy dog near the river.", "Other words stand in this one here."]]
text = "quick brown fox jumps over the lazy dog, Other words stand in this one"
parts = Matcher(given).parts(text, 24)
cut = [p if isinstance(p, str) else given[p.source][p.number][p.start : p.stop or None] for p in parts]
assert "".join(cut) == text, cut
assert [p for p in parts if isinstance(p, str)] == [", "], parts
assert Matcher(given).parts(given[0][1], 24) == [Part(0, 1)]
print("matched")
"""


def test_the_matcher_covers_a_text_with_stretches() -> None:
    done = subprocess.run([sys.executable, "-c", MATCH], cwd=ROOT / "tools", capture_output=True, text=True)
    assert done.stdout == "matched\n", done.stderr

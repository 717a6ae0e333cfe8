"""`python -m benchmarks data`: recipes hold no text of others, and give back the very file that was measured on."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import subprocess
import zipfile
from pathlib import Path

import pytest

from benchmarks.data import data
from benchmarks.data.recipes import strings_of

PASSAGE = "The stethoscope was made in 1816 by a physician in Paris, says the page."
SOURCE = json.dumps({"q": "Who made  the stethoscope?", "p": PASSAGE}).encode()
BUILT = {
    "id": "c-1",
    "question": "Who made the stethoscope?",
    "passages": [{"id": "c-1#0", "text": "made in 1816 by a physician…"}],
}
CONTENT = f"{json.dumps(BUILT, ensure_ascii=False)}\n".encode()


@pytest.fixture
def mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with one source file, a recipe that needs it, and an empty folder of built files."""
    repository = tmp_path / "mirrors" / "someone+passages"
    repository.mkdir(parents=True)
    (repository / "a file.json").write_bytes(SOURCE)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(repository)]
    for command in (["init", "-q"], ["add", "."], ["-c", "commit.gpgsign=false", "commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (repository / "a file.json").unlink()  # only git has it
    begin, end = PASSAGE.index("made in"), PASSAGE.index(" in Paris")
    packed = {
        "commits": {"someone/passages": commit},
        "files": [[0, "a file.json", len(SOURCE), hashlib.sha256(SOURCE).hexdigest()]],
        "rows": [{"id": "c-1", "question": None, "passages": [{"id": "", "text": None}]}],
        "ids": None, "literals": ["…"], "texts": [0, 0], "lengths": [1, 2], "sources": [0, 0, -1],
        "numbers": [1, 2, -3], "forms": [1, 0, 0], "starts": [0, begin, 0], "stops": [0, end - begin, 0],
    }  # fmt: skip
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "tiny.json.xz").write_bytes(lzma.compress(json.dumps(packed).encode()))
    entry = {"what": "a test", "bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    files = {"tiny": {**entry, "licences": ["none"]}, "lost": {**entry, "unavailable": "somebody deleted it"}}
    licences = {"none": {"title": "no licence stated", "accept": True, "note": "evaluate only"}}
    (tmp_path / "catalogue.json").write_text(json.dumps({"files": files, "licences": licences}))
    monkeypatch.setattr(data, "HERE", tmp_path)
    monkeypatch.setenv("UNPOISON_DATA", str(tmp_path / "built"))
    return tmp_path / "mirrors"


def test_a_file_is_rebuilt_byte_for_byte_once_its_terms_are_accepted(mirrors: Path) -> None:
    with pytest.raises(SystemExit, match="accept the terms above first: --accept-licence none"):
        data.get(["tiny"], set(), mirrors)
    data.get(["tiny"], {"none"}, mirrors)
    assert (mirrors.parent / "built" / "tiny.jsonl").read_bytes() == CONTENT
    data.get(["all"], {"all"}, mirrors / "nowhere")  # it is there: no source is read


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("tiny", "is not in"), ("lost", "somebody deleted it"), ("tinny", "no evaluation file is named tinny")],
)
def test_what_cannot_be_built_says_why(mirrors: Path, name: str, sentence: str) -> None:
    with pytest.raises(SystemExit, match=sentence):
        data.get([name], {"all"}, mirrors / "someone+passages")
    assert not (mirrors.parent / "built").exists()


def test_another_file_than_the_measured_one_is_not_kept(mirrors: Path) -> None:
    entry = {**data.catalogue()[0]["tiny"], "sha256": "0" * 64}
    with pytest.raises(SystemExit, match="another file"):
        data.build("tiny", entry, mirrors)
    assert not (mirrors.parent / "built").exists()


def packed(**members: bytes) -> bytes:
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
        ("a.csv", b'x,"y, ""z"""\r\n1,2\r\n', ["x", 'y, "z"', "1", "2"]),
        ("a.p", b"\x80\x04cos\nsystem\n", ["\ufffd\x04cos\nsystem\n"]),  # bytes; nothing of it is unpacked
        ("a.json.gz", gzip.compress(b'["a"]', mtime=0), ["a", '["a"]']),
        ("a.zip", packed(b_json=b'["a"]', c_txt=b"d"), ["a", '["a"]', "d"]),
    ],
)
def test_strings_of_files(name: str, content: bytes, expected: list[str]) -> None:
    assert list(strings_of(content, name)) == expected


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zip", lambda content: packed(a_txt=content))])
def test_what_is_packed_is_bounded(name: str, pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.data.recipes.MAX_UNPACKED", 1000)
    assert list(strings_of(pack(b"a" * 1000), name)) == ["a" * 1000]
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        list(strings_of(pack(b"a" * 1001), name))


@pytest.mark.slow
def test_committed_recipes_hold_no_text_of_others() -> None:
    def texts(value: object) -> list[str]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value] if isinstance(value, str) else [text for one in inner for text in texts(one)]

    files, licences = data.catalogue()
    for name, entry in files.items():
        if entry.get("unavailable"):
            continue
        made = data.recipe(name)
        assert max(map(len, made.literals), default=0) <= 24, name
        assert sum(map(len, made.literals)) < max(entry["bytes"] / 150, 250), name
        assert max((len(text.split()) for text in texts(made._content["rows"])), default=0) <= 10, name  # labels, paths
        assert {source.repository for source in made.sources} == set(entry["repositories"])
        assert entry["licences"] and set(entry["licences"]) <= set(licences)
        assert set(entry.get("companions", ())) <= set(files)


@pytest.mark.shared_data
def test_the_shared_folder_holds_the_files_that_the_catalogue_names(shared_data: Path) -> None:
    for name, entry in data.catalogue()[0].items():
        path = shared_data / f"{name}.jsonl"
        assert not path.exists() or data.is_built(path, entry), name

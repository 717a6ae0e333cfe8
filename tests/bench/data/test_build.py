"""Building an evaluation file: from a mirror, from files, over a network that fails, and never by half."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from bench.data.conftest import BUILT, PATH, SOURCE, Served, World, git
from unpoison.bench.data import store as store_module
from unpoison.bench.data.build import Terms, build, check_folder, with_companions
from unpoison.bench.data.catalogue import data_file
from unpoison.bench.data.origins import Downloads, Folder, Kept
from unpoison.bench.data.store import Store, data_folder, data_path
from unpoison.errors import InputError, OptionError, UnknownNameError


def downloads(served: Served) -> Downloads:
    return Downloads(Store(), served.url, pause=lambda seconds: None)


def test_a_mirror_gives_the_very_bytes_of_the_pinned_commit(world: World) -> None:
    assert build(world.file, Store(), Folder(world.mirrors))
    assert Store().path(world.file).read_bytes() == BUILT
    assert data_path("tiny") == data_path("tiny.jsonl") == Store().path(world.file)
    assert not build(world.file, Store(), Folder(world.mirrors))  # it is there


def test_a_mirror_without_the_commit_is_refused_unless_it_has_the_very_file(world: World) -> None:
    lone = world.folder / "lone" / "someone" / "passages"
    lone.mkdir(parents=True)
    git(lone.parent, "init", "-q", str(lone))
    (lone / "data").mkdir()
    (lone / PATH).write_bytes(SOURCE.replace(b"1816", b"1817"))
    git(lone, "add", ".")
    git(lone, "commit", "-qm", "other")
    with pytest.raises(InputError, match=f"does not have the commit {world.commit[:12]}"):
        build(world.file, Store(), Folder(world.folder / "lone"))
    (lone / PATH).write_bytes(SOURCE)
    git(lone, "commit", "-qam", "the same file at another commit")
    assert build(world.file, Store(), Folder(world.folder / "lone"))


@pytest.mark.parametrize("called", ["someone/passages", "someone+passages", "someone_passages", "passages"])
def test_files_that_were_got_by_other_means(world: World, called: str) -> None:
    place = world.folder / "plain" / called / PATH
    place.parent.mkdir(parents=True)
    place.write_bytes(SOURCE[:-1])
    with pytest.raises(InputError, match="is not the pinned file"):
        build(world.file, Store(), Folder(world.folder / "plain"))
    place.write_bytes(SOURCE)
    assert build(world.file, Store(), Folder(world.folder / "plain"))


def test_a_folder_of_built_files_is_compared_and_copied(world: World) -> None:
    (world.folder / "tiny.jsonl").write_bytes(BUILT.replace(b"1816", b"1817"))
    with pytest.raises(InputError, match="is not the file that the tables were measured on"):
        build(world.file, Store(), Folder(world.mirrors), world.folder)
    assert not Store().path(world.file).exists()
    (world.folder / "tiny.jsonl").write_bytes(BUILT)
    assert build(world.file, Store(), Folder(world.folder), world.folder)
    assert data_path("tiny").read_bytes() == BUILT


def test_a_file_that_cannot_be_rebuilt_is_taken_where_it_is_built(world: World) -> None:
    with pytest.raises(InputError, match="lost cannot be rebuilt: someone/else cannot be had"):
        build(data_file("lost"), Store(), Folder(world.mirrors))
    (world.folder / "lost.jsonl").write_bytes(BUILT)
    assert build(data_file("lost"), Store(), Folder(world.folder), world.folder)


def test_a_folder_without_the_source_names_the_command(world: World) -> None:
    with pytest.raises(InputError, match=r"git clone https://github\.com/someone/passages .*/someone/passages"):
        build(world.file, Store(), Folder(world.folder))
    with pytest.raises(InputError, match="no such folder"):
        Folder(world.folder / "none")


def test_a_download_is_kept_and_not_asked_for_twice(world: World, served: Served) -> None:
    assert build(world.file, Store(), Kept(Store(), downloads(served)))
    Store().path(world.file).unlink()
    assert build(world.file, Store(), Kept(Store(), downloads(served)))
    assert served.asked == [""]
    assert Store().sizes() == (len(BUILT), len(SOURCE))


def test_a_kept_source_that_was_damaged_is_got_again(world: World, served: Served) -> None:
    build(world.file, Store(), Kept(Store(), downloads(served)))
    Store().path(world.file).unlink()
    kept = next(Store().folder.glob("sources/**/*.json"))
    kept.write_bytes(SOURCE.replace(b"1816", b"1817"))
    assert build(world.file, Store(), Kept(Store(), downloads(served)))
    assert kept.read_bytes() == SOURCE


def test_a_download_that_breaks_off_goes_on_where_it_stopped(world: World, served: Served) -> None:
    served.cuts = [30_000, 10_000]
    assert build(world.file, Store(), downloads(served))
    assert served.asked[0] == "" and all(asked.startswith("bytes=") for asked in served.asked[1:])
    assert len(served.asked) == 3
    assert data_path("tiny").read_bytes() == BUILT


def test_a_download_that_breaks_off_for_good_leaves_nothing_to_read(world: World, served: Served) -> None:
    served.cuts = [100] * 9
    with pytest.raises(InputError, match=r"then 'unpoison data get NAME --from FOLDER'"):
        build(world.file, Store(), Kept(Store(), downloads(served)))
    assert not list(Store().folder.glob("**/*.jsonl")) and not list(Store().folder.glob("sources/**/*.json"))
    served.cuts = []
    assert build(world.file, Store(), Kept(Store(), downloads(served)))
    assert served.asked[-1].startswith("bytes=")  # what had come is not asked for again


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SOURCE.replace(b"1816", b"1817"), "is not the file that was pinned"),
        (SOURCE + b" " * 10_000_000, "is not the file that was pinned"),
    ],
)
def test_a_changed_source_is_refused(world: World, served: Served, content: bytes, message: str) -> None:
    served.content = content
    with pytest.raises(InputError, match=message):
        build(world.file, Store(), downloads(served))
    assert not list(Store().folder.glob("**/*.*"))


def test_a_larger_reply_is_not_read_to_its_end(world: World, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.content = SOURCE + b" " * 10_000_000
    lengths = []
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path, **kw: (lengths.append(path.stat().st_size), unlink(path, **kw)))
    with pytest.raises(InputError):
        build(world.file, Store(), downloads(served))
    assert lengths == [len(SOURCE) + 1]


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, r"is gone \(404\)"), (451, r"is gone \(451\)"), (503, "answers 503"), (403, "answers 403")],
)
def test_a_source_that_moved_or_is_refused(world: World, served: Served, status: int, message: str) -> None:
    served.status = status
    with pytest.raises(InputError, match=message):
        build(world.file, Store(), downloads(served))
    assert len(served.asked) == (4 if status == 503 else 1)


def test_without_a_network_the_sentence_has_the_mirrors_command(world: World) -> None:
    nobody = Downloads(Store(), "http://127.0.0.1:9", pause=lambda seconds: None)
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached .*git clone .*--from FOLDER"):
        build(world.file, Store(), nobody)


def test_a_redirect_to_another_scheme_is_not_followed(world: World, served: Served, tmp_path: Path) -> None:
    from unpoison.bench.data.origins import _SameScheme

    class Request:
        full_url = "https://example.org/a"

    with pytest.raises(InputError, match="is not asked for"):
        _SameScheme().redirect_request(Request(), None, 302, "", {}, "file:///etc/passwd")


def test_an_address_must_be_one(world: World) -> None:
    with pytest.raises(InputError, match="is no address"):
        Downloads(Store(), "file:///tmp")


def test_a_full_disk_leaves_no_half_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(InputError, match=f"No space left on device; {len(BUILT)} bytes are needed"):
        build(world.file, Store(), Folder(world.mirrors))
    assert [path.name for path in Store().folder.iterdir()] == []


def test_a_disk_that_fills_up_during_a_download(world: World, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Downloads, "_copy", staticmethod(full))
    with pytest.raises(InputError, match=r"cannot be written .*No space left"):
        build(world.file, Store(), downloads(served))
    assert len(served.asked) == 1  # another try would meet the same disk


def test_a_damaged_built_file_is_not_read_and_is_built_again(world: World) -> None:
    build(world.file, Store(), Folder(world.mirrors))
    path = data_path("tiny")
    path.write_bytes(BUILT.replace(b"1816", b"1817"))  # the same size
    with pytest.raises(InputError, match="get it again: unpoison data get tiny"):
        data_path("tiny")
    assert check_folder([world.file], Store().folder) == {"tiny": "is not the file that the tables were measured on"}
    assert build(world.file, Store(), Folder(world.mirrors))
    assert check_folder([world.file], Store().folder) == {"tiny": ""}


def test_names_and_paths(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_path("else.jsonl") == Path("else.jsonl")
    assert data_path("folder/tiny.jsonl") == Path("folder/tiny.jsonl")
    with pytest.raises(InputError, match="tiny is not on this machine: unpoison data get tiny"):
        data_path("tiny")
    with pytest.raises(InputError, match="holds no evaluation file"):
        data_folder("evaluation-data")
    assert data_folder("sample") is None
    assert data_folder(world.folder) == world.folder
    monkeypatch.chdir(world.folder)
    Path("tiny.jsonl").write_bytes(b"")
    assert data_path("tiny.jsonl") == Path("tiny.jsonl")  # a file of that name here is meant
    with pytest.raises(UnknownNameError, match="did you mean 'tiny'"):
        data_file("tinny")


def test_companions_come_along_once(world: World) -> None:
    assert [file.name for file in with_companions(["with_tiny", "tiny"])] == ["with_tiny", "tiny"]


def test_licences_are_accepted_once_and_before_anything_else(world: World) -> None:
    terms = Terms(Store())
    with pytest.raises(
        InputError, match=r"no licence stated: evaluate only \(tiny\)\. To accept: --accept-licence none$"
    ):
        terms.check([world.file])
    with pytest.raises(OptionError, match="no source has it; known: all, mit, none"):
        terms.accept(["nothing"])
    asked = []
    with pytest.raises(InputError):
        Terms(Store(), lambda licence, names: bool(asked.append((licence.slug, *names)))).check([world.file])
    Terms(Store(), lambda licence, names: True).check([world.file])
    Terms(Store(), lambda licence, names: bool(asked.append("again"))).check([world.file])
    assert asked == [("none", "tiny")]
    (Store().folder / "accepted-licences.json").write_text("[3, {")
    assert Terms(Store()).accepted() == set()


def test_the_cache_folder_follows_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store_module.default_folder
    assert folder({"UNPOISON_DATA": "/d", "XDG_CACHE_HOME": "/c"}) == Path("/d")
    if os.name == "posix":
        assert folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/unpoison/data")
        assert folder({}) == Path.home() / ".cache" / "unpoison" / "data"


def test_git_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.folder))
    with pytest.raises(InputError, match="git is not installed"):
        build(world.file, Store(), Folder(world.mirrors))
    assert shutil.which("git") is None

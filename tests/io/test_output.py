"""JSON Lines that are appended to: whole lines, torn ends cut off, one writer where it is asked for."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison.io import output as journal
from unpoison.io.output import (
    Journal,
    Writer,
    check_output,
    check_rows_name,
    check_writable,
    is_last_line_ended,
    read_lines,
    read_rows,
    write_json,
    write_rows,
)
from unpoison.report.document import write_text
from unpoison.utils.files import write_file

HALF = "\ud800"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "rows.jsonl"


def test_rows_are_there_when_append_returns(path: Path) -> None:
    assert read_rows(path) == []
    with Journal(path) as file:
        file.append({"n": 1, "text": HALF}, {"n": 2})
        assert [row["n"] for row in read_rows(path)] == [1, 2]
        file.append({"n": 3}, sync=True)
    with Journal(path) as file:
        file.append({"n": 4})
    assert [row["n"] for row in read_rows(path)] == [1, 2, 3, 4]
    assert read_rows(path)[0]["text"] == HALF


@pytest.mark.parametrize("kept", [b"", b'{"n": 1}\n', b'{"n": 1}\n{"n": 2}\n'])
@pytest.mark.parametrize("torn", [b"{", b'{"n": 9, "text": "' + b"x" * 200_000])
def test_a_torn_last_line_is_skipped_by_readers_and_cut_by_writers(path: Path, kept: bytes, torn: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(kept + torn)
    assert b"".join(line for _, line in read_lines(path)) == kept
    with Journal(path):
        assert path.read_bytes() == kept


def test_what_is_no_object_is_passed_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"n": 1}\n\xff\n[]\n' + b"[" * 100_000 + b'\n\n{"n": 2}\n')
    assert read_rows(path) == [{"n": 1}, {"n": 2}]
    assert [number for number, _ in read_lines(path)] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_is_too_long_comes_in_pieces_and_hides_none_behind_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_LINE", 20)
    path.parent.mkdir()
    path.write_bytes(b'{"text": "' + b"x" * 40 + b'"}\n{"n": 2}\n')
    assert read_rows(path) == [{"n": 2}]


def test_a_full_disk_leaves_no_part_of_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(descriptor: int, content: bytes) -> int:
        if len(content) < 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content[:-5])

    with Journal(path) as file:
        file.append({"n": 1})
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space"):
                file.append({"n": 2})
        file.append({"n": 3})
    assert path.read_bytes() == b'{"n": 1}\n{"n": 3}\n'


def test_a_partial_write_is_completed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with Journal(path) as file:
        monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:3]))
        file.append({"n": 1}, {"n": 2})
    assert read_rows(path) == [{"n": 1}, {"n": 2}]


def test_an_exclusive_journal_has_one_writer_and_lets_go_of_it(path: Path) -> None:
    with Journal(path, exclusive=True), pytest.raises(InputError, match="another process writes"):
        Journal(path, exclusive=True)
    with Journal(path, exclusive=True) as file:
        file.append({"n": 1})


def test_a_check_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a user's notes")

    def refuse() -> None:
        raise InputError("no journal")

    with pytest.raises(InputError, match="no journal"):
        Journal(path, exclusive=True, check=refuse)
    assert path.read_bytes() == b"a user's notes"
    Journal(path, exclusive=True).close()  # the lock was let go of


def test_a_private_journal_is_for_its_owner_alone(path: Path) -> None:
    with Journal(path, private_file=True, default=str) as file:
        file.append({"time": datetime(2026, 1, 1, tzinfo=UTC)})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_rows(path) == [{"time": "2026-01-01 00:00:00+00:00"}]


def test_sync_reaches_the_disk_and_once_the_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = [], os.fsync

    def sync(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with Journal(path) as file:
        file.append({"n": 1})
        assert synced == []
        file.append({"n": 2}, sync=True)
        file.append({"n": 3}, sync=True)
    assert synced == [False, True, False]


def test_a_whole_file_is_written_or_nothing_of_it(path: Path) -> None:
    write_rows(path, [{"n": 1}, {"text": HALF}])
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_json(path, {"n": object()})
    assert path.read_bytes() == before
    write_json(path, {"n": 2})
    assert json.loads(path.read_bytes()) == {"n": 2}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("content", "ended"), [(b"", True), (b"{}\n", True), (b"{", False)])
def test_the_end_of_the_last_line(tmp_path: Path, content: bytes, ended: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with path.open("rb") as file:
        assert is_last_line_ended(file.fileno()) is ended


@pytest.mark.parametrize("writing", ["report", "rows", "private"])
def test_a_full_disk_leaves_what_was_there_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writing: str
) -> None:
    place = tmp_path / "there.html"
    place.write_text("before")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    error: Exception
    if writing == "report":
        with pytest.raises(OptionError, match=r"there\.html cannot be written: No space left") as found:
            write_text(place, "after")
        error = found.value
    else:
        with pytest.raises(OSError) as failed:
            write_file(place, [b"after"], mode=0o600 if writing == "private" else None)
        assert failed.value.filename == str(place)
        error = failed.value
    assert "there.html" in str(error)
    assert (place.read_text(), [path.name for path in tmp_path.iterdir()]) == ("before", ["there.html"])


def test_rows_that_do_not_fit_replace_nothing(tmp_path: Path) -> None:
    place = tmp_path / "out.jsonl"
    place.write_text("before")

    class Full(io.BytesIO):
        def write(self, content: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"out\.jsonl"), Writer(place, "", to_stdout=False) as writer:
        assert writer._file is not None
        writer._file.close()
        writer._file = Full()
        writer.write({"a": 1})
    assert place.read_text() == "before"


def test_a_report_may_go_to_a_device() -> None:
    write_text("/dev/null", "text")
    assert not Path("/dev/null").is_file()


def test_a_row_file_is_whole_or_a_part(tmp_path: Path) -> None:
    place, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    with Writer(place, "", to_stdout=False) as writer:
        writer.write({"a": 1})
        assert writer.active
        assert (part.read_text(), place.exists()) == ('{"a": 1}\n', False)
    assert (place.read_text(), part.exists()) == ('{"a": 1}\n', False)
    with pytest.raises(KeyboardInterrupt), Writer(place, "", to_stdout=False) as writer:
        writer.write({"b": 2})
        raise KeyboardInterrupt
    assert (place.read_text(), part.read_text()) == ('{"a": 1}\n', '{"b": 2}\n')
    with pytest.raises(ValueError, match="odd"), Writer(place, "", to_stdout=False) as writer:
        writer.write({"c": 3})
        raise ValueError("odd")  # an error of a row is none of the file
    assert (place.read_text(), part.exists()) == ('{"c": 3}\n', False)
    assert not Writer(None, "", to_stdout=False).active


def test_files_go_into_folders_that_are_not_there_yet_and_into_those_that_are(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    for _ in range(2):
        write_rows(deep / "rows.jsonl", [{"a": "\u7d05"}])
        write_json(deep / "c" / "whole.json", {"a": "\u7d05"})
        with Journal(deep / "d" / "rows.jsonl") as rows:
            rows.append({"a": 1})
    assert (deep / "rows.jsonl").read_text() == '{"a": "\\u7d05"}\n'
    assert json.loads((deep / "c" / "whole.json").read_bytes()) == {"a": "\u7d05"}
    assert len(read_rows(deep / "d" / "rows.jsonl")) == 2


def test_an_output_is_no_input_no_other_format_and_left_as_it_was(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("rows")
    check_output(output, str(source))
    assert not output.exists()
    output.write_text("old")
    check_output(output, str(source))
    assert output.read_text() == "old"
    with pytest.raises(OptionError, match="is the input"):
        check_output(source, str(source))
    with pytest.raises(FileNotFoundError):
        check_writable(tmp_path / "missing" / "out.jsonl")
    for name in ("a.csv", "a.HTML"):
        with pytest.raises(OptionError, match=r"name the file a\.jsonl"):
            check_rows_name(Path(name))
    check_rows_name(Path("a.json"))

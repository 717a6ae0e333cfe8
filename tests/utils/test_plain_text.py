"""Untrusted text that is printed, and the delimiter around it in a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.utils.plain_text import (
    KEY,
    _secret,
    count_noun,
    digest_text,
    encodable,
    excerpt,
    first_of,
    key_file,
    marker,
    plain,
    without_invisible,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\u202eb\u2066c", "abc"),
        ("a\u200db", "a\u200db"),
        ("a\n\t b", "a b"),
        ("a\ud800", "a?"),
    ],
)
def test_a_line_is_safe_to_print(text: str, printed: str) -> None:
    assert plain(text) == printed


def test_lines_and_spaces_may_stay() -> None:
    assert without_invisible("a\n  b\x07") == "a\n  b"


@given(st.text(max_size=200))
def test_no_control_character_is_left(text: str) -> None:
    assert not any(c < " " or "\x7f" <= c <= "\x9f" for c in plain(text))


def test_an_excerpt_says_where_something_follows() -> None:
    assert excerpt("x" * 80) == "x" * 80
    assert excerpt("x" * 81) == "x" * 79 + "…"
    assert excerpt("ab cd", 4) == "ab…"
    assert excerpt(" " * 80 + "x", 4) == "…"  # something follows, although what was read is blank


def test_numbers_with_their_noun() -> None:
    assert [count_noun(number, "row") for number in (0, 1, 1000)] == ["0 rows", "1 row", "1,000 rows"]


def test_lone_surrogates_are_question_marks() -> None:
    assert encodable("a\udc80é") == "a?é"


def test_a_marker_stands_in_no_text_and_depends_on_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "one")
    first = marker(["a", "b"])
    assert (len(first), marker(["a", "b"])) == (12, first)
    assert marker(["ab"]) != first
    assert marker(["a", "b", first]) not in ("a", "b", first)
    assert digest_text("log", "x") == digest_text("log", "x") != digest_text("other", "x")
    assert len(digest_text("log", "x")) == 16
    monkeypatch.setenv(KEY, "two")
    assert marker(["a", "b"]) != first


def test_the_secret_of_an_installation_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    _secret.cache_clear()
    first = digest_text("log", "x")
    path = key_file()
    assert path == tmp_path / "unpoison" / "fence-key"
    assert (len(path.read_bytes()), path.stat().st_mode & 0o777) == (32, 0o600)
    assert [one.name for one in path.parent.iterdir()] == ["fence-key"]
    _secret.cache_clear()
    assert digest_text("log", "x") == first
    path.write_bytes(b"short")  # a secret that nobody made: this process has its own
    _secret.cache_clear()
    assert digest_text("log", "x") != first
    _secret.cache_clear()


def test_the_first_of_many_are_named() -> None:
    assert [first_of(list("abcd"), most) for most in (4, 2)] == ["a, b, c, d", "a, b and 2 more"]
    assert first_of([], 3) == ""


def test_the_folder_of_the_secret_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _secret.cache_clear()
    digest_text("log", "x")
    assert key_file().parent.stat().st_mode & 0o777 == 0o700
    _secret.cache_clear()

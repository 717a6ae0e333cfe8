"""Untrusted text that is printed, and the delimiter around it in a prompt."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.utils import plain_text
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12345", "12345"), ("123456", "1234\u2026"), ("1234 67", "1234\u2026"), ("", ""),
        ("12345" + " " * 95, "12345"),
        ("12345" + " " * 96, "1234\u2026"), ("\x00" * 100 + "12345", "\u2026"), ("\x00" * 95 + "12345", "12345"),
    ],
)  # fmt: skip
def test_twenty_times_the_length_of_an_excerpt_is_read_for_it(text: str, shown: str) -> None:
    assert excerpt(text, 5) == shown


@pytest.mark.parametrize(
    ("items", "most", "said"), [("ab", 2, "a, b"), ("abc", 2, "a, b and 1 more"), ("abc", 3, "a, b, c"), ("", 1, "")]
)
def test_others_are_counted_where_there_are_some(items: str, most: int, said: str) -> None:
    assert first_of(items, most) == said
    assert first_of(range(2_001), 1) == "0 and 2,000 more"


def test_the_file_of_the_secret_is_in_the_users_folder_of_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    assert key_file() == tmp_path / "states" / "unpoison" / "fence-key"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert key_file() == tmp_path / ".local" / "state" / "unpoison" / "fence-key"


@pytest.mark.parametrize("length", [0, 31, 32, 33])
def test_a_torn_secret_is_not_used_and_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    key_file().parent.mkdir(parents=True)
    key_file().write_bytes(b"k" * length)
    secret = _secret.__wrapped__(None)
    assert len(secret) == 32
    assert (secret == b"k" * 32) == (length == 32)
    assert key_file().read_bytes() == b"k" * length
    assert list(key_file().parent.iterdir()) == [key_file()]
    assert len(_secret.__wrapped__("given")) == 32


def test_a_marker_that_stands_in_a_text_is_replaced_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["aa", "bb"])
    monkeypatch.setattr(plain_text, "blake2b", lambda *_, **__: SimpleNamespace(hexdigest=lambda: next(made)))
    monkeypatch.setattr(plain_text, "_secret", lambda given: b"")
    assert marker(["one", "an aa"]) == "bb"
